/**
 * What a treatment costs against the baseline: paired within blocks, on logarithms of ratios, so
 * that what a block does to all its runs cancels.
 */
import { bootstrapMean, bootstrapMin } from "./bootstrap.ts";
import {
  confidence,
  geometricMean,
  holm,
  mean,
  meanInterval,
  type MeanInterval,
  minimumDetectable,
  pAbove,
  pBelow,
} from "./statistics.ts";

export type Verdict = "loss" | "gain" | "equivalent" | "inconclusive";

/** One complete block: the treatment and both runs of the baseline, all of them valid. */
export type Pair = {
  readonly block: number;
  readonly treatment: number;
  readonly baseline: readonly [number, number];
};

export type RatioEstimate =
  | {
      readonly kind: "estimate";
      /** Treatment over baseline: 1.25 is a loss of 25 %. */
      readonly ratio: number;
      readonly low: number;
      readonly high: number;
      readonly pairs: number;
      /** Standard deviation of the log-ratios. */
      readonly sdLog: number;
      /** Smallest ratio above 1 that so many pairs would show, at 80 %. */
      readonly detectableRatio: number;
      readonly verdict: Verdict;
      /** Two-sided, so that below 0.05 the interval lies beyond, or within, the margin. */
      readonly p: PValues;
      /** BCa interval of the ratio, from 20 pairs on. */
      readonly bootstrap?: { readonly low: number; readonly high: number };
      /** Its own interval gave this verdict, but it does not hold among all that were tried. */
      readonly heldBack?: Verdict;
    }
  | {
      readonly kind: "point";
      readonly ratio: number;
      readonly pairs: 1;
      readonly verdict: "inconclusive";
      readonly reason: "one block";
    }
  | { readonly kind: "none"; readonly reason: string };

export type PValues = {
  /** Of a ratio within the margin, against one beyond it. */
  readonly different: number;
  /** Of a ratio beyond the margin, against one within it (two one-sided tests). */
  readonly equivalent: number;
};

export type DifferenceEstimate =
  | ({ readonly kind: "estimate" } & Omit<MeanInterval, "n"> & { readonly pairs: number })
  | { readonly kind: "point"; readonly mean: number; readonly pairs: 1 }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Ratio of treatment to the geometric mean of the block's two baselines.
 *
 * d = ln(treatment) - (ln(baseline a) + ln(baseline b)) / 2; loss = exp(mean d) - 1.
 *
 * @param margin smallest relative change that matters; ratios within [1/(1+m), 1+m] are equivalent
 */
export function estimateRatio(pairs: readonly Pair[], margin: number): RatioEstimate {
  return estimateLogRatios(
    pairs.map(({ treatment, baseline }) => Math.log(treatment / geometricMean(baseline))),
    margin,
  );
}

/** Ratio of the baseline's second run to its first: what noise alone does. */
export function estimateNoise(
  baselines: readonly (readonly [number, number])[],
  margin: number,
): RatioEstimate {
  return estimateLogRatios(
    baselines.map(([a, b]) => Math.log(b / a)),
    margin,
  );
}

/** Treatment less the arithmetic mean of the block's two baselines, in the unit of the values. */
export function estimateDifference(pairs: readonly Pair[]): DifferenceEstimate {
  const differences = pairs.map(({ treatment, baseline }) => treatment - mean(baseline));
  const [first] = differences;
  if (first === undefined) return { kind: "none", reason: "no complete block" };
  if (differences.length === 1) return { kind: "point", mean: first, pairs: 1 };
  const { n, ...interval } = meanInterval(differences);
  return { kind: "estimate", ...interval, pairs: n };
}

/** Whether an interval of ratios lies beyond the margin, within it, or across its edge. */
export function judgeRatio(low: number, high: number, margin: number): Verdict {
  const upper = 1 + margin;
  const lower = 1 / upper;
  if (low > upper) return "loss";
  if (high < lower) return "gain";
  return low >= lower && high <= upper ? "equivalent" : "inconclusive";
}

function estimateLogRatios(logRatios: readonly number[], margin: number): RatioEstimate {
  const [first] = logRatios;
  if (first === undefined) return { kind: "none", reason: "no complete block" };
  if (!logRatios.every(Number.isFinite)) return { kind: "none", reason: "zero has no ratio" };
  if (logRatios.length === 1) {
    const ratio = Math.exp(first);
    return { kind: "point", ratio, pairs: 1, verdict: "inconclusive", reason: "one block" };
  }
  const interval = meanInterval(logRatios);
  const low = Math.exp(interval.low);
  const high = Math.exp(interval.high);
  return {
    kind: "estimate",
    ratio: Math.exp(interval.mean),
    low,
    high,
    pairs: interval.n,
    sdLog: interval.sd,
    detectableRatio: Math.exp(minimumDetectable(interval.sd, interval.n)),
    verdict: judgeRatio(low, high, margin),
    p: pValuesOf(interval, margin),
    ...(interval.n >= bootstrapMin && { bootstrap: bootstrapRatio(logRatios) }),
  };
}

function pValuesOf(interval: MeanInterval, margin: number): PValues {
  const edge = Math.log(1 + margin);
  const different = 2 * Math.min(pAbove(interval, edge), pBelow(interval, -edge));
  const equivalent = 2 * Math.max(pBelow(interval, edge), pAbove(interval, -edge));
  return { different: Math.min(1, different), equivalent: Math.min(1, equivalent) };
}

function bootstrapRatio(logRatios: readonly number[]): { low: number; high: number } {
  const { low, high } = bootstrapMean(logRatios);
  return { low: Math.exp(low), high: Math.exp(high) };
}

/**
 * Several treatments are as many chances to find something that is not there: a verdict stands
 * only if its p value does after Holm's correction over all estimates of the family. Intervals
 * stay those of each estimate by itself.
 */
export function holdFamily(family: readonly RatioEstimate[]): readonly RatioEstimate[] {
  const estimates = family.filter((estimate) => estimate.kind === "estimate");
  const different = holm(estimates.map(({ p }) => p.different));
  const equivalent = holm(estimates.map(({ p }) => p.equivalent));
  return family.map((estimate) => {
    if (estimate.kind !== "estimate") return estimate;
    const index = estimates.indexOf(estimate);
    const p = { different: different[index] ?? 1, equivalent: equivalent[index] ?? 1 };
    const { verdict } = estimate;
    if (verdict === "inconclusive") return { ...estimate, p };
    const own = verdict === "equivalent" ? p.equivalent : p.different;
    if (own <= 1 - confidence) return { ...estimate, p };
    return { ...estimate, p, verdict: "inconclusive", heldBack: verdict };
  });
}
