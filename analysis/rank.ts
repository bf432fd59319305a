/** Ranks over all planned requests: what failed or was not sent ranks above every answer. */

/** A quantile is only told if so many planned requests lie beyond it. */
export const tailRequestsMin = 100;

/** True if enough of `population` requests lie beyond the quantile `share`. */
export function isTold(population: number, share: number): boolean {
  return exactly(population * (1 - share)) >= tailRequestsMin;
}

/** Rank of the quantile `share` (0 < share <= 1) in `population`, from 1. */
export function rankOf(population: number, share: number): number {
  return Math.max(1, Math.ceil(exactly(population * share)));
}

/** Rounded, since 1 - 0.999 is a little more than a thousandth. */
function exactly(count: number): number {
  return Math.round(count * 1e6) / 1e6;
}
