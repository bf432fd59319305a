import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

const root = path.resolve(import.meta.dirname, "../../..");

type Ended = { code: number; stdout: string; stderr: string };

function ztbench(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(path.join(root, "ztbench"), args, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

test("help names every verb and the exit codes", async () => {
  const { code, stdout } = await ztbench("--help");
  assert.equal(code, 0);
  for (const verb of ["doctor", "init", "env", "lab", "campaign", "report"]) {
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

test("every verb explains itself", async () => {
  for (const verb of ["doctor", "init", "env", "lab", "campaign", "report"]) {
    const { code, stdout } = await ztbench(verb, "--help");
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^usage: \\./ztbench ${verb}`));
  }
});
