import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { readPrograms, renderPrograms } from "../../../hosts/programs.ts";
import { renderReadiness } from "../../../hosts/readiness.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import { renderProgram, renderTable, shellPart } from "../../../hosts/shell.ts";
import { override, runBash } from "../../support/bash.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const host = exampleHost();
const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-readiness-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

const checks = (call: string, ...stubs: string[]) =>
  runBash(
    renderProgram(["host=client", shellPart("lease"), shellPart("readiness"), ...stubs], call),
  );

suite("a host is refused, with the next step,", () => {
  const refusals: readonly (readonly [string, string, string, RegExp])[] = [
    ["for a user other than root", "require_root", "id() { echo 1000; }", /is not root.*\n.*user/],
    [
      "for a NIC that is not there",
      "require_address nope0 198.18.0.10",
      "",
      /nic nope0 is not there .*found .*lo.*\n {2}next: correct nic/,
    ],
    [
      "for an address that the NIC lacks",
      "require_address lo 198.18.0.10",
      "",
      /nic lo has no address 198.18.0.10, found 127.0.0.1/,
    ],
    ["for a CPU that is not there", "require_cpus 0 4000", "", /CPU 4000 is not there, online are/],
  ];
  for (const [name, call, stub, message] of refusals) {
    test(name, () => {
      const { exitCode, stderr } = checks(call, stub);
      assert.equal(exitCode, 1);
      assert.match(stderr, message);
    });
  }
});

test("a host that is as described passes", () => {
  assert.equal(checks("require_cpus 0\nrequire_address lo 127.0.0.1").exitCode, 0);
});

suite("packages", () => {
  /** A host with some packages, and an apt-get that knows some others. */
  function fakeApt(installed: readonly string[], known: readonly string[]) {
    const root = mkdtempSync(path.join(scratch, "apt-"));
    writeFileSync(path.join(root, "installed"), installed.map((name) => `${name}\n`).join(""));
    const run = (call: string, wanted: readonly string[]) =>
      runBash(
        renderProgram(
          [
            "host=client",
            renderTable(
              "packages",
              wanted.map((name) => [name]),
            ),
            shellPart("lease"),
            shellPart("packages"),
            `root=${root}; package_note=$root/note/packages`,
            'dpkg-query() { sed "s/^/ii /" "$root/installed"; }',
            `apt-get() {
              [ "\${@: -1}" = update ] && return 0
              case " ${known.join(" ")} " in
                *" \${@: -1} "*) printf '%s\\n' "\${@: -1}" libdep >>"$root/installed" ;;
                *) echo "E: Unable to locate package \${@: -1}"; return 100 ;;
              esac; }`,
            `dpkg() { shift; for p in "$@"; do sed -i "/^$p$/d" "$root/installed"; done; }`,
          ],
          call,
        ),
      );
    const list = () => readFileSync(path.join(root, "installed"), "utf8").trim().split("\n").sort();
    return { run, list };
  }

  test("that are there are left alone, also by removal", () => {
    const { run, list } = fakeApt(["ethtool", "bash"], []);
    assert.deepEqual(run("packages_create", ["ethtool"]), { exitCode: 0, stdout: "", stderr: "" });
    assert.equal(run("packages_remove", ["ethtool"]).exitCode, 0);
    assert.deepEqual(list(), ["bash", "ethtool"]);
  });

  test("that are missing are installed, and removed again with what they brought", () => {
    const { run, list } = fakeApt(["bash"], ["ethtool"]);
    assert.equal(run("packages_create", ["ethtool"]).exitCode, 0);
    assert.deepEqual(list(), ["bash", "ethtool", "libdep"]);
    assert.equal(run("packages_remove", ["ethtool"]).exitCode, 0);
    assert.deepEqual(list(), ["bash"]);
  });

  test("that cannot be installed are named with host and command", () => {
    const { run } = fakeApt(["bash"], []);
    const { exitCode, stderr } = run("packages_create", ["ethtool"]);
    assert.equal(exitCode, 1);
    assert.match(stderr, /^package ethtool: missing on host client and cannot be installed$/m);
    assert.match(stderr, /^ {2}next: on client: apt-get install --yes ethtool/m);
  });

  test("with names that are not package names are refused before anything is done", () => {
    assert.throws(() => renderReadiness(exampleTestbed(), host, ["a b"]), Failure);
    assert.throws(() => renderReadiness(exampleTestbed(), host, ["-o"]), Failure);
  });
});

suite("programs", () => {
  function copied() {
    const root = mkdtempSync(path.join(scratch, "programs-"));
    const source = path.join(root, "source");
    mkdirSync(source);
    writeFileSync(path.join(source, "ztecho"), "#!/bin/sh\necho hello\n", { mode: 0o644 });
    const read = readPrograms(source);
    const target = path.join(root, "programs", "current");
    mkdirSync(path.join(root, "programs", "older"), { recursive: true });
    mkdirSync(target);
    writeFileSync(path.join(target, "ztecho"), readFileSync(path.join(source, "ztecho")));
    const link = path.join(root, "bin");
    const script = override(
      renderHostScript(renderPrograms(host, { ...read, target })),
      `program_link=${link}`,
      `lease_directory=${root}/lease`,
    );
    return { root, target, link, run: (verb: string) => runBash(script, verb) };
  }

  test("are made executable, checked and linked, and older ones go", () => {
    const { root, link, run } = copied();
    const { exitCode, stdout, stderr } = run("create");
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /^ztecho\t[0-9a-f]{64}\n$/);
    assert.equal(runBash(path.join(link, "ztecho")).stdout, "hello\n");
    assert.equal(existsSync(path.join(root, "programs", "older")), false);
    assert.equal(run("create").exitCode, 0);
    assert.equal(run("remove").exitCode, 0);
    assert.equal(existsSync(link), false);
    assert.equal(run("remove").exitCode, 0);
  });

  test("that were damaged on the way are refused", () => {
    const { target, link, run } = copied();
    writeFileSync(path.join(target, "ztecho"), "else");
    assert.match(run("create").stderr, /^program ztecho: damaged on host client, SHA-256 /);
    assert.equal(existsSync(link), false);
  });

  test("that are missing in the source directory are told with the command that makes them", () => {
    assert.throws(
      () => readPrograms(path.join(scratch, "nowhere")),
      (error) => error instanceof Failure && error.hint === "make tools",
    );
  });

  test("get another directory on the hosts whenever their content changes", () => {
    const source = mkdtempSync(path.join(scratch, "source-"));
    writeFileSync(path.join(source, "a"), "1");
    const first = readPrograms(source).target;
    assert.equal(readPrograms(source).target, first);
    writeFileSync(path.join(source, "a"), "2");
    assert.notEqual(readPrograms(source).target, first);
  });
});
