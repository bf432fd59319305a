/** Means, intervals and detectable effects of small samples; knows nothing of what they measure. */
import tCdf from "@stdlib/stats-base-dists-t-cdf";
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

/** What an interval is made of. */
type Sample = Pick<MeanInterval, "mean" | "sd" | "n">;

/** The same of mean, spread and size alone, at any confidence: mean -+ t * sd / sqrt(n). */
export function tInterval(
  { mean: centre, sd, n }: Sample,
  level: number,
): { readonly low: number; readonly high: number } {
  const half = (tQuantile((1 + level) / 2, n - 1) * sd) / Math.sqrt(n);
  return { low: centre - half, high: centre + half };
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

/**
 * 95 % interval of the difference of two independent proportions, from their Wilson intervals
 * (Newcombe 1998, Statistics in Medicine 17:873, method 10).
 *
 * @returns limits of a - b
 */
export function proportionDifference(
  a: Proportion,
  b: Proportion,
): { readonly low: number; readonly high: number } {
  const [p, q] = [a.hits / a.n, b.hits / b.n];
  return {
    low: p - q - Math.hypot(p - a.low, b.high - q),
    high: p - q + Math.hypot(a.high - p, q - b.low),
  };
}

/** Smallest true mean that n values of this spread would show as different from 0, at 80 %. */
export function minimumDetectable(sd: number, n: number): number {
  const t = tQuantile((1 + confidence) / 2, n - 1) + tQuantile(power, n - 1);
  return (t * sd) / Math.sqrt(n);
}

/**
 * Quantile of sorted values, interpolated as R's type 7.
 *
 * @param share from 0 to 1
 */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const [x, y] = [sorted[below] ?? Number.NaN, sorted[below + 1] ?? sorted[below] ?? Number.NaN];
  return x + (at - below) * (y - x);
}

/** Chance of a mean as high as this one, or higher, if the true one were `bound`. */
export function pAbove(sample: Sample, bound: number): number {
  return 1 - pBelow(sample, bound);
}

/** Chance of a mean as low as this one, or lower, if the true one were `bound`. */
export function pBelow({ mean, sd, n }: Sample, bound: number): number {
  // Without any spread the mean is taken as it is.
  if (sd === 0) return mean > bound ? 1 : 0;
  return tCdf((mean - bound) / (sd / Math.sqrt(n)), n - 1);
}

/**
 * Holm's step-down: p values of a family, each multiplied so that the chance of any false one
 * among them stays at the level that a single one would have.
 *
 * @returns adjusted values in the order given
 */
export function holm(ps: readonly number[]): number[] {
  const order = ps.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  const adjusted = ps.map(() => 1);
  let highest = 0;
  order.forEach(({ p, index }, rank) => {
    highest = Math.max(highest, Math.min(1, p * (ps.length - rank)));
    adjusted[index] = highest;
  });
  return adjusted;
}

export type Correlation = { readonly r: number; readonly p: number; readonly n: number };

/**
 * Spearman's rank correlation, ties at their mean rank; p two-sided by t = r sqrt((n-2)/(1-r^2)).
 *
 * @returns undefined below four pairs, or if one side does not vary
 */
export function spearman(pairs: readonly (readonly [number, number])[]): Correlation | undefined {
  const n = pairs.length;
  if (n < 4) return undefined;
  const xs = ranks(pairs.map(([x]) => x));
  const ys = ranks(pairs.map(([, y]) => y));
  const centre = (n + 1) / 2;
  const product = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, x, i) => sum + (x - centre) * ((b[i] ?? Number.NaN) - centre), 0);
  const [xx, yy] = [product(xs, xs), product(ys, ys)];
  if (xx === 0 || yy === 0) return undefined;
  const r = product(xs, ys) / Math.sqrt(xx * yy);
  const t = Math.abs(r) >= 1 ? Number.POSITIVE_INFINITY : r * Math.sqrt((n - 2) / (1 - r * r));
  return { r, p: 2 * tCdf(-Math.abs(t), n - 2), n };
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((x, index) => ({ x, index })).sort((a, b) => a.x - b.x);
  const found = values.map(() => 0);
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to + 1 < order.length && order[to + 1]?.x === order[from]?.x) to += 1;
    for (let i = from; i <= to; i += 1) found[order[i]?.index ?? 0] = (from + to) / 2 + 1;
    from = to + 1;
  }
  return found;
}
