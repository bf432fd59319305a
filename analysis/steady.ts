/**
 * Whether a run was steady: where its start-up ends (MSER-5 on the medians of its seconds) and
 * whether its tail drifts after that (Mann-Kendall on their p99). Pure; knows no requests.
 */
import normalCdf from "@stdlib/stats-base-dists-normal-cdf";

/** Values a batch of MSER-5. */
const batchSize = 5;
/** The last batches are no start-up, however they look: MSER is not defined on so few. */
const batchesLeftMin = 5;

/** With fewer seconds the cut cannot come to lie beyond the middle, so nothing could fail. */
export const cutSecondsMin = 60;
/** With fewer seconds a drift of a third would not be seen. */
export const trendSecondsMin = 30;

/**
 * Where the start-up of a series ends: MSER-5 (White 1997, Spratt 1998). Over means Y of 5 values
 *
 *   MSER(d) = sum over i > d of (Y_i - mean of Y after d)^2 / (n - d)^2, d* = argmin, d <= n - 5
 *
 * @param values one a second, e.g. ln p50
 * @returns 5 d*: how many values to drop; undefined if there are fewer than 6 batches
 */
export function startupLength(values: readonly number[]): number | undefined {
  const n = Math.floor(values.length / batchSize);
  if (n <= batchesLeftMin) return undefined;
  const batches = Array.from({ length: n }, (_, index) => {
    const own = values.slice(index * batchSize, (index + 1) * batchSize);
    return own.reduce((sum, x) => sum + x, 0) / batchSize;
  });
  let best = { dropped: 0, score: Number.POSITIVE_INFINITY };
  for (let dropped = 0; dropped <= n - batchesLeftMin; dropped += 1) {
    const kept = batches.slice(dropped);
    const centre = kept.reduce((sum, y) => sum + y, 0) / kept.length;
    const score = kept.reduce((sum, y) => sum + (y - centre) ** 2, 0) / kept.length ** 2;
    if (score < best.score) best = { dropped, score };
  }
  return best.dropped * batchSize;
}

export type Trend = {
  /** Standard normal if there is no trend. */
  readonly z: number;
  /** Two-sided. */
  readonly p: number;
};

/**
 * Mann-Kendall test for a monotone trend, with the correction for ties:
 *
 *   S = sum over i < j of sign(x_j - x_i), Z = (S -+ 1) / sd(S)
 *   var(S) = (n (n-1) (2n+5) - sum over ties of t (t-1) (2t+5)) / 18
 *
 * Ranks only: a second without a p99 may be infinite.
 */
export function mannKendall(values: readonly number[]): Trend {
  const n = values.length;
  let s = 0;
  for (let i = 0; i < n; i += 1) {
    for (let j = i + 1; j < n; j += 1) {
      const [a, b] = [values[i] ?? Number.NaN, values[j] ?? Number.NaN];
      if (b > a) s += 1;
      else if (b < a) s -= 1;
    }
  }
  const ties = new Map<number, number>();
  for (const x of values) ties.set(x, (ties.get(x) ?? 0) + 1);
  const tied = [...ties.values()].reduce((sum, t) => sum + t * (t - 1) * (2 * t + 5), 0);
  const variance = (n * (n - 1) * (2 * n + 5) - tied) / 18;
  const z = variance > 0 ? (s - Math.sign(s)) / Math.sqrt(variance) : 0;
  return { z, p: 2 * normalCdf(-Math.abs(z), 0, 1) };
}
