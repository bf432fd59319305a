/**
 * Whether the requests of one probe hold an objective such as "99 of 100 within 10 ms": by a test
 * that leaves little chance of passing a rate that does not, and in most parts of the probe.
 */
import binomialCdf from "@stdlib/stats-base-dists-binomial-cdf";

/** Chance at most with which a rate passes that just misses the objective. */
export const significance = 0.01;

/** A probe is looked at in so many parts of equal length; requests close together are alike. */
export const windowCount = 10;
/** So many of them must hold the objective, too. */
const windowsMin = 9;
/** Requests that each part must have before it says anything. */
const windowRequestsMin = 20;

/**
 * The largest number of requests over the objective with which `count` requests pass: the largest
 * t with P(X <= t) <= significance for X ~ Bin(count, share). MLPerf's early stopping rule with a
 * tolerance of 0. At p = 0.01: 77 of 10^4, 927 of 10^5.
 *
 * @returns -1 if even none over it would not be enough, for which 459 requests are needed at 0.01
 */
export function overMax(count: number, share: number): number {
  const holds = (over: number) => binomialCdf(over, count, share) <= significance;
  if (!holds(0)) return -1;
  let [low, high] = [0, Math.ceil(count * share)];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}

export type Objective = {
  /** Share of requests that may take longer. */
  readonly share: number;
  readonly sloMilliseconds: number;
  readonly failedShareMax: number;
};

/** What a probe showed; counts of planned requests, of which the unsent are over the objective. */
export type ProbeCounts = {
  readonly planned: number;
  readonly sent: number;
  readonly failed: number;
  /** Later than the objective, failed or never sent. */
  readonly over: number;
  readonly windows: readonly { readonly planned: number; readonly over: number }[];
};

export type ProbeVerdict = {
  readonly passed: boolean;
  /** What was missed, for people; empty if it passed. */
  readonly reasons: readonly string[];
};

/** Least share of planned requests that must have been sent. */
export const sentShareMin = 0.995;

/** Applies the objective to the counts of one probe. */
export function judgeProbe(objective: Objective, counts: ProbeCounts): ProbeVerdict {
  const { planned, sent, failed, over } = counts;
  const { share, sloMilliseconds, failedShareMax } = objective;
  const most = overMax(planned, share);
  const bad = failed + (planned - sent);
  const full = counts.windows.filter((window) => window.planned >= windowRequestsMin);
  const held = full.filter((window) => window.over <= window.planned * share).length;
  const reasons = [
    ...(sent >= planned * sentShareMin ? [] : [`sent ${sent} of ${planned}`]),
    ...(bad <= planned * failedShareMax ? [] : [`${bad} of ${planned} failed or unsent`]),
    ...(most < 0 ? [`${planned} requests are too few to tell`] : []),
    ...(most < 0 || over <= most
      ? []
      : [`${over} over ${sloMilliseconds} ms, ${most} of ${planned} may be`]),
    ...(held >= Math.min(full.length, windowsMin)
      ? []
      : [`${held} of ${full.length} parts hold the objective, ${windowsMin} must`]),
  ];
  return { passed: reasons.length === 0, reasons };
}
