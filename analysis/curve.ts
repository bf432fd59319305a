/**
 * The latency distribution of each treatment over all its valid runs: histograms are added up,
 * never percentiles, and read at steps that are even on the scale of a percentile plot.
 */
import type { RunVerdict } from "./gates/gate.ts";
import type { LatencyHistogram } from "./histogram.ts";
import { destroySeries, newSeries, type Series, seriesNames } from "./interval.ts";
import { tailRequestsMin } from "./rank.ts";

/** Steps for each tenth part of the requests that remains above, and how many such parts. */
const stepsPerDecade = 16;
const decades = 3;
/** Shares of requests above: the first steps are finer, since the fastest requests differ most. */
const shares: readonly number[] = [
  ...[1, 0.99, 0.97, 0.94, 0.9],
  ...Array.from({ length: stepsPerDecade * decades }, (_, i) => 10 ** (-(i + 1) / stepsPerDecade)),
];

export type CurvePoint = {
  /** Share of requests that are faster, from 0 (the fastest) up to 99.9. */
  readonly percentile: number;
  readonly ns: number;
};

export type TreatmentCurves = {
  readonly label: string;
  readonly validRuns: number;
  /** Planned requests of these runs; failed and unsent ones rank above all answers. */
  readonly planned: number;
  readonly response: readonly CurvePoint[];
  readonly lag: readonly CurvePoint[];
};

type Total = { readonly series: Series; runs: number; planned: number; sent: number };

/** Adds up the histograms of runs by treatment; it must be destroyed. */
export class CurveCollector {
  readonly #totals = new Map<string, Total>();
  readonly #run: Series = newSeries();

  /** Keeps a run's histograms until `settle` tells whether they count. */
  hold(totals: Series): void {
    for (const name of seriesNames) {
      this.#run[name].reset();
      this.#run[name].add(totals[name]);
    }
  }

  /** Adds the run that is held, unless it is invalid. */
  settle(label: string, verdict: RunVerdict, counts: { planned: number; sent: number }): void {
    if (verdict === "INVALID") return;
    const total = this.#totals.get(label) ?? {
      series: newSeries(),
      runs: 0,
      planned: 0,
      sent: 0,
    };
    this.#totals.set(label, total);
    for (const name of seriesNames) total.series[name].add(this.#run[name]);
    total.runs += 1;
    total.planned += counts.planned;
    total.sent += counts.sent;
  }

  /** Curves of all labels given, empty for those without a valid run. */
  curves(labels: readonly string[]): readonly TreatmentCurves[] {
    return labels.map((label) => {
      const total = this.#totals.get(label);
      if (total === undefined) return { label, validRuns: 0, planned: 0, response: [], lag: [] };
      const { series, runs, planned, sent } = total;
      return {
        label,
        validRuns: runs,
        planned,
        response: curveOf(series.response, planned),
        lag: curveOf(series.lag, sent),
      };
    });
  }

  /** Frees all histograms. */
  destroy(): void {
    destroySeries(this.#run);
    for (const { series } of this.#totals.values()) destroySeries(series);
    this.#totals.clear();
  }
}

/**
 * The values of a distribution from percentile 0 up; it ends where too few requests lie beyond, or
 * where the requests do that have no value.
 *
 * @param population number of requests to rank over, at least the histogram's own
 */
export function curveOf(histogram: LatencyHistogram, population: number): readonly CurvePoint[] {
  const points: CurvePoint[] = [];
  for (const beyond of shares) {
    const rank = Math.max(1, Math.ceil(Math.round(population * (1 - beyond) * 1e6) / 1e6));
    const enough = Math.round(population * beyond * 1e6) / 1e6 >= tailRequestsMin;
    if (!enough || rank > histogram.count) break;
    points.push({
      percentile: Math.round((1 - beyond) * 1e7) / 1e5,
      ns: histogram.valueAtRank(rank),
    });
  }
  return points;
}
