/** Means, intervals and detectable effects of small samples; knows nothing of what they measure. */
import tQuantile from "@stdlib/stats-base-dists-t-quantile";

export const confidence = 0.95;
/** Chance to see an effect as large as the detectable one. */
const power = 0.8;

export type MeanInterval = {
  readonly n: number;
  readonly mean: number;
  /** Standard deviation of the sample, with n - 1. */
  readonly sd: number;
  readonly low: number;
  readonly high: number;
};

/** Arithmetic mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, x) => sum + x, 0) / values.length;
}

/** The mean that fits ratios; all values must be positive. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(mean(values.map(Math.log)));
}

/** Middle value, or mean of the two middle ones; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/**
 * Student's interval of the mean: mean -+ t(0.975, n-1) * sd / sqrt(n).
 *
 * @throws RangeError below two values, which have no spread
 */
export function meanInterval(values: readonly number[]): MeanInterval {
  const n = values.length;
  if (n < 2) throw new RangeError(`interval: needs two values or more, found ${n}`);
  const centre = mean(values);
  const sd = Math.sqrt(values.reduce((sum, x) => sum + (x - centre) ** 2, 0) / (n - 1));
  const half = (tQuantile((1 + confidence) / 2, n - 1) * sd) / Math.sqrt(n);
  return { n, mean: centre, sd, low: centre - half, high: centre + half };
}

export type Proportion = {
  readonly hits: number;
  readonly n: number;
  readonly low: number;
  readonly high: number;
};

/** Standard normal quantile of 0.975. */
const z975 = 1.959963984540054;

/**
 * Wilson's 95 % interval of a proportion, which is of use even if nothing or all was hit.
 *
 * @throws RangeError unless 0 <= hits <= n and n > 0
 */
export function wilsonInterval(hits: number, n: number): Proportion {
  if (!(n > 0 && hits >= 0 && hits <= n)) {
    throw new RangeError(`proportion: needs 0 <= hits <= n and n > 0, found ${hits} of ${n}`);
  }
  const share = hits / n;
  const spread = z975 ** 2 / n;
  const centre = (share + spread / 2) / (1 + spread);
  const half = (z975 * Math.sqrt((share * (1 - share) + spread / 4) / n)) / (1 + spread);
  return {
    hits,
    n,
    low: hits === 0 ? 0 : centre - half,
    high: hits === n ? 1 : centre + half,
  };
}

/** Smallest true mean that n values of this spread would show as different from 0, at 80 %. */
export function minimumDetectable(sd: number, n: number): number {
  const t = tQuantile((1 + confidence) / 2, n - 1) + tQuantile(power, n - 1);
  return (t * sd) / Math.sqrt(n);
}
