/** The whole path as a user walks it, by the command line, in a checkout and a lab of its own. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import { labDown } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { differences, takeSnapshot } from "../../hosts/lab/snapshot.ts";

const root = path.resolve(import.meta.dirname, "../..");
const checkout = mkdtempSync(path.join(tmpdir(), "ztbench-path-"));
const lab = openLab({ name: "labc", network: 8 });
const labWords = ["--name", lab.name, "--network", String(lab.network)];

type Ended = { readonly code: number; readonly out: string; readonly err: string };

async function run(command: readonly string[], seconds = 120): Promise<Ended> {
  const shell = $({ cwd: checkout, nothrow: true, quiet: true, timeout: `${seconds}s` });
  const done = await shell`${command}`;
  return { code: done.exitCode ?? -1, out: done.stdout, err: done.stderr };
}

const ztbench = (...args: string[]) => run(["./ztbench", ...args]);

/** Plain pulumi, as `eval "$(./ztbench env)"` makes it usable. */
const pulumi = (...args: string[]) =>
  run(["bash", "-c", 'eval "$(./ztbench env)" && pulumi "$@" --non-interactive', "bash", ...args]);

function succeeded(ended: Ended): Ended {
  assert.equal(ended.code, 0, ended.err + ended.out);
  return ended;
}

/** One message with a next step, no stack trace, the right exit code. */
function refused(ended: Ended, code: number, message: RegExp): void {
  assert.match(ended.err, message);
  assert.equal(ended.code, code, ended.err);
  assert.match(ended.err, /^ {2}next: \S/m);
  assert.doesNotMatch(ended.err, /^\s+at /m);
}

before(async () => {
  await labDown(lab);
  const listed = await $({ cwd: root })`git ls-files --cached --others --exclude-standard`;
  for (const file of listed.stdout.trim().split("\n")) {
    mkdirSync(path.dirname(path.join(checkout, file)), { recursive: true });
    cpSync(path.join(root, file), path.join(checkout, file));
  }
  const git = $({ cwd: checkout, quiet: true });
  await git`git init --quiet && git add --all`;
  await git`git -c user.name=test -c user.email=test@example.invalid commit --quiet -m test`;
  symlinkSync(path.join(root, "node_modules"), path.join(checkout, "node_modules"));
  writeFileSync(path.join(checkout, ".git/info/exclude"), "/node_modules\n");
  mkdirSync(path.join(checkout, ".ztbench"));
  symlinkSync(path.join(root, ".ztbench/tools"), path.join(checkout, ".ztbench/tools"));
});

after(async () => {
  await labDown(lab);
  rmSync(checkout, { recursive: true, force: true });
});

test("before a testbed is chosen, everything that needs one says how to get it", async () => {
  refused(await ztbench("env"), 4, /^ztbench: testbed: none chosen in this checkout yet/);
  refused(await ztbench("campaign", "plans/quick.yaml"), 4, /none chosen/);
});

test("from nothing to a table, and back to nothing", async (t) => {
  const untouched = await takeSnapshot();
  succeeded(await ztbench("lab", "up", ...labWords));

  await t.test("a campaign on hosts that are not prepared is refused", async () => {
    refused(await ztbench("campaign", "plans/quick.yaml"), 4, /labc: hosts are not prepared/);
  });

  await t.test("a topology on hosts that are not prepared is refused promptly", async () => {
    const started = performance.now();
    const { code, out, err } = await pulumi("up", "-s", "gateway", "--yes", "--skip-preview");
    assert.notEqual(code, 0);
    assert.match(out + err, /hosts: not up, .*\[testbed\]\s+next: pulumi up -s hosts/);
    assert.doesNotMatch(out + err, /^\s+at /m);
    assert.ok(performance.now() - started < 60_000, "the slow-error trap of Node 20 is back");
  });

  succeeded(await pulumi("up", "-s", "hosts", "--yes", "--skip-preview"));

  await t.test("a plan with an unknown topology is refused with its position", async () => {
    const plan = readFileSync(path.join(checkout, "plans/quick.yaml"), "utf8");
    const file = path.join(checkout, ".ztbench/bad.yaml");
    writeFileSync(file, plan.replace("topology: jwt", "topology: jwtt"));
    const message = /bad\.yaml:\d+:15: treatments\.1\.topology: must be one of baseline, jwt/;
    refused(await ztbench("campaign", file), 3, message);
  });

  await t.test("a campaign measures every treatment and prints the table", async () => {
    const done = succeeded(await ztbench("campaign", "plans/quick.yaml"));
    for (const label of ["baseline", "jwt", "gateway", "A/A"]) {
      assert.match(done.out, new RegExp(`^${label}\\b`, "m"));
    }
    assert.match(done.out, /lab: not comparable to bare metal/);
    const [bundle = ""] = readdirSync(path.join(checkout, "results"));
    const again = succeeded(await ztbench("report", `results/${bundle}`));
    assert.equal(again.out, done.out, "the report of the same bundle says something else");
  });

  await t.test("pulumi by hand: up, no changes, destroy", async () => {
    succeeded(await pulumi("up", "-s", "gateway", "--yes", "--skip-preview"));
    succeeded(await pulumi("preview", "-s", "gateway", "--expect-no-changes"));
    const other = await pulumi("up", "-s", "jwt", "--yes", "--skip-preview");
    assert.match(other.out + other.err, /held by stack gateway/);
    succeeded(await pulumi("destroy", "-s", "gateway", "--yes", "--skip-preview"));
  });

  await t.test("the lab stays up while stacks hold resources", async () => {
    const message = /^ztbench: lab: stacks still hold resources, hosts \(\d+ resources\)/m;
    refused(await ztbench("lab", "down", ...labWords), 4, message);
    const status = succeeded(await ztbench("lab", "status", ...labWords));
    assert.match(status.out, /^lab: up/);
  });

  await t.test("after the lab is lost, its stacks deploy anew instead of believing", async () => {
    await labDown(lab);
    const lost = await pulumi("destroy", "-s", "hosts", "--yes", "--skip-preview");
    assert.notEqual(lost.code, 0, "hosts that are gone cannot be restored");
    succeeded(await ztbench("lab", "up", ...labWords));
    succeeded(await pulumi("up", "-s", "hosts", "--yes", "--skip-preview"));
    succeeded(await pulumi("preview", "-s", "hosts", "--expect-no-changes"));
  });

  await t.test(
    "hosts as their distribution has them are measured, and never compared",
    async () => {
      succeeded(await ztbench("lab", "up", "--stock", ...labWords));
      const message =
        /labc: hosts are not tuned by profile stock, \S.* is leftover .* none allowed/;
      refused(await ztbench("campaign", "plans/quick.yaml"), 4, message);
      succeeded(await pulumi("up", "-s", "hosts", "--yes", "--skip-preview"));
      const plan = readFileSync(path.join(checkout, "plans/quick.yaml"), "utf8");
      const short = path.join(checkout, ".ztbench/short.yaml");
      writeFileSync(short, plan.replace(/ {2}- label: gateway\n.*\n/, ""));
      const done = succeeded(await ztbench("campaign", short));
      assert.match(done.out, /tuning stock, scheduling/);
      const bundles = readdirSync(path.join(checkout, "results")).sort();
      const [first = "", last = ""] = [bundles[0], bundles.at(-1)];
      const compared = await ztbench("compare", `results/${first}`, `results/${last}`);
      assert.equal(compared.code, 7, compared.err);
      assert.match(compared.out, /testbed\.tuningProfile: repro in A, stock in B/);
    },
  );

  await t.test("--force forgets what the stacks hold", async () => {
    const down = succeeded(await ztbench("lab", "down", "--force", ...labWords));
    assert.match(down.err, /forgot what stack hosts held/);
  });

  assert.deepEqual(differences(untouched, await takeSnapshot(), lab.layout), []);
  const status = await $({ cwd: checkout })`git status --porcelain`;
  assert.equal(status.stdout, "", "the checkout is not clean");
});
