/** Layers of cost from ladders whose layers are known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { attribute, type Attribution } from "../../../analysis/attribution.ts";
import { none, value } from "../../../analysis/cell.ts";
import type { JudgedRun } from "../../../analysis/judged-run.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";

const topologies = ["direct", "tcp", "http", "crypto", "policy", "rules"] as const;
type Label = (typeof topologies)[number];

function planOf(ladder: unknown, blocks = 5): Plan {
  return planSchema.parse({
    schema: "ztbench/plan/1",
    name: "ladder",
    purpose: "a test",
    seed: 1,
    blocks,
    baseline: "direct",
    treatments: topologies.map((label) => ({ label, topology: "baseline" })),
    load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 10, connections: 8 },
    ladder,
    equivalenceMargin: 0.05,
  });
}

const full = {
  rungs: { R0: "direct", R2: "tcp", R3: "http", R4: "crypto", R5: "policy" },
  policyWithoutCrypto: "rules",
};

/** Mean latency in microseconds; CPU is half of it. */
const costUs: Record<Label, number> = {
  direct: 100,
  tcp: 160,
  http: 200,
  crypto: 400,
  policy: 700,
  rules: 500,
};

function run(block: number, label: Label, arm: "a" | "b", us: number, failed = 0): JudgedRun {
  const ns = value(us * 1000, "ns");
  const summary = { count: 1000, minNs: ns, maxNs: ns, meanNs: ns };
  const series = { ...summary, quantiles: { p50: ns, p95: ns, p99: ns, "p99.9": none("few") } };
  return {
    name: `${label}-${block}-${arm}`,
    run: 1,
    block,
    position: 1,
    label,
    arm,
    condition: "steady",
    verdict: "VALID",
    gates: [],
    latency: { response: series, service: series, lag: series, failed },
    resources: { units: [], cpuPerRequest: value(us / 2, "us"), cores: value(us / 1e4, "cores") },
  } as unknown as JudgedRun;
}

/** Blocks that differ in level by what cancels within each. */
function runsOf(costs: Record<Label, number>, blocks = 5): JudgedRun[] {
  return Array.from({ length: blocks }, (_, index) => index + 1).flatMap((block) =>
    topologies.flatMap((label) => {
      const us = costs[label] + 10 * block;
      const arms: ("a" | "b")[] = label === "direct" ? ["a", "b"] : ["a"];
      return arms.map((arm) => run(block, label, arm, us));
    }),
  );
}

/** What is attributed of a plan that has a ladder. */
function attributed(plan: Plan, runs: readonly JudgedRun[]): Attribution {
  const found = attribute(plan, runs);
  if (found === undefined) throw new Error("the plan has no ladder");
  return found;
}

const meanOf = (cost: { kind: string; mean?: number } | undefined) =>
  cost?.kind === "estimate" ? (cost.mean ?? Number.NaN) : Number.NaN;
const near = (found: number, wanted: number) => {
  assert.ok(Math.abs(found - wanted) < 1e-6, `${found}, wanted ${wanted}`);
};

test("each layer is recovered, whatever the block does to all rungs", () => {
  const found = attributed(planOf(full), runsOf(costUs));
  const layers = new Map(found.layers.map((layer) => [layer.layer, layer]));
  near(meanOf(layers.get("transport crypto")?.costs.meanNs), 200_000);
  near(meanOf(layers.get("transport crypto")?.costs.cpuUs), 100);
  near(meanOf(layers.get("local policy")?.costs.meanNs), 300_000);
  near(meanOf(found.total.costs.meanNs), 600_000);
});

test("a layer whose lower rung is absent starts below, and says so", () => {
  const found = attributed(planOf(full), runsOf(costUs));
  const proxy = found.layers.find(({ layer }) => layer === "proxy forwarding");
  assert.equal(proxy?.from, "R0");
  assert.match(proxy.note ?? "", /^no rung R1: holds what lies between R0 and it, too$/);
  near(meanOf(proxy.costs.meanNs), 100_000);
  assert.deepEqual(found.missing, [
    "infrastructure: no rung R1 (on the pods' network, no proxy)",
    "remote policy: no rung R6 (with remote policy, its answers cached)",
    "cold policy: no rung R7 (with remote policy, nothing cached)",
  ]);
});

test("the steps add up to the total", () => {
  const found = attributed(planOf(full), runsOf(costUs));
  const residual = found.residual["meanNs"];
  assert.ok(residual?.kind === "value" && Math.abs(residual.value) < 1e-6);
  assert.equal(found.steps.length, 4);
});

test("a block without a valid run of one rung is used for none", () => {
  const runs = runsOf(costUs).map((one): JudgedRun =>
    one.block === 2 && one.label === "http" ? { ...one, verdict: "INVALID" } : one,
  );
  assert.deepEqual(attributed(planOf(full), runs).blocks, [1, 3, 4, 5]);
});

test("no mean is made of a run in which requests failed", () => {
  const runs = [...runsOf(costUs), run(6, "direct", "a", 1)];
  const spoiled = runs.map((one): JudgedRun =>
    one.label === "crypto" && one.block === 1 ? run(1, "crypto", "a", 400, 3) : one,
  );
  const found = attributed(planOf(full), spoiled);
  assert.deepEqual(found.total.costs.meanNs.kind, "estimate");
  const step = found.steps.find(({ to }) => to === "R4");
  assert.deepEqual(step?.costs.meanNs, none("3 requests failed"));
  assert.equal(step.costs.cpuUs.kind, "estimate");
});

test("costs that do not interact are told as such", () => {
  // Policy costs 300 with and without crypto.
  const { interaction } = attributed(planOf(full), runsOf(costUs));
  assert.equal(interaction?.verdict, "does not matter");
  near(meanOf(interaction.meanNs), 0);
});

test("an interval that reaches from no interaction to a large one leaves it open", () => {
  // sd = sqrt(100000/4) us = 158.1 us; half-width 196 us, more than a fifth of 500 us.
  const noise = [-200, -100, 0, 100, 200];
  const runs = runsOf(costUs).map((one): JudgedRun =>
    one.label === "rules"
      ? run(one.block, "rules", "a", 500 + 10 * one.block + (noise[one.block - 1] ?? 0))
      : one,
  );
  const { interaction } = attributed(planOf(full), runs);
  assert.equal(interaction?.verdict, "open");
  near(meanOf(interaction.meanNs), 0);
});

test("an interaction that matters is shared alike between both", () => {
  // Policy costs 100 without crypto and 300 with it: 200 more, of a total of 500.
  const { interaction } = attributed(planOf(full), runsOf({ ...costUs, rules: 300 }));
  // Blocks differ by nothing here, so the interval is a point and excludes 0.
  assert.equal(interaction?.verdict, "matters");
  near(interaction.shared?.cryptoNs ?? Number.NaN, 300_000);
  near(interaction.shared?.policyNs ?? Number.NaN, 200_000);
});

test("noise gives a layer an interval that holds what was put in", () => {
  // Deviations with a mean of 0: the estimate is exact, the interval is that of the deviations.
  const noise = [-20, -10, 0, 10, 20];
  const runs = runsOf(costUs).map((one): JudgedRun =>
    one.label === "crypto"
      ? run(one.block, "crypto", "a", 400 + 10 * one.block + (noise[one.block - 1] ?? 0))
      : one,
  );
  const step = attributed(planOf(full), runs).steps.find(({ to }) => to === "R4");
  const cost = step?.costs.meanNs;
  assert.ok(cost?.kind === "estimate");
  near(cost.mean, 200_000);
  // sd = sqrt(1000/4) us = 15.811 us; t(0.975; 4) = 2.77645; half-width = 19.6324 us.
  assert.ok(Math.abs(cost.high - cost.mean - 19_632.4) < 1, String(cost.high - cost.mean));
});

test("a plan without a ladder has no attribution", () => {
  assert.equal(attribute(planOf(undefined), runsOf(costUs)), undefined);
});

for (const [name, ladder, complaint] of [
  ["one rung", { rungs: { R0: "direct" } }, /must have R0 and one rung more/],
  ["no R0", { rungs: { R3: "http", R4: "crypto" } }, /must have R0 and one rung more/],
  ["an unknown treatment", { rungs: { R0: "direct", R3: "no" } }, /must name treatments, found no/],
  ["an unknown rung", { rungs: { R0: "direct", R9: "http" } }, /R9/],
] as const) {
  test(`a ladder with ${name} is refused`, () => {
    assert.throws(() => planOf(ladder), complaint);
  });
}

test("rungs of different rates are refused", () => {
  const plan = planOf(full);
  const treatments = plan.treatments.map((treatment) =>
    treatment.label === "tcp" ? { ...treatment, rateQps: 50, baseline: "http" } : treatment,
  );
  const { success, error } = planSchema.safeParse({ ...plan, treatments });
  assert.equal(success, false);
  assert.match(error.message, /must have one rate on all rungs, found 100, 50/);
});
