import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { hardwareSchema } from "../../../contracts/testbed.ts";
import { parseBoot, renderBoot, withBootCheck } from "../../../hosts/boot.ts";
import { bootParametersOf } from "../../../hosts/profiles/boot.ts";
import { renderLease } from "../../../hosts/lease.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import { renderProgram, renderTable, shellPart } from "../../../hosts/shell.ts";
import { tuningParts } from "../../../hosts/tuning.ts";
import { override, runBash } from "../../support/bash.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-boot-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

const wanted = ["intel_idle.max_cstate=1", "skew_tick=1"];
const started = "BOOT_IMAGE=/boot/vmlinuz root=UUID=0 ro quiet";

/** A host with GRUB: the next boot has what the drop-in says. */
class FakeHost {
  readonly root = mkdtempSync(path.join(scratch, "host-"));
  boot = 1;
  extra = "";

  constructor(cmdline = started) {
    for (const directory of ["proc", "grub.d"]) mkdirSync(path.join(this.root, directory));
    this.start(cmdline);
  }

  start(cmdline: string): void {
    writeFileSync(path.join(this.root, "proc/cmdline"), `${cmdline}\n`);
    this.boot += 1;
  }

  get dropin(): string {
    return path.join(this.root, "grub.d/90-ztbench.cfg");
  }

  get journal(): string {
    return path.join(this.root, "journal/boot.tsv");
  }

  updates(): number {
    const file = path.join(this.root, "updates");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
  }

  run(call: string, parameters: readonly string[] = wanted) {
    const program = [
      "host=client",
      renderTable(
        "boot_parameters",
        parameters.map((parameter) => [parameter]),
      ),
      ...tuningParts.map(shellPart),
      `journal_directory=${this.root}/journal boot_defaults=${this.root}/grub.d`,
      shellPart("boot"),
      `proc=${this.root}/proc`,
      `boot_id() { echo boot-${this.boot}; }`,
      `update-grub() { echo done >>${this.root}/updates; }`,
      this.extra,
    ];
    return runBash(renderProgram(program, call));
  }
}

suite("boot parameters", () => {
  test("are written once, ask for a reboot, and are in force after it", () => {
    const host = new FakeHost();
    for (const round of [1, 2]) {
      const { exitCode, stderr } = host.run("boot_create");
      assert.equal(exitCode, 1);
      assert.match(
        stderr,
        /^host client: reboot needed, its kernel command line lacks intel_idle\.max_cstate=1 skew_tick=1\n {2}next: on client: systemctl reboot; when it is back: pulumi up -s hosts\n$/,
        String(round),
      );
    }
    assert.equal(host.updates(), 1);
    assert.match(
      readFileSync(host.dropin, "utf8"),
      /^GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT intel_idle\.max_cstate=1 skew_tick=1"$/m,
    );
    host.start(`${started} ${wanted.join(" ")}`);
    const { exitCode, stdout } = host.run("boot_create");
    assert.equal(exitCode, 0);
    assert.deepEqual(parseBoot(stdout), {
      "intel_idle.max_cstate=1": "in force",
      "skew_tick=1": "in force",
    });
  });

  test("that a reboot did not bring are told apart from those that wait for it", () => {
    const host = new FakeHost();
    host.run("boot_create");
    host.start(`${started} skew_tick=1`);
    const { exitCode, stderr } = host.run("boot_create");
    assert.equal(exitCode, 1);
    assert.match(
      stderr,
      /rebooted, and its kernel command line still lacks intel_idle\.max_cstate=1\n/,
    );
  });

  test("that are there without us leave no trace", () => {
    const host = new FakeHost(`${started} ${wanted.join(" ")}`);
    assert.equal(host.run("boot_create").exitCode, 0);
    assert.deepEqual([existsSync(host.dropin), existsSync(host.journal)], [false, false]);
  });

  test("are taken away again with the journal, and a reboot is told", () => {
    const host = new FakeHost();
    host.run("boot_create");
    const { exitCode, stderr } = host.run("boot_remove");
    assert.equal(exitCode, 0);
    assert.match(stderr, /gone after the next reboot/);
    assert.deepEqual([existsSync(host.dropin), existsSync(host.journal)], [false, false]);
    assert.equal(host.updates(), 2);
    assert.deepEqual(host.run("boot_remove"), { exitCode: 0, stdout: "", stderr: "" });
  });

  test("that somebody else has changed stay, and are named", () => {
    const host = new FakeHost();
    host.run("boot_create");
    writeFileSync(host.dropin, "else\n");
    const { exitCode, stderr } = host.run("boot_remove");
    assert.equal(exitCode, 0);
    assert.match(stderr, /^left \S+90-ztbench\.cfg: foreign change\n$/);
    assert.equal(readFileSync(host.dropin, "utf8"), "else\n");
  });

  test("are refused where there is no GRUB, before anything is written", () => {
    const host = new FakeHost();
    host.extra = 'command() { [ "$2" != update-grub ] && builtin command "$@"; }';
    const { exitCode, stderr } = host.run("boot_create");
    assert.equal(exitCode, 1);
    assert.match(
      stderr,
      /update-grub is not there, .* lacks intel_idle.*\n {2}next: give client these/,
    );
    assert.deepEqual([existsSync(host.dropin), existsSync(host.journal)], [false, false]);
  });

  test("of the profile `publish` come by testbed document only", () => {
    assert.deepEqual(bootParametersOf(exampleTestbed()), []);
    const hardware = hardwareSchema.parse({ bootProfile: "publish" });
    assert.ok(bootParametersOf(exampleTestbed({ hardware })).includes("intel_idle.max_cstate=1"));
  });
});

suite("a topology", () => {
  const lease = renderLease(exampleHost(), { owner: "me/a", stack: "jwt" });

  test("is refused on a host that was not started with the parameters, before its lease", () => {
    const program = renderHostScript(withBootCheck(lease, ["no_such_parameter=1"]));
    const harmless = override(program, "topology_lease_take() { echo taken; }");
    const { exitCode, stdout, stderr } = runBash(harmless, "create");
    assert.deepEqual([exitCode, stdout], [1, ""]);
    assert.match(stderr, /^host client: reboot needed, .* lacks no_such_parameter=1\n {2}next: /);
  });

  test("is deployed as ever where no parameters are asked for", () => {
    assert.deepEqual(withBootCheck(lease, []), lease);
  });
});

test("the rendered program is bash", () => {
  const script = renderHostScript(renderBoot(exampleHost(), wanted));
  const checked = runBash(`bash -n <<'EOF_PROGRAM'\n${script}\nEOF_PROGRAM\n`);
  assert.deepEqual(checked, { exitCode: 0, stdout: "", stderr: "" });
});

suite("the kernel command line", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ["has all", "a=0 skew_tick=1 intel_idle.max_cstate=1", ""],
    ["lacks one", "intel_idle.max_cstate=1", "skew_tick=1"],
    ["has another value", "skew_tick=0 intel_idle.max_cstate=1", "skew_tick=1"],
    [
      "has it twice, the last counts",
      "skew_tick=1 skew_tick=0 intel_idle.max_cstate=1",
      "skew_tick=1",
    ],
    ["has dashes for underscores", "skew-tick=1 intel-idle.max-cstate=1", ""],
    ["has a longer value", "skew_tick=10 intel_idle.max_cstate=1", "skew_tick=1"],
    [
      "has them for the first process only",
      "intel_idle.max_cstate=1 -- skew_tick=1",
      "skew_tick=1",
    ],
  ];
  for (const [name, cmdline, missing] of cases) {
    test(name, () => {
      const host = new FakeHost(cmdline);
      assert.equal(host.run("boot_missing").stdout.trim(), missing);
      const { exitCode, stderr } = host.run("boot_verify");
      assert.equal(exitCode, missing === "" ? 0 : 1);
      if (missing !== "") assert.match(stderr, /reboot needed, its kernel command line lacks /);
    });
  }
});
