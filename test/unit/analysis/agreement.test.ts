import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type Agreement,
  type CampaignSide,
  compareCampaigns,
  judgeAgreement,
} from "../../../analysis/agreement.ts";
import { renderAgreement } from "../../../analysis/agreement-table.ts";
import { openBundle } from "../../../analysis/bundle.ts";
import type { RatioEstimate } from "../../../analysis/loss.ts";
import { analyseBundle } from "../../../analysis/report.ts";
import { settingsOf } from "../../../analysis/settings.ts";
import type { Plan } from "../../../contracts/plan.ts";
import {
  type BundleOptions,
  makeBundle,
  normal,
  removeBundle,
  seeded,
  steadyRows,
} from "../../support/bundle.ts";

/** A ratio with an interval of this half-width, both as logarithms. */
function estimate(log: number, half: number): RatioEstimate {
  return {
    kind: "estimate",
    ratio: Math.exp(log),
    low: Math.exp(log - half),
    high: Math.exp(log + half),
    pairs: 5,
    sdLog: half,
    detectableRatio: 1.1,
    verdict: "loss",
    p: { different: 0.01, equivalent: 1 },
  };
}

const cases: [name: string, a: [number, number], b: [number, number], verdict: string][] = [
  // sqrt(0.03^2 + 0.04^2) = 0.05, exactly.
  ["apart by less than the intervals allow", [0.5, 0.03], [0.451, 0.04], "AGREE"],
  ["apart by more than the intervals allow", [0.5, 0.03], [0.449, 0.04], "DISAGREE"],
  ["within 2 %, though both are sure of themselves", [0.5, 0.001], [0.481, 0.001], "AGREE"],
  ["beyond 2 % and sure of themselves", [0.5, 0.001], [0.479, 0.001], "DISAGREE"],
  ["both without loss and narrow", [0.0, 0.02], [0.01, 0.02], "AGREE"],
  // 0.14 is more than either effect and than ln 1.05.
  ["so wide that no loss would agree, too", [0.1, 0.1], [0.05, 0.1], "UNDERPOWERED"],
  ["as wide, but with an effect beyond it", [0.3, 0.1], [0.25, 0.1], "AGREE"],
];
for (const [name, a, b, verdict] of cases) {
  test(`losses ${name}: ${verdict}`, () => {
    assert.equal(judgeAgreement(estimate(...a), estimate(...b), 0.05).verdict, verdict);
    // It must not matter which one is called A.
    assert.equal(judgeAgreement(estimate(...b), estimate(...a), 0.05).verdict, verdict);
  });
}

test("one block has no interval, so nothing can be told of it", () => {
  const point: RatioEstimate = {
    kind: "point",
    ratio: 9,
    pairs: 1,
    verdict: "inconclusive",
    reason: "one block",
  };
  assert.equal(judgeAgreement(point, estimate(0, 0.01), 0.05).verdict, "UNDERPOWERED");
});

test("a figure that one of them lacks is not comparable, with its reason", () => {
  const none: RatioEstimate = { kind: "none", reason: "rate missed" };
  assert.deepEqual(judgeAgreement(none, estimate(0, 0.01), 0.05), {
    verdict: "NOT COMPARABLE",
    reason: "rate missed",
  });
});

const bundles: string[] = [];
after(() => Promise.all(bundles.map(removeBundle)));

/** A campaign in which the gateway multiplies latencies. */
async function sideOf(
  seed: number,
  factor: number,
  editPlan?: (plan: Plan) => Plan,
  edit?: BundleOptions["content"],
): Promise<CampaignSide> {
  const directory = await makeBundle({
    blocks: 4,
    labels: ["baseline", "gateway"],
    durationSeconds: 10,
    ...(editPlan !== undefined && { editPlan }),
    content: (shape, plan) => {
      const { block, label, arm } = shape;
      const random = seeded(seed * 1000 + block * 10 + (arm === "b" ? 1 : 0) + label.length * 100);
      const scale = Math.exp(0.01 * normal(random)) * (label === "gateway" ? factor : 1);
      return {
        rows: steadyRows(plan, () => scale * (200_000 + 100_000 * random())),
        cpuPerRequestUs: label === "gateway" ? 150 + block / 10 : 100,
        ...edit?.(shape, plan),
      };
    },
  });
  bundles.push(directory);
  const bundle = await openBundle(directory);
  return { analysis: await analyseBundle(bundle, {}), settings: settingsOf(bundle) };
}

let reference: CampaignSide;
before(async () => {
  reference = await sideOf(1, 1.5);
});

const verdictsOf = ({ rows }: Agreement) => new Set(rows.map(({ verdict }) => verdict));

test("a repetition with the same settings agrees, and what else differs is told", async () => {
  const again = await sideOf(2, 1.5, (plan) => ({ ...plan, seed: 8 }));
  const agreement = compareCampaigns(reference, again);
  assert.deepEqual(verdictsOf(agreement), new Set(["AGREE"]));
  assert.equal(agreement.conclusion, "AGREE");
  assert.deepEqual(
    agreement.told.map(({ key, a, b }) => (key === "plan" ? key : `${key} ${a} ${b}`)),
    ["plan", "seed 7 8"],
  );
});

test("a repetition with another loss disagrees", async () => {
  const agreement = compareCampaigns(reference, await sideOf(3, 1.8));
  assert.equal(agreement.conclusion, "DISAGREE");
  const of = (metric: string) => agreement.rows.find((row) => row.metric === metric)?.verdict;
  assert.deepEqual([of("responseP50"), of("cpuPerRequest")], ["DISAGREE", "AGREE"]);
});

const changes: [name: string, key: string, edit: (plan: Plan) => Plan][] = [
  ["duration", "load.durationSeconds", (p) => ({ ...p, load: { ...p.load, durationSeconds: 11 } })],
  ["connections", "load.connections", (p) => ({ ...p, load: { ...p.load, connections: 33 } })],
  ["payload", "load.bodyBytes", (p) => ({ ...p, load: { ...p.load, bodyBytes: 257 } })],
  ["rate", "load.rateQps", (p) => ({ ...p, load: { ...p.load, rateQps: 900 } })],
  ["driver", "driver", (p) => withTreatments(p, { driver: "vegeta" })],
];
function withTreatments(plan: Plan, change: Partial<Plan["treatments"][number]>): Plan {
  return { ...plan, treatments: plan.treatments.map((t) => ({ ...t, ...change })) };
}
for (const [name, key, edit] of changes) {
  test(`another ${name} is named and not compared`, async () => {
    const other = await sideOf(4, 1.5, edit);
    const agreement = compareCampaigns(reference, other);
    assert.deepEqual(verdictsOf(agreement), new Set(["NOT COMPARABLE"]));
    assert.equal(agreement.conclusion, "NOT COMPARABLE");
    const keys = (agreement.treatmentDifferences["gateway"] ?? []).map((found) => found.key);
    assert.ok(keys.includes(key), keys.join(", "));
    assert.match(renderAgreement(agreement), new RegExp(`^  ${key.replace(".", "\\.")}: `, "m"));
    const [row] = agreement.rows;
    assert.ok(row?.reason?.includes(key), row?.reason);
  });
}

/** The same campaign as if its manifest or a setting of it said something else. */
function withCampaign(side: CampaignSide, key: string, value: string): CampaignSide {
  const campaign = new Map(side.settings.campaign).set(key, value);
  return { ...side, settings: { ...side.settings, campaign } };
}
for (const [key, value] of [
  ["versions.envoy", "1.28.0"],
  ["versionSet", "era"],
  ["testbed.class", "metal"],
  ["testbed.scheduling", "other"],
  ["tuning.server.somaxconn", "refused 128"],
] as const) {
  test(`another ${key} stands against every row`, () => {
    assert.ok(reference.settings.campaign.has(key), [...reference.settings.campaign.keys()].join());
    const agreement = compareCampaigns(reference, withCampaign(reference, key, value));
    assert.deepEqual(verdictsOf(agreement), new Set(["NOT COMPARABLE"]));
    assert.deepEqual(agreement.campaignDifferences, [
      { key, a: reference.settings.campaign.get(key), b: value },
    ]);
  });
}

test("of many settings that differ a row names some, and the list names all", () => {
  const keys = Array.from({ length: 20 }, (_, index) => `tuning.server.knob-${index + 10}`);
  const other = keys.reduce((side, key) => withCampaign(side, key, "applied 1"), reference);
  const agreement = compareCampaigns(reference, other);
  assert.match(agreement.rows[0]?.reason ?? "", /knob-10, .*knob-15, and 14 more$/);
  assert.deepEqual(
    agreement.campaignDifferences.map(({ key }) => key),
    keys,
  );
});

test("fewer CPUs of a unit are named, whichever ones they are", async () => {
  const recpu = (cpus: string) =>
    sideOf(5, 1.5, undefined, (shape, plan) => ({
      rows: steadyRows(plan, () => 200_000),
      cpuPerRequestUs: 100,
      edit: (record) => ({
        ...record,
        deployment: {
          ...record.deployment,
          units: record.deployment.units.map((unit) => ({ ...unit, cpus })),
        },
      }),
    }));
  const key = "deployed.cpus.ztbench-echo.service";
  const more = compareCampaigns(reference, await recpu("4-7"));
  const found = more.treatmentDifferences["gateway"]?.find((d) => d.key === key);
  assert.deepEqual(found, { key, a: "1", b: "4" });
  const other = compareCampaigns(reference, await recpu("5"));
  assert.equal(other.treatmentDifferences["gateway"], undefined);
});

test("a treatment that only one of them has is told as such", () => {
  const { analysis, settings } = reference;
  const { comparison } = analysis;
  const without = { ...analysis, comparison: { ...comparison, losses: [] } };
  const agreement = compareCampaigns(reference, { analysis: without, settings });
  assert.deepEqual(new Set(agreement.rows.map(({ reason }) => reason)), new Set(["not in B"]));
  assert.equal(agreement.conclusion, "NOT COMPARABLE");
});
