import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Analysis } from "../../../analysis/analysis.ts";
import {
  blocksToDecide,
  judgeBudget,
  judgeSample,
  throughputSample,
} from "../../../analysis/budget.ts";
import { renderBudget } from "../../../analysis/budget-table.ts";
import { renderBudgetJunit } from "../../../analysis/exports/budget-junit.ts";
import { value } from "../../../analysis/cell.ts";
import type { RotationFigures } from "../../../analysis/rotation-arms.ts";
import type { RatioEstimate } from "../../../analysis/loss.ts";
import { analyse } from "../../../analysis/report.ts";
import { type Budget, type BudgetEntry, budgetSchema } from "../../../contracts/budget.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";
import { parseXml } from "../../support/xml.ts";

const gatewayUs = [150, 151, 152, 153];

let directory: string;
let analysis: Analysis;
before(async () => {
  // Per block the gateway costs 50 to 53 µs of CPU and 100 µs of time; one request in 1000 fails.
  directory = await makeBundle({
    blocks: 4,
    labels: ["baseline", "gateway", "jwt"],
    durationSeconds: 10,
    content: ({ block, label }, plan) => ({
      rows: steadyRows(plan, () => (label === "gateway" ? 300_000 : 200_000)).map((row) =>
        label === "jwt" && row.seq % 1000 === 7 ? { ...row, code: 503, error: "503" } : row,
      ),
      cpuPerRequestUs: label === "gateway" ? (gatewayUs[block - 1] ?? 0) : 100,
    }),
  });
  analysis = await analyse(directory);
});
after(() => removeBundle(directory));

/** Metric and limit, with what else that metric asks for. */
type Limits = Readonly<Record<string, unknown>> & { readonly metric: BudgetEntry["metric"] };

function budgetOf(limits: Limits, changes: object = {}, document: object = {}): Budget {
  return budgetSchema.parse({
    schema: "ztbench/budget/1",
    name: "test",
    purpose: "known answers",
    testbedClass: "lab",
    budgets: [
      {
        id: "one",
        treatments: ["gateway"],
        rateQps: 1000,
        confidence: 0.95,
        ...limits,
        ...changes,
      },
    ],
    ...document,
  });
}

const judge = (budget: Budget, of: Analysis = analysis) => {
  const { outcome, results } = judgeBudget(budget, of);
  const [result] = results;
  assert.ok(result !== undefined);
  assert.equal(result.outcome, outcome);
  return result;
};

/** The analysis with another p99 ratio of the gateway. */
function withRatio(estimate: RatioEstimate): Analysis {
  const { comparison } = analysis;
  const losses = comparison.losses.map((loss) =>
    loss.label === "gateway"
      ? { ...loss, ratios: { ...loss.ratios, responseP99: estimate } }
      : loss,
  );
  return { ...analysis, comparison: { ...comparison, losses } };
}

/** ln ratio with mean 0.2 and sd 0.1 over 5 blocks: 0.2 -+ 2.776445 * 0.1 / sqrt(5). */
const noisy: RatioEstimate = {
  kind: "estimate",
  ratio: Math.exp(0.2),
  low: Math.exp(0.2 - 0.124166),
  high: Math.exp(0.2 + 0.124166),
  pairs: 5,
  sdLog: 0.1,
  detectableRatio: 1.2,
  verdict: "loss",
  p: { different: 0.01, equivalent: 1 },
};

const p99 = (limitShare: number): Limits => ({
  metric: "latencyLoss",
  quantile: "p99",
  limitShare,
});

test("a limit above the whole interval is kept, and what is used of it is told", () => {
  const result = judge(budgetOf(p99(0.4)), withRatio(noisy));
  assert.equal(result.outcome, "pass");
  // exp(0.324166) - 1 = 0.38288
  assert.ok(Math.abs((result.high ?? 0) - 0.38288) < 1e-4, String(result.high));
  assert.ok(Math.abs((result.used ?? 0) - 0.38288 / 0.4) < 1e-3);
});

test("a limit below the whole interval is broken", () => {
  // exp(0.075834) - 1 = 0.07878
  assert.equal(judge(budgetOf(p99(0.078)), withRatio(noisy)).outcome, "breach");
  assert.equal(judge(budgetOf(p99(0.079)), withRatio(noisy)).outcome, "at risk");
});

test("a limit inside of the interval is at risk, with the blocks that would decide", () => {
  // ln 1.284025 = 0.25, so the distance is 0.05: t(0.975, 17) * 0.1 / sqrt(18) = 0.04973.
  const result = judge(budgetOf(p99(Math.expm1(0.25))), withRatio(noisy));
  assert.equal(result.outcome, "at risk");
  assert.equal(result.blocksNeeded, 18);
  assert.equal(result.blocks, 5);
});

test("a point that breaks the limit does not, where the interval does not", () => {
  const result = judge(budgetOf(p99(0.2)), withRatio(noisy));
  assert.ok((result.centre ?? 0) > 0.2);
  assert.equal(result.outcome, "at risk");
});

test("a higher confidence asks for more", () => {
  // t(0.995, 4) = 4.604: the upper end is exp(0.2 + 0.2059) - 1 = 0.5008.
  const strict = judge(budgetOf(p99(0.45), { confidence: 0.99 }), withRatio(noisy));
  assert.equal(strict.outcome, "at risk");
  assert.ok(Math.abs((strict.high ?? 0) - 0.5008) < 1e-3, String(strict.high));
});

test("blocks to decide are the least whose half interval reaches no further than the limit", () => {
  assert.equal(blocksToDecide(0.1, 0.05, 0.95), 18);
  // t(0.975, 1) / sqrt(2) = 8.98: two blocks decide only far away.
  assert.equal(blocksToDecide(0.1, 0.9, 0.95), 2);
  assert.equal(blocksToDecide(0.1, 0.89, 0.95), 3);
  assert.equal(blocksToDecide(0.1, 0.0001, 0.95), undefined);
});

test("differences are judged in microseconds", () => {
  // 300 against 200 µs, both 20 µs late, without any spread.
  const limits = (limitMicroseconds: number): Limits => ({
    metric: "latencyDifference",
    quantile: "p50",
    limitMicroseconds,
  });
  assert.equal(judge(budgetOf(limits(101))).outcome, "pass");
  assert.equal(judge(budgetOf(limits(99))).outcome, "breach");
});

test("CPU per request is judged against the baseline and over another treatment", () => {
  // 50, 51, 52, 53: mean 51.5, sd 1.29099, half interval 3.18245 * 1.29099 / 2 = 2.05426.
  const over = judge(budgetOf({ metric: "cpuDifference", over: "jwt", limitMicroseconds: 53 }));
  assert.equal(over.outcome, "at risk");
  assert.ok(Math.abs((over.centre ?? 0) - 51.5) < 0.1, String(over.centre));
  assert.ok(Math.abs((over.high ?? 0) - 53.55) < 0.1, String(over.high));
  const total = judge(budgetOf({ metric: "cpuDifference", limitMicroseconds: 53 }));
  assert.ok(Math.abs((total.centre ?? 0) - (over.centre ?? 0)) < 1e-9);
  assert.equal(
    judge(budgetOf({ metric: "cpuDifference", limitMicroseconds: 49 })).outcome,
    "breach",
  );
});

test("mean latencies have layers, since means add up", () => {
  const layer = judge(
    budgetOf({ metric: "meanLatencyDifference", over: "baseline", limitMicroseconds: 100.1 }),
  );
  assert.equal(layer.outcome, "pass");
  assert.ok(Math.abs((layer.centre ?? 0) - 100) < 1e-6);
});

test("quantiles have none: a layer of one is refused with its position", () => {
  const text = [
    "schema: ztbench/budget/1",
    "name: x",
    "purpose: y",
    "testbedClass: lab",
    "budgets:",
    "  - id: a",
    "    treatments: [gateway]",
    "    metric: latencyDifference",
    "    quantile: p99",
    "    over: jwt",
    "    rateQps: 1000",
    "    limitMicroseconds: 5",
    "    confidence: 0.95",
  ].join("\n");
  assert.throws(
    () => parseDocument(budgetSchema, text, "budget.yaml"),
    /budget\.yaml:10:5: budgets\.0\.over: unknown key/,
  );
});

test("failures count over all planned requests, also in runs that a gate made invalid", () => {
  const failing = (limitShare: number) =>
    judge(budgetOf({ metric: "failedShare", limitShare }, { treatments: ["jwt"] }));
  // 10 of 10000 in each of four runs: 0.001; Wilson's interval of 40 in 40000 is 0.00073 to 0.00136.
  const found = failing(0.001);
  assert.equal(found.outcome, "at risk");
  assert.ok(Math.abs((found.centre ?? 0) - 0.001) < 1e-9);
  assert.ok(Math.abs((found.low ?? 0) - 0.000734) < 1e-5, String(found.low));
  assert.ok(Math.abs((found.high ?? 0) - 0.001362) < 1e-5, String(found.high));
  assert.equal(failing(0.0014).outcome, "pass");
  assert.equal(failing(0.0007).outcome, "breach");
});

test("bad requests of a renewal are judged on their interval beside the placebo", () => {
  const renewed: Analysis = {
    ...analysis,
    rotations: {
      sloMilliseconds: 10,
      arms: [
        {
          ...{ label: "gateway", placebo: "baseline", certificateSeconds: value(10, "count") },
          ...{ events: value(8, "count"), figures: {} as RotationFigures },
          badPerEvent: { kind: "estimate", mean: 3, low: 1, high: 6, pairs: 4 },
        },
      ],
    },
  };
  const judged = (limitRequests: number, of = renewed) =>
    judgeBudget(budgetOf({ metric: "badPerRenewal", limitRequests }), of).results[0];
  assert.equal(judged(6)?.outcome, "pass");
  assert.equal(judged(6)?.used, 1);
  assert.equal(judged(5.9)?.outcome, "at risk");
  assert.equal(judged(0.9)?.outcome, "breach");
  assert.match(
    renderBudget(judgeBudget(budgetOf({ metric: "badPerRenewal", limitRequests: 6 }), renewed)),
    /gateway +badPerRenewal +6\.0 +3\.0 \[1\.0, 6\.0\] +100 % +pass/,
  );
  assert.equal(judged(6, analysis)?.outcome, "not judged");
  assert.throws(
    () => budgetOf({ metric: "badPerRenewal", limitRequests: 6 }, { confidence: 0.9 }),
    /must be 0\.95 for badPerRenewal/,
  );
});

test("no failure at all is no proof of none", () => {
  const none = judge(budgetOf({ metric: "failedShare", limitShare: 0 }));
  assert.equal(none.outcome, "at risk");
});

const unjudged: [name: string, limits: object, document: object, reason: RegExp][] = [
  ["at another rate", { rateQps: 500 }, {}, /^the limit is one at 500\/s, measured at 1000\/s$/],
  ["of another testbed class", {}, { testbedClass: "metal" }, /one for metal, measured in a lab/],
  ["of an unknown treatment", { treatments: ["gatewayy"] }, {}, /the bundle has baseline, gateway/],
  ["of the baseline", { treatments: ["baseline"] }, {}, /which has no cost against itself/],
];
for (const [name, changes, document, reason] of unjudged) {
  test(`a limit ${name} is not judged, and says why`, () => {
    const result = judge(budgetOf(p99(0.3), changes, document));
    assert.equal(result.outcome, "not judged");
    assert.match(result.reason ?? "", reason);
  });
}

test("a loss of throughput is judged as 1 - ratio of the capacities", () => {
  const ratio: RatioEstimate = { ...noisy, ratio: 0.8 };
  const judged = (limitShare: number) => {
    const sample = throughputSample(ratio, limitShare);
    assert.ok(typeof sample !== "string");
    return judgeSample(sample, 0.95);
  };
  // -ln 0.8 = 0.22314 -+ 0.124166: 1 - exp(-0.34731) = 0.29341 and 1 - exp(-0.09898) = 0.09424.
  const { centre, low, high } = judged(0.2);
  for (const [found, wanted] of [
    [centre, 0.2],
    [low, 0.09424],
    [high, 0.29341],
  ]) {
    assert.ok(Math.abs((found ?? 0) - (wanted ?? 0)) < 1e-4, `${found} for ${wanted}`);
  }
  assert.equal(judged(0.294).outcome, "pass");
  assert.equal(judged(0.293).outcome, "at risk");
  assert.equal(judged(0.094).outcome, "breach");
});

test("a limit of capacities that nobody searched is not judged", () => {
  const result = judge(budgetOf({ metric: "throughputLoss", limitShare: 0.5 }));
  assert.deepEqual([result.outcome, result.reason], ["not judged", "not measured"]);
});

test("one block has no interval", () => {
  const point: RatioEstimate = {
    kind: "point",
    ratio: 9,
    pairs: 1,
    verdict: "inconclusive",
    reason: "one block",
  };
  assert.equal(judge(budgetOf(p99(0.3)), withRatio(point)).reason, "one block");
});

test("a misspelt unit and an id that comes twice are refused", () => {
  const [entry] = budgetOf(p99(0.3)).budgets;
  const parse = (budgets: object[]) =>
    budgetSchema.safeParse({ ...budgetOf(p99(0.3)), budgets }).error?.issues[0]?.message ?? "";
  assert.match(parse([entry ?? {}, entry ?? {}]), /id is already used/);
  assert.match(parse([{ ...entry, limitPercent: 3 }]), /unrecognized/i);
});

test("the worst outcome is that of the whole, and JUnit keeps them apart", () => {
  const base = { treatments: ["gateway"], rateQps: 1000, confidence: 0.95 };
  const budget = budgetSchema.parse({
    ...budgetOf(p99(1)),
    budgets: [
      { ...base, id: "kept", ...p99(1) },
      { ...base, id: "risky", metric: "cpuDifference", over: "jwt", limitMicroseconds: 53 },
      { ...base, id: "unknown", ...p99(1), treatments: ["<none>"] },
      { ...base, id: "broken", ...p99(0.1) },
    ],
  });
  const report = judgeBudget(budget, analysis);
  assert.equal(report.outcome, "breach");
  const xml = renderBudgetJunit(report);
  assert.match(xml, /<testsuite .*tests="4" failures="1" errors="1" skipped="1">/);
  assert.match(xml, /name="unknown &lt;none&gt;"/);
  assert.match(
    xml,
    /<skipped message="gateway: cpuDifference over jwt may be 53\.0 µs.*\d+ blocks/,
  );
  assert.doesNotThrow(() => parseXml(xml));
  const text = renderBudget(report);
  assert.match(text, /^broken +gateway +latencyLoss p99 +10\.0 % .* breach$/m);
  assert.match(text, /^conclusion: breach$/m);
  assert.deepEqual(
    text.split("\n").filter((line) => line.length > 100),
    [],
  );
});
