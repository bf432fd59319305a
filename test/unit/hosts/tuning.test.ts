import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import type { Knob } from "../../../hosts/knobs.ts";
import { renderTable, renderProgram, shellPart } from "../../../hosts/shell.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import {
  parseReadback,
  parseTuning,
  renderTuning,
  renderVerify,
  summariseTuning,
  tuningParts,
} from "../../../hosts/tuning.ts";
import { runBash } from "../../support/bash.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-tuning-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

const knob = (id: string, want: string, scope: Knob["scope"] = "namespace"): Knob => ({
  id,
  scope,
  kind: "sysctl",
  target: id,
  want,
  why: "a test",
});

/** A host whose kernel settings are files of a scratch directory. */
class FakeHost {
  readonly root: string;
  boot = "boot-1";
  namespace = "net:[1]";
  container = false;
  /** Bash that replaces functions. */
  extra = "";

  constructor(values: Readonly<Record<string, string>>) {
    this.root = mkdtempSync(path.join(scratch, "host-"));
    mkdirSync(path.join(this.root, "sys"));
    for (const [name, value] of Object.entries(values)) this.set(name, value);
  }

  set(name: string, value: string): void {
    writeFileSync(path.join(this.root, "sys", name), `${value}\n`);
  }

  get(name: string): string {
    return readFileSync(path.join(this.root, "sys", name), "utf8").trimEnd();
  }

  get journal(): string {
    return path.join(this.root, "journal", "tuning.tsv");
  }

  run(call: string, knobs: readonly Knob[]) {
    const rows = knobs.map(({ id, scope, kind, target, want }) => [id, scope, kind, target, want]);
    const parts = [
      "host=fake",
      renderTable("knobs", rows),
      ...tuningParts.map(shellPart),
      `journal_directory=${this.root}/journal`,
      "journal=$journal_directory/tuning.tsv",
      `lease_directory=${this.root}/lease`,
      `sysctl_path() { echo "${this.root}/sys/$1"; }`,
      `boot_id() { echo "${this.boot}"; }`,
      `namespace_id() { echo "${this.namespace}"; }`,
      `in_container() { ${this.container ? "true" : "false"}; }`,
      this.extra,
    ];
    return runBash(renderProgram(parts, call));
  }

  create(knobs: readonly Knob[]) {
    const { exitCode, stdout, stderr } = this.run("tuning_create", knobs);
    assert.equal(exitCode, 0, stderr);
    return summariseTuning(parseTuning(stdout));
  }

  remove(knobs: readonly Knob[] = []) {
    return this.run("tuning_remove", knobs);
  }

  verify(knobs: readonly Knob[]) {
    const { exitCode, stdout, stderr } = this.run("tuning_verify", knobs);
    assert.equal(exitCode, 0, stderr);
    return parseReadback(stdout).map(({ id, status, value }) => `${id} ${status} ${value}`);
  }
}

const two = [knob("a", "10"), knob("b", "20 30")];

suite("the tuning journal", () => {
  test("restores what was there before, also an empty value", () => {
    const host = new FakeHost({ a: "1", b: "2\t3", empty: "" });
    const knobs = [...two, knob("empty", "15000-15099")];
    assert.deepEqual(host.create(knobs), {
      a: "applied 10",
      b: "applied 20 30",
      empty: "applied 15000-15099",
    });
    assert.equal(host.get("b"), "20 30");
    const { exitCode, stdout, stderr } = host.remove();
    assert.deepEqual([exitCode, stderr], [0, ""]);
    assert.deepEqual(
      ["a", "b", "empty"].map((name) => host.get(name)),
      ["1", "2 3", ""],
    );
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split("\t")[0]),
      ["restored empty", "restored b", "restored a"],
      "in reverse order",
    );
    assert.equal(existsSync(path.dirname(host.journal)), false);
  });

  test("is on the disk before the first change", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.extra = `write_sysctl() {
      grep -q "^knob.a.*planned" "$journal" && grep -q "^knob.b.*planned" "$journal" &&
        write_file "$(sysctl_path "$1")" "$2"; }`;
    assert.deepEqual(host.create(two), { a: "applied 10", b: "applied 20 30" });
  });

  test("is not overwritten by a second run, nor by a wider profile", () => {
    const host = new FakeHost({ a: "1", b: "2", c: "3" });
    host.create([knob("a", "10")]);
    assert.deepEqual(host.create([knob("a", "11"), knob("b", "20")]), {
      a: "applied 11",
      b: "applied 20",
    });
    assert.deepEqual(host.create([knob("c", "30")]), { c: "applied 30" });
    host.remove();
    assert.deepEqual(
      ["a", "b", "c"].map((name) => host.get(name)),
      ["1", "2", "3"],
    );
  });

  test("lets an interrupted run be undone", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.extra = `write_sysctl() {
      [ "$1" = a ] || kill -KILL $$; write_file "$(sysctl_path "$1")" "$2"; }`;
    assert.notEqual(host.run("tuning_create", two).exitCode, 0);
    assert.equal(host.get("a"), "10");
    host.extra = "";
    assert.equal(host.remove().exitCode, 0);
    assert.deepEqual([host.get("a"), host.get("b")], ["1", "2 3"]);
  });

  test("leaves a foreign change, names it, and restores the rest", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.create(two);
    host.set("a", "99");
    const { exitCode, stderr } = host.remove();
    assert.equal(exitCode, 0);
    assert.equal(stderr, "left a: foreign change, found 99, set was 10, before that 1\n");
    assert.deepEqual([host.get("a"), host.get("b")], ["99", "2 3"]);
    assert.equal(existsSync(host.journal), false);
  });

  test("stays, and removal fails, when a value cannot be restored", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.create(two);
    host.extra = 'write_sysctl() { [ "$1" != a ] && write_file "$(sysctl_path "$1")" "$2"; }';
    const { exitCode, stderr } = host.remove();
    assert.equal(exitCode, 1);
    assert.match(stderr, /^not restored a: /m);
    assert.equal(host.get("b"), "2 3");
    host.extra = "";
    assert.equal(host.remove().exitCode, 0);
    assert.equal(host.get("a"), "1");
  });

  test("removal succeeds where nothing was tuned", () => {
    assert.deepEqual(new FakeHost({}).remove(), { exitCode: 0, stdout: "", stderr: "" });
  });

  test("removal is refused while a topology holds the host", () => {
    const host = new FakeHost({ a: "1" });
    host.create([knob("a", "10")]);
    host.run("lease_make topology me jwt -", []);
    const { exitCode, stderr } = host.remove();
    assert.equal(exitCode, 1);
    assert.match(stderr, /fake is held by stack jwt .*\n {2}next: pulumi destroy -s jwt\n/);
    assert.equal(host.get("a"), "10");
  });
});

suite("originals after a reboot", () => {
  test("are still the originals where the kernel is back at its defaults", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.create(two);
    host.boot = "boot-2";
    host.set("a", "1");
    host.set("b", "2 3");
    assert.deepEqual(host.remove(), { exitCode: 0, stdout: "", stderr: "" });
    assert.deepEqual([host.get("a"), host.get("b")], ["1", "2 3"]);
  });

  test("are still the originals where the namespace outlived the host", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.create(two);
    host.boot = "boot-2";
    assert.deepEqual(host.create(two), { a: "applied 10", b: "applied 20 30" });
    host.remove();
    assert.deepEqual([host.get("a"), host.get("b")], ["1", "2 3"]);
  });

  test("are taken anew in a new namespace, but not for the whole machine", () => {
    const host = new FakeHost({ a: "1", m: "5" });
    const knobs = [knob("a", "10"), knob("m", "50", "machine")];
    host.create(knobs);
    host.namespace = "net:[2]";
    host.set("a", "7");
    host.create(knobs);
    host.remove();
    assert.deepEqual([host.get("a"), host.get("m")], ["7", "5"]);
  });
});

suite("a knob ends as", () => {
  test("already, and is not touched by removal", () => {
    const host = new FakeHost({ a: "10" });
    assert.deepEqual(host.create([knob("a", "10")]), { a: "already 10" });
    host.set("a", "11");
    assert.deepEqual(host.remove(), { exitCode: 0, stdout: "", stderr: "" });
    assert.equal(host.get("a"), "11");
  });

  test("unsupported with the reason where the kernel does not have it", () => {
    const host = new FakeHost({});
    const absent = `unsupported, absent: ${host.root}/sys/a`;
    assert.deepEqual(host.create([knob("a", "10")]), { a: absent });
  });

  test("refused with the reason where the write fails or does not hold", () => {
    const host = new FakeHost({ a: "1", b: "2" });
    host.extra = 'write_sysctl() { [ "$1" = b ] || { echo "Permission denied"; return 1; }; }';
    assert.deepEqual(host.create([knob("a", "10"), knob("b", "20")]), {
      a: "refused 1, Permission denied",
      b: "refused 2, set to 20, the kernel kept 2",
    });
  });

  test("refused where a container would change the whole machine", () => {
    const host = new FakeHost({ m: "1" });
    host.container = true;
    const reason = "reaches the whole machine, and this host is a container in it";
    assert.deepEqual(host.create([knob("m", "10", "machine")]), { m: `refused 1, ${reason}` });
    assert.equal(host.get("m"), "1");
  });
});

suite("the readback", () => {
  test("says what holds, what drifted and what is not there, and changes nothing", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    const knobs = [...two, knob("c", "1")];
    host.create(knobs);
    host.set("b", "4 5");
    const journal = readFileSync(host.journal, "utf8");
    assert.deepEqual(host.verify(knobs), ["a applied 10", "b drifted 4 5", "c unsupported -"]);
    assert.equal(readFileSync(host.journal, "utf8"), journal);
    assert.equal(host.get("b"), "4 5");
  });

  test("calls a host without journal untuned", () => {
    assert.deepEqual(new FakeHost({ a: "10" }).verify([knob("a", "10")]), ["a untuned 10"]);
  });

  test("names what an earlier profile turned and this one does not", () => {
    const host = new FakeHost({ a: "1", b: "2 3" });
    host.create(two);
    const fewer = [knob("a", "10")];
    assert.deepEqual(host.verify(fewer), ["a applied 10", "b leftover 20 30"]);
    host.set("b", "2 3");
    assert.deepEqual(host.verify(fewer), ["a applied 10"], "it is as it was");
  });

  test("does not miss a knob that came only after the host was tuned", () => {
    const host = new FakeHost({ a: "1" });
    assert.match(host.create(two)["b"] ?? "", /^unsupported/);
    host.set("b", "2 3");
    assert.deepEqual(host.verify(two), ["a applied 10", "b unsupported -"]);
    host.create(two);
    assert.deepEqual(host.verify(two), ["a applied 10", "b applied 20 30"]);
    host.remove();
    assert.deepEqual([host.get("a"), host.get("b")], ["1", "2 3"]);
  });

  test("is refused by its parser when a line is not understood", () => {
    for (const text of ["a\tapplied\n", "a\tgone\t1\n", "a\tapplied\t1\tx\n", "a\t\t1\n"]) {
      assert.throws(() => parseReadback(text), Failure, JSON.stringify(text));
    }
  });
});

suite("the rendered programs", () => {
  const testbed = exampleTestbed();
  const host = exampleHost(testbed);

  test("are bash", () => {
    const scripts = [renderHostScript(renderTuning(testbed, host)), renderVerify(testbed, host)];
    for (const script of scripts) {
      assert.deepEqual(runBash(`bash -n <<'EOF_PROGRAM'\n${script}\nEOF_PROGRAM\n`), {
        exitCode: 0,
        stdout: "",
        stderr: "",
      });
    }
  });

  test("turn congestion control on the route of the data network, as the kernel writes it", () => {
    const network = { dataNetwork: "198.18.0.77/24" };
    const script = renderVerify(exampleTestbed(network), host);
    assert.ok(script.includes("congestion-control\troute\troute\t198.18.0.0/24 data0\tcubic\n"));
  });

  test("differ by profile", () => {
    const stock = renderVerify(exampleTestbed({ tuningProfile: "stock" }), host);
    assert.ok(!stock.includes("\nnet.core.somaxconn\t"));
    assert.ok(renderVerify(testbed, host).includes("\nnet.core.somaxconn\t"));
  });

  test("name each knob once", () => {
    const table = /knobs\(\) \{\ncat <<'END_OF_KNOBS'\n([^]*?)\nEND_OF_KNOBS/.exec(
      renderVerify(testbed, host),
    );
    const ids = (table?.[1] ?? "").split("\n").map((line) => line.split("\t")[0]);
    assert.ok(ids.length > 20);
    assert.equal(new Set(ids).size, ids.length);
  });
});
