/**
 * The latencies of one run, counted from when each request was due (not from when it left), so
 * that a driver that falls behind cannot hide what it should have measured.
 */
import { Failure } from "../contracts/failure.ts";
import type { LoadPlan } from "../contracts/record.ts";
import { type Cell, none, value } from "./cell.ts";
import { type ClockStep, findClockStep, LeastLag } from "./clock-step.ts";
import { highestTrackableNs, type LatencyHistogram } from "./histogram.ts";
import { IntervalRecorder, type Series } from "./interval.ts";
import { isTold, rankOf } from "./rank.ts";
import { readRequests } from "./requests.ts";
import type { RowTotals } from "./tally.ts";

export const quantileNames = ["p50", "p95", "p99", "p99.9"] as const;
export type QuantileName = (typeof quantileNames)[number];
const quantileOf = { p50: 0.5, p95: 0.95, p99: 0.99, "p99.9": 0.999 } as const;

export type SeriesSummary = {
  readonly count: number;
  readonly minNs: Cell;
  readonly maxNs: Cell;
  readonly meanNs: Cell;
  readonly quantiles: Readonly<Record<QuantileName, Cell>>;
};

export type RunLatency = {
  readonly planned: number;
  readonly sent: number;
  /** Answered with 2xx. */
  readonly ok: number;
  readonly failed: number;
  readonly seqMax: number;
  readonly codes: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  /** Requests too late for the histogram; they count as failed in every quantile. */
  readonly overflow: number;
  /** Least lag, nanoseconds; negative if a request left before it was due. */
  readonly lagMinNs: number;
  /** A step of the clock inside the run, if its stamps show one. */
  readonly clockStep?: ClockStep;
  /** When offset 0 of the plan was due, nanoseconds since 1970. */
  readonly startNs: string;
  /** True if the start was estimated from the rows, which cannot see a constant lateness. */
  readonly startEstimated: boolean;
  /** Answered requests; failed and unsent ones rank above all others. */
  readonly response: SeriesSummary;
  readonly service: SeriesSummary;
  /** Requests that were sent, answered or not. */
  readonly lag: SeriesSummary;
};

/**
 * @param responseNs undefined if it failed or was not answered in time
 * @param lagNs negative if it left before it was due
 * @param latencyNs as the driver reports it, of a failed one until it was given up
 */
export type TakeRequest = (
  dueNs: number,
  responseNs: number | undefined,
  lagNs: number,
  latencyNs: number,
) => void;

export type LatencySource = {
  readonly path: string;
  readonly name: string;
  readonly loadPlan: LoadPlan;
  readonly measuredFromNs: string;
  /** Planned offsets in nanoseconds by sequence number, for arrivals that are not uniform. */
  readonly offsetsNs?: Float64Array;
  /** Receives the interval log line by line. */
  readonly writeInterval?: (line: string) => void;
  /** Receives the histograms of the run before they are freed, and copies what it needs. */
  readonly takeTotals?: (totals: Series) => void;
  /** Receives every request that was sent: when it was due, and its response if there was one. */
  readonly takeRequest?: TakeRequest;
};

/**
 * Reads the requests of a run and summarises response, service and lag.
 *
 * response = sent + latency - due, service = latency, lag = sent - due, where `due` is the start
 * of the plan plus the planned offset of the sequence number.
 *
 * @throws Failure `document` for bad rows or a load plan without what its arrival needs
 */
export async function measureLatency(source: LatencySource): Promise<RunLatency> {
  const { loadPlan, offsetsNs } = source;
  if (loadPlan.arrival !== "uniform" && offsetsNs === undefined) {
    throw new Failure("document", `${source.name}: arrival is ${loadPlan.arrival}, but no offsets`);
  }
  const estimated = loadPlan.startNs === undefined;
  const originNs = loadPlan.startNs ?? source.measuredFromNs;
  const requests = { path: source.path, name: source.name, originNs, planned: loadPlan.planned };
  const startNs = estimated ? await estimateStart(requests, loadPlan) : 0;
  const { writeInterval } = source;
  const beganNs = BigInt(originNs) + BigInt(startNs);
  const recorder = new IntervalRecorder(
    writeInterval && { startNs: beganNs, write: writeInterval },
  );
  const { intervalNs } = loadPlan;
  let overflow = 0;
  let lagMinNs = Number.POSITIVE_INFINITY;
  const leastLag = new LeastLag();
  try {
    const totals = await readRequests(requests, (seq, sentNs, latencyNs, ok) => {
      const dueNs = offsetsNs === undefined ? seq * intervalNs : (offsetsNs[seq] ?? Number.NaN);
      const lagNs = sentNs - startNs - dueNs;
      if (lagNs < lagMinNs) lagMinNs = lagNs;
      leastLag.record(dueNs, lagNs);
      // A clock that is slewed can make a request look early; the least lag is kept and gated.
      const lateNs = lagNs > 0 ? lagNs : 0;
      const responseNs = lateNs + latencyNs;
      source.takeRequest?.(dueNs, ok ? responseNs : undefined, lagNs, latencyNs);
      if (!(responseNs <= highestTrackableNs)) {
        overflow += 1;
        return undefined;
      }
      recorder.record(dueNs, lateNs, ok ? responseNs : undefined, latencyNs);
      return undefined;
    });
    const finished = recorder.finish();
    source.takeTotals?.(finished);
    const { response, service, lag } = finished;
    const clockStep = findClockStep(leastLag.finish());
    return {
      ...countsOf(totals, loadPlan.planned),
      overflow,
      lagMinNs: totals.rows === 0 ? 0 : lagMinNs,
      ...(clockStep !== undefined && { clockStep }),
      startNs: String(beganNs),
      startEstimated: estimated,
      response: summarise(response, loadPlan.planned),
      service: summarise(service, loadPlan.planned),
      lag: summarise(lag, totals.rows),
    };
  } finally {
    recorder.destroy();
  }
}

function countsOf(totals: RowTotals, planned: number) {
  return {
    planned,
    sent: totals.rows,
    ok: totals.rows - totals.failed,
    failed: totals.failed,
    seqMax: totals.seqMax,
    codes: Object.fromEntries([...totals.codes].map(([code, count]) => [String(code), count])),
    errors: Object.fromEntries(totals.errors),
  };
}

/**
 * When sequence number 0 was due, relative to the origin: the earliest send of the plan's first
 * second, each moved back by its planned offset. The vegeta CLI does not tell its start. The
 * estimate takes a lateness shared by all these requests for part of the start.
 */
async function estimateStart(
  requests: Parameters<typeof readRequests>[0],
  loadPlan: LoadPlan,
): Promise<number> {
  const { intervalNs, planned } = loadPlan;
  const wanted = Math.min(planned, Math.ceil(1e9 / intervalNs));
  let seen = 0;
  let startNs = Number.POSITIVE_INFINITY;
  await readRequests(requests, (seq, sentNs) => {
    if (seq >= wanted) return undefined;
    seen += 1;
    startNs = Math.min(startNs, sentNs - seq * intervalNs);
    return seen === wanted;
  });
  return Number.isFinite(startNs) ? startNs : 0;
}

/** Quantiles rank over `population`; what is missing from the histogram ranks last. */
function summarise(histogram: LatencyHistogram, population: number): SeriesSummary {
  const { count } = histogram;
  const exact = (ns: number): Cell => (count === 0 ? none("no answers") : value(ns, "ns"));
  const quantile = (name: QuantileName): Cell => {
    const share = quantileOf[name];
    if (!isTold(population, share)) return none(`too few requests for ${name}`);
    const rank = rankOf(population, share);
    return rank > count ? none("> timeout") : value(histogram.valueAtRank(rank), "ns");
  };
  return {
    count,
    minNs: exact(histogram.minNs),
    maxNs: exact(histogram.maxNs),
    meanNs: exact(histogram.sumNs / count),
    quantiles: {
      p50: quantile("p50"),
      p95: quantile("p95"),
      p99: quantile("p99"),
      "p99.9": quantile("p99.9"),
    },
  };
}
