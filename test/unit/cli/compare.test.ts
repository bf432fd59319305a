import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const bundles: string[] = [];

async function campaign(seed: number, connections = 32): Promise<string> {
  const bundle = await makeBundle({
    blocks: 2,
    durationSeconds: 2,
    editPlan: (plan) => ({ ...plan, seed, load: { ...plan.load, connections } }),
    content: ({ label }, plan) => ({
      rows: steadyRows(plan, () => (label === "gateway" ? 300_000 : 200_000)),
      cpuPerRequestUs: label === "gateway" ? 150 : 100,
    }),
  });
  bundles.push(bundle);
  return bundle;
}

let [first, second, other] = ["", "", ""];
before(async () => {
  [first, second, other] = [await campaign(1), await campaign(2), await campaign(3, 64)];
});
after(() => Promise.all(bundles.map(removeBundle)));

type Ended = { code: number; stdout: string; stderr: string };
function compare(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      path.join(root, "ztbench"),
      ["compare", ...args],
      (_error, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, stdout, stderr });
      },
    );
  });
}

test("two campaigns that agree end with exit code 0 and say what differs", async () => {
  const { code, stdout, stderr } = await compare(first, second);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^gateway +p50 .* AGREE$/m);
  assert.match(stdout, /^ {2}seed: 1 in A, 2 in B$/m);
  assert.match(stdout, /^conclusion: AGREE$/m);
});

test("two of different settings end with exit code 7 and the key", async () => {
  const { code, stdout } = await compare(first, other, "--json");
  assert.equal(code, 7);
  const agreement = JSON.parse(stdout) as {
    conclusion: string;
    treatmentDifferences: Record<string, { key: string; a: string; b: string }[]>;
  };
  assert.equal(agreement.conclusion, "NOT COMPARABLE");
  assert.deepEqual(
    agreement.treatmentDifferences["gateway"]?.find(({ key }) => key === "load.connections"),
    { key: "load.connections", a: "32", b: "64" },
  );
});

test("a campaign is not compared with itself, nor with a copy", async (context) => {
  const home = await mkdtemp(path.join(tmpdir(), "ztbench-compare-"));
  context.after(() => rm(home, { recursive: true }));
  const copy = path.join(home, "copy");
  await cp(first, copy, { recursive: true });
  const { code, stderr } = await compare(first, copy);
  assert.equal(code, 7);
  assert.match(stderr, /^ztbench: compare: both are the same campaign/);
});

test("a lab's campaign is not comparable with published figures", async () => {
  const { code, stdout } = await compare(first, "published");
  assert.equal(code, 7);
  assert.match(stdout, /^Published against measured/);
});
