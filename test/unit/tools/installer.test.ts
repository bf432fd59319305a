import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { $ } from "zx";
import { isRemembered } from "../../../tools/command-plugin.ts";
import { goProgram, isSource } from "../../../tools/go-program.ts";
import { renderListing } from "../../../tools/listing.ts";
import { pulumiEnvironment, toolSearchPath } from "../../../tools/paths.ts";
import { progressTo } from "../../../tools/progress.ts";
import { compareVersions } from "../../../tools/toolchain.ts";
import { wheelProgram } from "../../../tools/wheel.ts";

const root = path.resolve(import.meta.dirname, "../../..");

test("versions compare by number, and unreadable ones never suffice", () => {
  assert.equal(compareVersions("1.26.8", "1.25.11"), 1);
  assert.equal(compareVersions("1.25.9", "1.25.11"), -1);
  assert.equal(compareVersions("1.25.11", "1.25.11"), 0);
  assert.equal(compareVersions("1.26", "1.25.11"), 1);
  assert.equal(compareVersions("1.26rc1", "1.25.11"), 1);
  assert.equal(compareVersions("devel +abc", "1.25.11"), -1);
});

test("tests and their data do not count as sources", () => {
  const names = ["go.mod", "a.go", "a_test.go", "x/testdata/b.go", "x/c.txt", ".git/config"];
  assert.deepEqual(names.filter(isSource), ["go.mod", "a.go", "x/c.txt"]);
});

test("the key of a Go program follows sources, stamps and toolchain, not tests", async () => {
  const checkout = await mkdtemp(path.join(tmpdir(), "module-"));
  try {
    const module = path.join(checkout, "module");
    await mkdir(module);
    const write = (name: string, text: string) => writeFile(path.join(module, name), text);
    await write("go.mod", "module m\n");
    await write("go.sum", "");
    await write("main.go", "package main\n");
    const go = { command: "go", version: "go1.26.0", os: "linux", architecture: "amd64" };
    const own = { directory: "module", package: ".", stamps: {}, from: "module" } as const;
    const keyOf = async (...args: [typeof go, Parameters<typeof goProgram>[2]]) =>
      (await goProgram(checkout, ...args)).key;
    const first = await keyOf(go, own);
    const third = await keyOf(go, { ...own, from: "lock files" });
    assert.notEqual(await keyOf({ ...go, version: "go1.26.1" }, own), first);
    assert.notEqual(await keyOf(go, { ...own, stamps: { "main.v": "1" } }), first);
    await write("main_test.go", "package main\n");
    assert.equal(await keyOf(go, own), first);
    await write("main.go", "package main // changed\n");
    assert.notEqual(await keyOf(go, own), first);
    assert.equal(await keyOf(go, { ...own, from: "lock files" }), third);
    await write("go.sum", "changed\n");
    assert.notEqual(await keyOf(go, { ...own, from: "lock files" }), third);
  } finally {
    await rm(checkout, { recursive: true, force: true });
  }
});

test("a wheel of another platform is refused by name", () => {
  const wheel = { project: "p", version: "1", platform: "linux-x64", sha256: "0", member: "m" };
  assert.throws(
    () => wheelProgram(wheel, "linux-arm64"),
    /p: no program for linux-arm64, only for/,
  );
});

test("a refusal counts for a day, and one from the future not at all", () => {
  const hour = 3_600_000;
  assert.equal(isRemembered(0, 23 * hour), true);
  assert.equal(isRemembered(0, 24 * hour), false);
  assert.equal(isRemembered(hour, 0), false);
});

test("pulumi is kept to its own home and backend, and asks no server", () => {
  const environment = pulumiEnvironment("/c", { stateDirectory: "/s", passphraseFile: "/p" });
  assert.equal(environment["PULUMI_HOME"], "/c/.ztbench/tools/pulumi-home");
  assert.equal(environment["PULUMI_BACKEND_URL"], "file:///s?no_tmp_dir=true");
  assert.equal(environment["PULUMI_CONFIG_PASSPHRASE_FILE"], "/p");
  assert.equal(environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"], "true");
  assert.equal(environment["PULUMI_SKIP_UPDATE_CHECK"], "true");
});

test("our programs come first on PATH", () => {
  assert.equal(toolSearchPath("/c", "/usr/bin"), "/c/.ztbench/tools/bin:/usr/bin");
  assert.equal(toolSearchPath("/c", undefined), "/c/.ztbench/tools/bin");
});

test("progress lines carry the time since the start", () => {
  const lines: string[] = [];
  let now = 1000;
  const progress = progressTo(
    (line) => lines.push(line),
    () => now,
  );
  now = 13_340;
  progress("building vegeta");
  assert.deepEqual(lines, ["tools   12.3 s  building vegeta\n"]);
});

test("the listing aligns its columns and names what is missing", () => {
  const row = { name: "pulumi", version: "3", author: "upstream", provenance: "p" };
  const text = renderListing([{ ...row, state: "cached" }], ["nftables"]);
  assert.equal(
    text,
    [
      "program  version  author    state   provenance",
      "pulumi   3        upstream  cached  p",
      "",
      "missing Debian packages: nftables",
    ].join("\n"),
  );
});

test("an unknown option is a usage error", async () => {
  const spawn = $({ quiet: true, nothrow: true, cwd: root, timeout: "60s" });
  const run = await spawn`${process.execPath} --import tsx tools/install.ts --retry`;
  assert.equal(run.exitCode, 2);
  assert.match(run.stderr, /^error: .*--retry/);
  assert.match(run.stderr, /usage:/);
});
