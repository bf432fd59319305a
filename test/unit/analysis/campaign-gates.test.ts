import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { analyse } from "../../../analysis/report.ts";
import { openBundle, type Bundle } from "../../../analysis/bundle.ts";
import type { Analysis } from "../../../analysis/analysis.ts";
import { none, value } from "../../../analysis/cell.ts";
import {
  type CampaignGateId,
  type CampaignInput,
  judgeCampaign,
} from "../../../analysis/gates/campaign-gates.ts";
import { stopReason } from "../../../analysis/live.ts";
import { makeBundle, normal, removeBundle, seeded, steadyRows } from "../../support/bundle.ts";

let directory: string;
let bundle: Bundle;
let analysis: Analysis;
let good: CampaignInput;

before(async () => {
  const random = seeded(4);
  directory = await makeBundle({
    blocks: 6,
    durationSeconds: 4,
    rateQps: 500,
    labels: ["baseline", "gateway", "jwt"],
    content: (_shape, plan) => {
      const factor = Math.exp(0.02 * normal(random));
      const latencyNs = () => 200_000 * factor * Math.exp(0.1 * normal(random));
      return { rows: steadyRows(plan, latencyNs), cpuPerRequestUs: 100 * factor };
    },
  });
  bundle = await openBundle(directory);
  analysis = await analyse(directory);
  const metal = { ...bundle.manifest.testbed, class: "metal" as const };
  good = {
    plan: bundle.plan,
    manifest: { ...bundle.manifest, testbed: metal },
    records: bundle.runs.map(({ record }) => record),
    runs: analysis.runs,
    noise: analysis.comparison.noise,
    ceilingQps: value(2000, "count"),
  };
});

after(() => removeBundle(directory));

const outcomes = (input: CampaignInput) =>
  judgeCampaign(input)
    .filter(({ outcome }) => outcome !== "pass")
    .map(({ id, outcome }) => `${id} ${outcome}`);

test("a campaign without fault passes all its gates", () => {
  assert.deepEqual(outcomes(good), []);
});

const faults: readonly [string, CampaignGateId, () => CampaignInput][] = [
  [
    "a driver that can do little more than the rate",
    "ceiling",
    () => ({ ...good, ceilingQps: value(999, "count") }),
  ],
  [
    "a plan younger than its first run",
    "plan-first",
    () => ({ ...good, manifest: { ...good.manifest, createdAt: "2026-09-22T00:00:00Z" } }),
  ],
  [
    "a run elsewhere than drawn",
    "order",
    () => ({
      ...good,
      records: good.records.map((r, i) => (i === 0 ? { ...r, position: 2 } : r)),
    }),
  ],
  [
    "a second baseline that always is slower",
    "noise",
    () => {
      const { ratios } = good.noise;
      const biased = ratios.responseP50;
      assert.equal(biased.kind, "estimate");
      const slower = { ...biased, ratio: 1.2 } as typeof biased;
      return { ...good, noise: { ...good.noise, ratios: { ...ratios, responseP50: slower } } };
    },
  ],
  [
    "latency that grows with the position in a block",
    "order-drift",
    () => ({
      ...good,
      runs: good.runs.map((run) => {
        assert.ok(run.latency);
        const scaled = value(300_000 * 1.2 ** run.position, "ns");
        const quantiles = { ...run.latency.response.quantiles, p50: scaled, p99: scaled };
        const response = { ...run.latency.response, quantiles };
        // The last block runs backwards, so that position and label can be told apart.
        return { ...run, label: "same", latency: { ...run.latency, response } };
      }),
    }),
  ],
];

for (const [what, gate, make] of faults) {
  test(`${what} trips just the campaign's gate "${gate}"`, () => {
    assert.deepEqual(outcomes(make()), [`${gate} invalid`]);
  });
}

test("a ceiling that nobody searched is not available, and no pass", () => {
  const unsearched = { ...good, ceilingQps: none("the driver's own ceiling was not searched") };
  assert.deepEqual(outcomes(unsearched), ["ceiling unavailable"]);
});

test("the stopping rule looks at widths only, and not before its least block", () => {
  const rule = { minBlocks: 5, maxBlocks: 6, metric: "responseP50" } as const;
  const ask = (change: object) =>
    stopReason(bundle.plan, { ...rule, halfWidth: 0.2, ...change }, analysis.runs);
  assert.match(ask({}) ?? "", /every interval of responseP50 is at most ±\d/);
  assert.equal(ask({ halfWidth: 0.0001 }), undefined);
  assert.equal(ask({ minBlocks: 7 }), undefined);
});
