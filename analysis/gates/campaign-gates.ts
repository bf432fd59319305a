/** Gates of a whole campaign: its order, its noise, and what its load driver could do at most. */
import type { Manifest } from "../../contracts/manifest.ts";
import type { Plan } from "../../contracts/plan.ts";
import type { RunDocument } from "../../contracts/record.ts";
import { isMeasured, lossMetricIds } from "../blocks.ts";
import { type Cell, numberOf } from "../cell.ts";
import { type JudgedRun, type MetricId, metricsOf } from "../judged-run.ts";
import type { Noise } from "../noise.ts";
import { holm, mean, pAbove, pBelow, spearman } from "../statistics.ts";
import type { GateNumber, GateResult, Severity } from "./gate.ts";

/** Every gate by its id, with its number, what it shows and what it wants. */
export const campaignGates = {
  ceiling: {
    number: "G7",
    shows: "the driver's own ceiling on the same path against a null server, over the highest rate",
    wanted: ">= 2 times the rate",
  },
  "plan-first": {
    number: "G23",
    shows: "the hashed plan is older than the first run",
    wanted: "before the first run",
  },
  order: {
    number: "G23",
    shows: "runs took place where the seeded order had them, which differs from block to block",
    wanted: "as drawn",
  },
  noise: {
    number: "G24",
    shows: "the baseline's second runs against its first: no difference in any metric, Holm at 5 %",
    wanted: "p > 0.05",
  },
  "order-drift": {
    number: "G24",
    shows: "rank correlation of a run's position in its block and what is left of its latency",
    wanted: "p >= 0.01",
  },
} as const satisfies Record<string, { number: GateNumber; shows: string; wanted: string }>;

export type CampaignGateId = keyof typeof campaignGates;

export type CampaignGateResult = Pick<
  GateResult,
  "number" | "outcome" | "measured" | "threshold"
> & { readonly id: CampaignGateId };

export type CampaignInput = {
  readonly plan: Plan;
  readonly manifest: Manifest;
  readonly records: readonly RunDocument[];
  readonly runs: readonly JudgedRun[];
  readonly noise: Noise;
  readonly ceilingQps: Cell;
};

type Judged = Pick<GateResult, "outcome" | "measured">;

/** Judges a campaign; in a lab, what its shared CPUs do to it only warns. */
export function judgeCampaign(input: CampaignInput): readonly CampaignGateResult[] {
  const lab = input.manifest.testbed.class === "lab";
  const severity: Severity = lab ? "warn" : "invalid";
  const judged: Record<CampaignGateId, Judged> = {
    ceiling: judgeCeiling(input, severity),
    "plan-first": judgePlanFirst(input),
    order: judgeOrder(input),
    noise: judgeNoise(input, severity),
    "order-drift": judgeDrift(input, severity),
  };
  return (Object.keys(campaignGates) as CampaignGateId[]).map((id) => {
    const { number, wanted } = campaignGates[id];
    return { number, id, ...judged[id], threshold: wanted };
  });
}

const check = (passed: boolean, measured: string, severity: Severity = "invalid"): Judged => ({
  outcome: passed ? "pass" : severity,
  measured,
});
const silent = (reason: string): Judged => ({
  outcome: "unavailable",
  measured: `not available here: ${reason}`,
});

function judgeCeiling({ plan, ceilingQps }: CampaignInput, severity: Severity): Judged {
  const ceiling = numberOf(ceilingQps);
  if (ceiling === undefined) {
    return silent(ceilingQps.kind === "none" ? ceilingQps.reason : "not measured");
  }
  const rates = plan.treatments.map(({ rateQps }) => rateQps ?? plan.load.rateQps);
  const factor = ceiling / Math.max(...rates);
  return check(factor >= 2, `${factor.toFixed(1)} times the rate`, severity);
}

function judgePlanFirst({ manifest, records }: CampaignInput): Judged {
  const begun = records.map(({ startedAt }) => Date.parse(startedAt));
  if (begun.length === 0) return silent("no run was made");
  const seconds = (Math.min(...begun) - Date.parse(manifest.createdAt)) / 1000;
  return check(seconds >= 0, `${seconds.toFixed(0)} s before the first run`);
}

/** Drawing the same order in every block by chance must be rarer than one in so many. */
const ordersMin = 1000;

function judgeOrder({ manifest, records }: CampaignInput): Judged {
  const { order } = manifest;
  const moved = records.filter((record) => {
    const planned = order.find(
      (run) => run.block === record.block && run.label === record.label && run.arm === record.arm,
    );
    const size = order.filter((run) => run.block === record.block).length;
    // A repeat comes after all others of its block.
    return planned?.position !== record.position && record.position <= size;
  });
  if (moved.length > 0) {
    return check(false, `${moved.length} runs elsewhere than in the manifest's order`);
  }
  const blocks = new Map<number, string[]>();
  for (const run of [...order].sort((a, b) => a.position - b.position)) {
    blocks.set(run.block, [...(blocks.get(run.block) ?? []), `${run.label} ${run.arm}`]);
  }
  const size = Math.max(0, ...[...blocks.values()].map((cells) => cells.length));
  const orders = new Set([...blocks.values()].map((cells) => cells.join(", ")));
  if (factorial(size) ** (blocks.size - 1) < ordersMin) {
    return silent("too few blocks and treatments to tell an order that was drawn");
  }
  return check(orders.size > 1, `${orders.size} orders in ${blocks.size} blocks`);
}

function factorial(n: number): number {
  return n < 2 ? 1 : n * factorial(n - 1);
}

function judgeNoise({ noise }: CampaignInput, severity: Severity): Judged {
  const found = lossMetricIds.flatMap((id) => {
    const estimate = noise.ratios[id];
    if (estimate.kind !== "estimate") return [];
    const { ratio, sdLog, pairs } = estimate;
    const sample = { mean: Math.log(ratio), sd: sdLog, n: pairs };
    const p = sdLog === 0 && ratio === 1 ? 1 : 2 * Math.min(pAbove(sample, 0), pBelow(sample, 0));
    return [{ id, p }];
  });
  if (found.length === 0) return silent("needs two complete pairs of baselines");
  const adjusted = holm(found.map(({ p }) => p));
  const worst = found
    .map(({ id }, index) => ({ id, p: adjusted[index] ?? 1 }))
    .reduce((a, b) => (b.p < a.p ? b : a));
  return check(worst.p > 0.05, `p ${worst.p.toFixed(3)} in ${worst.id}`, severity);
}

/** With fewer runs a rank correlation shows nothing at one in a hundred. */
const driftRunsMin = 8;

function judgeDrift({ runs }: CampaignInput, severity: Severity): Judged {
  const used = runs.filter(isMeasured).filter(({ condition }) => condition === "steady");
  const logsOf = (id: MetricId) =>
    used.map((run) => Math.log(numberOf(metricsOf(run.latency, run.resources)[id]) ?? Number.NaN));
  const p99 = logsOf("responseP99");
  const [metric, logs] = p99.every(Number.isFinite)
    ? (["responseP99", p99] as const)
    : (["responseP50", logsOf("responseP50")] as const);
  if (used.length < driftRunsMin || !logs.every(Number.isFinite)) {
    return silent(`needs ${driftRunsMin} valid runs, found ${used.length}`);
  }
  const centre = (keyOf: (run: JudgedRun) => string | number) => {
    const groups = new Map<string | number, number[]>();
    used.forEach((run, i) => {
      groups.set(keyOf(run), [...(groups.get(keyOf(run)) ?? []), logs[i] ?? 0]);
    });
    return (run: JudgedRun): number => mean(groups.get(keyOf(run)) ?? [0]);
  };
  const [byLabel, byBlock] = [centre((run) => run.label), centre((run) => run.block)];
  const overall = mean(logs);
  const pairs = used.map((run, i) => {
    const residual = (logs[i] ?? 0) - byLabel(run) - byBlock(run) + overall;
    return [run.position, residual] as const;
  });
  const found = spearman(pairs);
  if (found === undefined) return silent("positions or residuals do not vary");
  const { r, p, n } = found;
  return check(p >= 0.01, `r ${r.toFixed(2)}, p ${p.toFixed(3)}, ${n} runs, ${metric}`, severity);
}
