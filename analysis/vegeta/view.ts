/** Quantiles of a merged reading, as cells: a rank beyond what was answered has its reason. */
import { type Cell, none, value } from "../cell.ts";
import type { LatencyHistogram } from "../histogram.ts";
import { isTold, rankOf } from "../rank.ts";

export const readQuantiles = ["p50", "p90", "p99", "p99.9", "max"] as const;
export type ReadQuantile = (typeof readQuantiles)[number];
const shares = { p50: 0.5, p90: 0.9, p99: 0.99, "p99.9": 0.999, max: 1 } as const;

export type SeriesView = {
  /** Requests with a value. */
  readonly count: number;
  /** Requests that ranks are counted in. */
  readonly population: number;
  readonly quantiles: Readonly<Record<ReadQuantile, Cell>>;
  readonly meanNs: Cell;
  /** Greatest of those with a value, whether or not others have none. */
  readonly greatestNs: Cell;
};

/** @param population all requests to rank over; those without a value rank last */
export function viewOf(histogram: LatencyHistogram, population: number): SeriesView {
  const { count } = histogram;
  const exact = (ns: number): Cell => (count === 0 ? none("no answers") : value(ns, "ns"));
  const quantile = (name: ReadQuantile): Cell => {
    const share = shares[name];
    if (share < 1 && !isTold(population, share)) return none(`too few requests for ${name}`);
    const rank = rankOf(population, share);
    if (rank <= count) return value(histogram.valueAtRank(rank), "ns");
    return none(`> timeout: request ${rank} of ${population}, but ${count} were answered`);
  };
  return {
    count,
    population,
    quantiles: {
      p50: quantile("p50"),
      p90: quantile("p90"),
      p99: quantile("p99"),
      "p99.9": quantile("p99.9"),
      max: quantile("max"),
    },
    meanNs: exact(histogram.sumNs / count),
    greatestNs: exact(histogram.maxNs),
  };
}
