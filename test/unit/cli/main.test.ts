import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

const root = path.resolve(import.meta.dirname, "../../..");

const source = readFileSync(path.join(root, "cli/main.ts"), "utf8");
const verbs = [...source.matchAll(/^ {2}(\w+): async \(\) =>/gm)].map(([, verb = ""]) => verb);

type Ended = { code: number; stdout: string; stderr: string };

function ztbench(...args: string[]): Promise<Ended> {
  return call(path.join(root, "ztbench"), args);
}

type Surroundings = { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv };

function call(program: string, args: readonly string[], from: Surroundings = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, args, from, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

test("help names every verb and the exit codes", async () => {
  const { code, stdout } = await ztbench("--help");
  assert.equal(code, 0);
  assert.ok(verbs.includes("campaign") && verbs.length >= 12, verbs.join());
  for (const verb of verbs) {
    assert.match(stdout, new RegExp(`^ {2}${verb} +\\S`, "m"));
  }
  assert.match(stdout, /130 interrupted/);
});

const refused: [args: string[], code: number, expected: RegExp][] = [
  [["labb"], 2, /^ztbench: verb: unknown, "labb", one of doctor, init/],
  [["lab"], 2, /^ztbench: arguments: 0 given, 1 wanted\n {2}next: usage: /],
  [["lab", "sideways"], 2, /lab: unknown action, "sideways", up, down or status/],
  [["env", "--fast"], 2, /arguments: Unknown option '--fast'/],
  [["campaign", "no-such-plan.yaml"], 3, /no-such-plan\.yaml: cannot be read, ENOENT\n {2}next: /],
  [["campaign", "/dev/zero"], 3, /\/dev\/zero: cannot be read, it is no plain file\n {2}next: /],
  [["release"], 2, /arguments: 0 given, 1 wanted\n {2}next: usage: /],
  [["report", ""], 2, /arguments: one is empty, none may be/],
  [
    ["verify", "no-such-bundle"],
    3,
    /bundle: must be a directory, found \S+no-such-bundle\n {2}next: /,
  ],
  [["compare", "one"], 2, /arguments: 1 given, 2 wanted\n {2}next: usage: /],
  [["budget", ".", "no-such.yaml"], 3, /no-such\.yaml: cannot be read, ENOENT/],
  [["lab", "status", "--network", "abc"], 2, /lab network: out of range, "abc", allowed are whole/],
  [["lab", "status", "--network", "0x3"], 2, /lab network: out of range, "0x3", allowed/],
  [["lab", "down", "--name", "../x"], 2, /lab name: not usable, "\.\.\/x", allowed are lower case/],
  [["lab", "status", "--name", "a", "--name", "b"], 2, /arguments: --name is given twice, once/],
  [
    ["lab", "status", "--network", "-1"],
    2,
    /^ztbench: arguments: Option '--network' .*\n {2}next: /,
  ],
  [["init", "no-such-testbed.yaml"], 3, /no-such-testbed\.yaml: cannot be read, ENOENT/],
];
for (const [args, code, expected] of refused) {
  test(`\`ztbench ${args.join(" ")}\` ends with exit code ${code} and one clear message`, async () => {
    const ended = await ztbench(...args);
    assert.match(ended.stderr, expected);
    assert.equal(ended.code, code);
    assert.doesNotMatch(ended.stderr, /^\s+at /m);
  });
}

test("paths start where the caller is, also through a link to ztbench", async (context) => {
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-cli-"));
  context.after(() => rm(directory, { recursive: true }));
  await writeFile(path.join(directory, "here.yaml"), "schema: odd\n");
  await symlink(path.join(root, "ztbench"), path.join(directory, "link"));
  const ended = await call("./link", ["campaign", "here.yaml"], { cwd: directory });
  assert.match(ended.stderr, /^ztbench: here\.yaml:1:9: schema: .*found "odd"/);
  assert.equal(ended.code, 3);
});

test("without Node.js the message says so", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-cli-"));
  for (const tool of ["readlink", "dirname"]) {
    await symlink(`/usr/bin/${tool}`, path.join(directory, tool));
  }
  const env = { PATH: directory };
  const ended = await call("/bin/sh", [path.join(root, "ztbench"), "doctor"], { env });
  await rm(directory, { recursive: true });
  assert.match(ended.stderr, /^ztbench: node: not found in PATH\n {2}next: install Node\.js/);
  assert.equal(ended.code, 4);
});

test("a directory in the place of the checksums is refused, not called a bug", async (context) => {
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-cli-"));
  context.after(() => rm(directory, { recursive: true }));
  await mkdir(path.join(directory, "runs"));
  await mkdir(path.join(directory, "SHA256SUMS"));
  const ended = await ztbench("report", directory);
  assert.doesNotMatch(ended.stderr, /bug|^\s+at /m);
  assert.equal(ended.code, 3);
});

test("every verb explains itself", async () => {
  for (const verb of verbs) {
    const { code, stdout } = await ztbench(verb, "--help");
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^usage: \\./ztbench ${verb}`));
  }
});
