import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { requireJudgeable } from "../../../cli/budget.ts";
import { budgetSchema } from "../../../contracts/budget.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { planSchema } from "../../../contracts/plan.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");

for (const file of readdirSync(path.join(root, "budgets"))) {
  test(`budgets/${file} can be judged by the plan that is called like it`, () => {
    const budget = parseDocument(budgetSchema, read(`budgets/${file}`), file);
    const plan = parseDocument(planSchema, read(`plans/${file}`), file);
    assert.equal(`${budget.name}.yaml`, file);
    assert.doesNotThrow(() => {
      requireJudgeable(budget, plan);
    });
    const isSearched = budget.budgets.some(({ metric }) => metric === "throughputLoss");
    if (isSearched) assert.notEqual(plan.capacity, undefined);
  });
}

test("what a plan does not measure is told before the campaign begins", () => {
  const budget = parseDocument(budgetSchema, read("budgets/regress.yaml"), "regress.yaml");
  const plan = parseDocument(planSchema, read("plans/quick.yaml"), "quick.yaml");
  assert.throws(() => {
    requireJudgeable(budget, plan);
  }, /budget regress: token-p99: jwt has 1000\/s, not 5000\/s; .*treatment mtls-h1 is not in plan/);
});

test("renewals are judged by the plan's objective, so that it must have one", () => {
  const budget = parseDocument(budgetSchema, read("budgets/rotation.yaml"), "rotation.yaml");
  const whole = parseDocument(planSchema, read("plans/rotation.yaml"), "plan.yaml");
  const { rotation, ...plan } = whole;
  const placebo = {
    ...budget,
    budgets: budget.budgets.map((b) => ({ ...b, treatments: ["placebo"] })),
  };
  assert.throws(() => {
    requireJudgeable(placebo, whole);
  }, /renewal: placebo is a placebo itself/);
  assert.notEqual(rotation, undefined);
  assert.throws(() => {
    requireJudgeable(budget, plan);
  }, /budget rotation: renewal: plan rotation has no rotation\.sloMilliseconds to judge by/);
});

let bundle: string;
let home: string;
before(async () => {
  home = await mkdtemp(path.join(tmpdir(), "ztbench-budget-"));
  bundle = await makeBundle({
    blocks: 2,
    durationSeconds: 2,
    content: ({ label }, plan) => ({
      rows: steadyRows(plan, () => (label === "gateway" ? 300_000 : 200_000)),
      cpuPerRequestUs: 100,
    }),
  });
});
after(async () => {
  await removeBundle(bundle);
  await rm(home, { recursive: true });
});

type Ended = { code: number; stdout: string; stderr: string };
function budget(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const program = path.join(root, "ztbench");
    const child = execFile(program, ["budget", ...args], (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

/** p50 is 320 µs against 220 µs in every block: 45 % more. */
async function limitOf(share: number, label = "gateway"): Promise<string> {
  const file = path.join(home, `limit-${share}-${label}.yaml`);
  await writeFile(
    file,
    `schema: ztbench/budget/1
name: limit
purpose: a test
testbedClass: lab
budgets:
  - id: p50
    treatments: [${label}]
    metric: latencyLoss
    quantile: p50
    rateQps: 1000
    limitShare: ${share}
    confidence: 0.95
`,
  );
  return file;
}

test("a limit that is kept ends with exit code 0, one that is broken with 6", async () => {
  const kept = await budget(bundle, await limitOf(0.5));
  assert.equal(kept.code, 0, kept.stderr);
  assert.match(kept.stdout, /^conclusion: pass$/m);
  const junit = path.join(home, "budget.xml");
  const broken = await budget(bundle, await limitOf(0.4), "--junit", junit, "--json");
  assert.equal(broken.code, 6);
  const report = JSON.parse(broken.stdout) as { outcome: string; results: { outcome: string }[] };
  assert.deepEqual([report.outcome, report.results[0]?.outcome], ["breach", "breach"]);
  assert.match(await readFile(junit, "utf8"), /<failure type="breach" message="gateway: latency/);
});

test("a limit that cannot be judged ends with exit code 7 and its reason", async () => {
  const { code, stdout } = await budget(bundle, await limitOf(0.4, "mesh"));
  assert.equal(code, 7);
  assert.match(stdout, /no treatment of that label, the bundle has baseline, gateway/);
});

test("a bad document ends with exit code 3 and its position", async () => {
  const file = path.join(home, "bad.yaml");
  await writeFile(file, "schema: ztbench/budget/1\nname: limit\nbudget: []\n");
  const { code, stderr } = await budget(bundle, file);
  assert.equal(code, 3);
  assert.match(stderr, /bad\.yaml:3:1: budget: unknown key/);
});
