/**
 * Judges budgets on intervals: a limit is kept if the whole interval lies below it, broken if the
 * whole interval lies above, and at risk in between; then it tells how many blocks would decide.
 */
import type { Budget, BudgetEntry } from "../contracts/budget.ts";
import type { Analysis } from "./analysis.ts";
import { isMeasured } from "./blocks.ts";
import { numberOf, type Unit } from "./cell.ts";
import type { Treatment } from "./comparison.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { DifferenceEstimate, RatioEstimate } from "./loss.ts";
import { mean, meanInterval, tInterval, wilsonInterval } from "./statistics.ts";

export type BudgetOutcome = "pass" | "at risk" | "breach" | "not judged";

export type BudgetResult = {
  readonly id: string;
  readonly treatment: string;
  readonly metric: BudgetEntry["metric"];
  readonly quantile?: string;
  readonly over?: string;
  readonly unit: Unit;
  readonly limit: number;
  readonly confidence: number;
  readonly outcome: BudgetOutcome;
  /** Centre and interval in the unit of the limit. */
  readonly centre?: number;
  readonly low?: number;
  readonly high?: number;
  /** Upper end of the interval over the limit: how much of the budget is used. */
  readonly used?: number;
  readonly blocks?: number;
  /** Blocks that would decide if spread and centre stay; absent beyond `blocksMax`. */
  readonly blocksNeeded?: number;
  /** Why it could not be judged, or not decided. */
  readonly reason?: string;
};

export type BudgetReport = {
  readonly schema: "ztbench/budget-report/1";
  readonly budget: string;
  readonly purpose: string;
  readonly results: readonly BudgetResult[];
  /** The worst of all. */
  readonly outcome: BudgetOutcome;
};

/** A sample on the scale on which it is normal; `show` takes it back to the unit of the limit. */
type Sample = {
  readonly mean: number;
  readonly sd: number;
  readonly n: number;
  readonly limit: number;
  readonly show: (x: number) => number;
};

/** Ten times what a plan may have: to say that it takes more still helps nobody. */
export const blocksMax = 1000;

/** Judges every treatment of every entry; pure. */
export function judgeBudget(budget: Budget, analysis: Analysis): BudgetReport {
  const results = budget.budgets.flatMap((entry) =>
    entry.treatments.map((label) => judgeEntry(budget, entry, label, analysis)),
  );
  const order = ["breach", "not judged", "at risk", "pass"] as const;
  return {
    schema: "ztbench/budget-report/1",
    budget: budget.name,
    purpose: budget.purpose,
    results,
    outcome: order.find((o) => results.some(({ outcome }) => outcome === o)) ?? "not judged",
  };
}

function judgeEntry(
  budget: Budget,
  entry: BudgetEntry,
  label: string,
  analysis: Analysis,
): BudgetResult {
  const { limit, unit } = limitOf(entry);
  const base = {
    id: entry.id,
    treatment: label,
    metric: entry.metric,
    ...("quantile" in entry && { quantile: entry.quantile }),
    ...("over" in entry && entry.over !== undefined && { over: entry.over }),
    unit,
    limit,
    confidence: entry.confidence,
  };
  const refuse = (reason: string): BudgetResult => ({ ...base, outcome: "not judged", reason });
  const { testbedClass } = analysis.stamp;
  if (testbedClass !== budget.testbedClass) {
    return refuse(`the limit is one for ${budget.testbedClass}, measured in a ${testbedClass}`);
  }
  const treatment = analysis.comparison.treatments.find((t) => t.label === label);
  if (treatment === undefined) {
    const known = analysis.comparison.treatments.map((t) => t.label).join(", ");
    return refuse(`no treatment of that label, the bundle has ${known}`);
  }
  if (treatment.rateQps !== entry.rateQps) {
    return refuse(`the limit is one at ${entry.rateQps}/s, measured at ${treatment.rateQps}/s`);
  }
  if (entry.metric === "failedShare") {
    return { ...base, ...judgeFailures(entry.limitShare, entry.confidence, label, analysis.runs) };
  }
  if (entry.metric === "badPerRenewal") {
    return { ...base, ...judgeRenewals(entry.limitRequests, label, analysis) };
  }
  const sample = sampleOf(entry, treatment, analysis);
  if (typeof sample === "string") return refuse(sample);
  return { ...base, ...judgeSample(sample, entry.confidence) };
}

function limitOf(entry: BudgetEntry): { readonly limit: number; readonly unit: Unit } {
  if ("limitShare" in entry) return { limit: entry.limitShare, unit: "share" };
  if ("limitRequests" in entry) return { limit: entry.limitRequests, unit: "count" };
  if ("limitCores" in entry) return { limit: entry.limitCores, unit: "cores" };
  return { limit: entry.limitMicroseconds, unit: "us" };
}

type Compared = Exclude<BudgetEntry, { metric: "failedShare" | "badPerRenewal" }>;

/** What there is to judge, or why there is nothing. */
function sampleOf(entry: Compared, { label }: Treatment, analysis: Analysis): Sample | string {
  const loss = analysis.comparison.losses.find((l) => l.label === label);
  if ("over" in entry && entry.over !== undefined) {
    return layerSample(entry, label, entry.over, analysis.runs);
  }
  if (loss === undefined) return "it is the baseline, which has no cost against itself";
  switch (entry.metric) {
    case "latencyLoss":
      return ratioSample(loss.ratios[responseOf(entry.quantile)], entry.limitShare);
    case "cpuLoss":
      return ratioSample(loss.ratios.cpuPerRequest, entry.limitShare);
    case "latencyDifference": {
      const limitNs = entry.limitMicroseconds * 1000;
      return differenceSample(loss.differences[responseOf(entry.quantile)], limitNs, 1000);
    }
    case "cpuDifference":
      return differenceSample(loss.differences.cpuPerRequest, entry.limitMicroseconds, 1);
    case "coresDifference":
      return differenceSample(loss.coresDifference, entry.limitCores, 1);
    case "meanLatencyDifference":
      return layerSample(entry, label, loss.baseline, analysis.runs);
    case "throughputLoss":
      return throughputSample(loss.throughput, entry.limitShare);
  }
}

const responseOf = (quantile: "p50" | "p99") =>
  quantile === "p50" ? ("responseP50" as const) : ("responseP99" as const);

/** Ratios are normal as logarithms; a loss of 30 % is ln 1.3. */
function ratioSample(estimate: RatioEstimate, limitShare: number): Sample | string {
  if (estimate.kind !== "estimate") return estimate.reason;
  const { ratio, sdLog, pairs } = estimate;
  const show = (log: number): number => Math.exp(log) - 1;
  return { mean: Math.log(ratio), sd: sdLog, n: pairs, limit: Math.log(1 + limitShare), show };
}

function differenceSample(
  estimate: DifferenceEstimate,
  limit: number,
  scale: number,
): Sample | string {
  if (estimate.kind === "none") return estimate.reason;
  if (estimate.kind === "point") return "one block";
  const { mean: centre, sd, pairs } = estimate;
  return { mean: centre, sd, n: pairs, limit, show: (x) => x / scale };
}

/**
 * A loss of throughput is 1 - ratio of capacities, so it keeps a limit L if -ln ratio keeps
 * -ln(1 - L).
 *
 * @param ratio capacity of the treatment over that of its baseline
 */
export function throughputSample(ratio: RatioEstimate, limitShare: number): Sample | string {
  if (ratio.kind !== "estimate") return ratio.reason;
  const { ratio: centre, sdLog: sd, pairs: n } = ratio;
  const show = (log: number): number => -Math.expm1(-log);
  return { mean: -Math.log(centre), sd, n, limit: -Math.log1p(-limitShare), show };
}

type LayerEntry = Extract<Compared, { over?: string | undefined }>;

/** Difference per block of two treatments; a baseline's is the mean of its two runs. */
function layerSample(
  entry: LayerEntry,
  label: string,
  other: string,
  runs: readonly JudgedRun[],
): Sample | string {
  const figure = (run: JudgedRun): number | undefined => {
    if (!isMeasured(run)) return undefined;
    if (entry.metric === "meanLatencyDifference") return numberOf(run.latency.response.meanNs);
    const { cpuPerRequest, cores } = run.resources;
    return numberOf(entry.metric === "coresDifference" ? cores : cpuPerRequest);
  };
  const inBlock = (wanted: string, block: number): number | undefined => {
    const own = runs.filter((run) => run.label === wanted && run.block === block);
    const values = own.map(figure).filter((x) => x !== undefined);
    return values.length === 0 ? undefined : mean(values);
  };
  const blocks = [...new Set(runs.map(({ block }) => block))];
  const differences = blocks.flatMap((block) => {
    const [upper, lower] = [inBlock(label, block), inBlock(other, block)];
    return upper === undefined || lower === undefined ? [] : [upper - lower];
  });
  if (differences.length < 2) {
    return `blocks with both ${label} and ${other}: ${differences.length}, two wanted`;
  }
  const { mean: centre, sd, n } = meanInterval(differences);
  const nanoseconds = entry.metric === "meanLatencyDifference";
  const limit = "limitCores" in entry ? entry.limitCores : entry.limitMicroseconds;
  return nanoseconds
    ? { mean: centre, sd, n, limit: limit * 1000, show: (x) => x / 1000 }
    : { mean: centre, sd, n, limit, show: (x) => x };
}

type Judgement = Omit<
  BudgetResult,
  "id" | "treatment" | "metric" | "quantile" | "over" | "unit" | "limit" | "confidence"
>;

/** pass: upper <= limit; breach: lower > limit; at risk otherwise. */
export function judgeSample(
  { mean: centre, sd, n, limit, show }: Sample,
  confidence: number,
): Judgement {
  const { low, high } = tInterval({ mean: centre, sd, n }, confidence);
  const shown = { centre: show(centre), low: show(low), high: show(high), blocks: n };
  const used = show(limit) > 0 ? { used: show(high) / show(limit) } : {};
  if (high <= limit) return { ...shown, ...used, outcome: "pass" };
  if (low > limit) return { ...shown, ...used, outcome: "breach" };
  const needed = blocksToDecide(sd, Math.abs(limit - centre), confidence);
  return {
    ...shown,
    ...used,
    outcome: "at risk",
    ...(needed === undefined
      ? { reason: `more than ${blocksMax} blocks would be needed to decide` }
      : { blocksNeeded: needed }),
  };
}

/**
 * B* = (t sd / |limit - mean|)^2, with the t of that very number of blocks: the least number whose
 * half interval is no wider than the distance. Undefined beyond `blocksMax`.
 */
export function blocksToDecide(sd: number, gap: number, confidence: number): number | undefined {
  for (let n = 2; n <= blocksMax; n += 1) {
    const { high } = tInterval({ mean: 0, sd, n }, confidence);
    if (high <= gap) return n;
  }
  return undefined;
}

/**
 * Share of planned requests that failed or were never sent, over all runs with rows: were invalid
 * ones left out, a gate on failures would hide what the budget is for. The interval is the wider of
 * Student's over runs, which sees that failures come together, and Wilson's over requests, which
 * is not empty where none failed.
 */
function judgeFailures(
  limit: number,
  confidence: number,
  label: string,
  runs: readonly JudgedRun[],
): Judgement {
  const counted = runs
    .filter((run) => run.label === label)
    .flatMap(({ latency }) => (latency === undefined ? [] : [latency]));
  const planned = counted.reduce((sum, run) => sum + run.planned, 0);
  const bad = counted.reduce((sum, run) => sum + run.planned - run.ok, 0);
  if (counted.length < 2) {
    return { outcome: "not judged", reason: `runs with requests: ${counted.length}, two wanted` };
  }
  const shares = counted.map((run) => (run.planned - run.ok) / run.planned);
  const { mean: centre, sd, n } = meanInterval(shares);
  const student = tInterval({ mean: centre, sd, n }, confidence);
  const wilson = wilsonInterval(bad, planned);
  const low = Math.max(0, Math.min(student.low, wilson.low));
  const high = Math.min(1, Math.max(student.high, wilson.high));
  const blocks = new Set(runs.filter((r) => r.label === label).map((r) => r.block)).size;
  return judgeCounts({ centre, low, high, blocks }, limit, "requests");
}

/** Bad requests that a renewal brings beside its placebo's; see `badPerEvent`. */
function judgeRenewals(limit: number, label: string, { rotations }: Analysis): Judgement {
  const found = rotations?.arms.find((arm) => arm.label === label)?.badPerEvent;
  if (found === undefined || found.kind === "none") {
    const reason = found?.reason ?? "no certificates of it are renewed beside a placebo";
    return { outcome: "not judged", reason };
  }
  const { mean: centre, low, high, pairs: blocks } = found;
  return judgeCounts({ centre, low, high, blocks }, limit, "renewals");
}

type CountedInterval = {
  readonly centre: number;
  readonly low: number;
  readonly high: number;
  readonly blocks: number;
};

/** An interval that counts make as well as blocks, so that no number of blocks decides. */
function judgeCounts(interval: CountedInterval, limit: number, counted: string): Judgement {
  const { low, high } = interval;
  const outcome = high <= limit ? "pass" : low > limit ? "breach" : "at risk";
  return {
    outcome,
    ...interval,
    ...(limit > 0 && { used: high / limit }),
    ...(outcome === "at risk" && { reason: `more ${counted} would be needed to decide` }),
  };
}
