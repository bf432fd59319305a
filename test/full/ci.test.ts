/** The script for CI on a lab of its own, in a checkout of its own: results, ends, and no remains. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { labDown, labStatus } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { listProcesses } from "../../hosts/lab/processes.ts";
import { type Snapshot, takeSnapshot } from "../../hosts/lab/snapshot.ts";
import { makeCheckout } from "../support/checkout.ts";
import { remainsOf } from "../support/remains.ts";
import { parseXml } from "../support/xml.ts";

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root, for a lab";
const lab = openLab({ name: "labi", network: 13 });
const ofLab = ["--name", "labi", "--network", "13"];
const deadlineMs = 900_000;

let checkout: string;
let pristine: Snapshot;

const plan = `schema: ztbench/plan/1
name: ci-test
purpose: show that a check of CI runs, on as few requests as it takes
publishes: nothing
seed: 7
blocks: 2
baseline: baseline
treatments:
  - { label: baseline, topology: baseline }
  - { label: jwt, topology: jwt }
load:
  rateQps: 100
  prewarm: { rateQps: 50, seconds: 1 }
  warmupSeconds: 2
  durationSeconds: 4
  connections: 8
equivalenceMargin: 0.05
`;

/** No machine is so slow or so fast that the first is broken or the second is kept. */
const budget = (limitMicroseconds: number) => `schema: ztbench/budget/1
name: ci-test
purpose: decide in two blocks
testbedClass: lab
budgets:
  - id: cpu
    treatments: [jwt]
    metric: cpuDifference
    rateQps: 100
    limitMicroseconds: ${limitMicroseconds}
    confidence: 0.95
`;

function prepareCheckout(): string {
  const directory = makeCheckout("ci-test");
  writeFileSync(path.join(directory, "plan.yaml"), plan);
  writeFileSync(path.join(directory, "wide.yaml"), budget(1_000_000));
  writeFileSync(path.join(directory, "broken.yaml"), budget(-1_000_000));
  return directory;
}

before(async () => {
  if (!isRoot) return;
  await labDown(lab);
  pristine = await takeSnapshot();
  checkout = prepareCheckout();
});

after(async () => {
  if (!isRoot) return;
  await labDown(lab);
  rmSync(checkout, { recursive: true });
});

type Ended = { readonly code: number | null; readonly said: string };
type Check = { readonly child: ChildProcess; readonly ended: Promise<Ended> };

function start(...args: string[]): Check {
  const child = spawn(path.join(checkout, "ci", "regress.sh"), [...args, ...ofLab], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: deadlineMs,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data: Buffer) => (said += data.toString()));
  }
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code) => {
      resolve({ code, said });
    });
  });
  return { child, ended };
}

const measure = (budgetFile: string, ...more: string[]): Check =>
  start("measure", "--plan", "plan.yaml", "--budget", budgetFile, ...more);

const inCheckout = (...parts: string[]) => path.join(checkout, ...parts);

async function appears(file: string, check: Check): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!existsSync(file)) {
    assert.equal(check.child.exitCode, null, `ended before there was ${file}`);
    assert.ok(Date.now() < deadline, `${file} did not appear`);
    await delay(50);
  }
}

/** Also shows how long each step took. */
async function assertNothingLeft({ said }: Ended, context: TestContext): Promise<void> {
  for (const line of said.match(/^regress: .*$/gm) ?? []) context.diagnostic(line);
  const { state, traces } = await labStatus(lab);
  assert.deepEqual({ state, traces }, { state: "down", traces: [] }, said);
  const networks = ["198.18.29."];
  assert.deepEqual(remainsOf(pristine, await takeSnapshot(), lab.layout, networks), [], said);
}

/** The script and all that it started, but not the hosts of the lab. */
async function killAll({ pid }: ChildProcess): Promise<void> {
  const processes = await listProcesses();
  const doomed = [pid];
  for (const parent of doomed) {
    doomed.push(...processes.filter((p) => p.parent === parent).map((p) => p.pid));
  }
  for (const each of doomed) {
    if (each !== undefined) spawnSync("kill", ["-KILL", String(each)]);
  }
}

test(
  "a check that keeps its budget ends with 0, results, and nothing on the machine",
  {
    skip,
  },
  async (context) => {
    const ended = await measure("wide.yaml", "--out", "kept").ended;
    assert.equal(ended.code, 0, ended.said);
    await assertNothingLeft(ended, context);
    assert.match(ended.said, /absent: nothing of lab labi is on this machine/);
    const junit = parseXml(readFileSync(inCheckout("kept.xml"), "utf8"));
    assert.equal(junit.name, "testsuites");
    assert.deepEqual(
      [junit.attributes["tests"], junit.attributes["failures"], junit.attributes["errors"]],
      ["1", "0", "0"],
    );
    assert.ok(existsSync(inCheckout("kept", "SHA256SUMS")));
  },
);

test(
  "the same bundle under a budget that it breaks ends with 6, and says so in JUnit",
  {
    skip,
  },
  async (context) => {
    const ended = await measure("broken.yaml", "--out", "kept", "--resume").ended;
    assert.equal(ended.code, 6, ended.said);
    await assertNothingLeft(ended, context);
    const junit = parseXml(readFileSync(inCheckout("kept.xml"), "utf8"));
    assert.equal(junit.attributes["failures"], "1");
  },
);

test("a check that CI cancels ends with 130 and leaves nothing", { skip }, async (context) => {
  const check = measure("wide.yaml", "--out", "cancelled");
  await appears(inCheckout("cancelled", "manifest.json"), check);
  check.child.kill("SIGTERM");
  const ended = await check.ended;
  assert.equal(ended.code, 130, ended.said);
  await assertNothingLeft(ended, context);
  assert.ok(!existsSync(inCheckout("cancelled.xml")));
});

test(
  "what a check leaves that was killed with all its children, down removes",
  {
    skip,
  },
  async (context) => {
    const check = measure("wide.yaml", "--out", "killed");
    await appears(inCheckout("killed", "manifest.json"), check);
    await killAll(check.child);
    await check.ended;
    assert.notEqual((await labStatus(lab)).state, "down");
    const ended = await start("down", "--out", "killed").ended;
    assert.equal(ended.code, 0, ended.said);
    await assertNothingLeft(ended, context);
  },
);
