/**
 * Collects the latencies of a run, as a whole and by one-second intervals of the plan: each
 * published quantile can be rebuilt from the lines of the interval log.
 */
import { LatencyHistogram } from "./histogram.ts";

export const intervalSeconds = 1;
export const seriesNames = ["response", "service", "lag"] as const;
export type SeriesName = (typeof seriesNames)[number];
export type Series = Record<SeriesName, LatencyHistogram>;

/** Rows come by order of completion, so a few intervals are open at a time; more cost memory. */
const openIntervalsMax = 16;

export type IntervalLog = {
  /** When offset 0 of the plan was due, nanoseconds since 1970. */
  readonly startNs: bigint;
  /** Receives the log line by line. */
  readonly write: (line: string) => void;
};

/** Empty histograms, which the caller frees with `destroySeries`. */
export function newSeries(): Series {
  return {
    response: new LatencyHistogram(),
    service: new LatencyHistogram(),
    lag: new LatencyHistogram(),
  };
}

/**
 * Records requests; totals are complete after `finish`. Each goes into the totals and into its
 * interval, since adding up a histogram costs as much as recording some thousand values.
 */
export class IntervalRecorder {
  readonly totals: Series = newSeries();
  readonly #log: IntervalLog | undefined;
  readonly #open = new Map<number, Series>();
  readonly #free: Series[] = [];
  #currentIndex = -1;
  #current: Series | undefined;

  /** @param log without one, intervals are not kept apart */
  constructor(log?: IntervalLog) {
    this.#log = log;
    if (log !== undefined) writeHead(log);
  }

  /**
   * Records one request that was sent, all in nanoseconds.
   *
   * @param responseNs undefined if it was not answered; then the latency says nothing
   */
  record(dueNs: number, lagNs: number, responseNs: number | undefined, latencyNs: number): void {
    recordInto(this.totals, lagNs, responseNs, latencyNs);
    if (this.#log !== undefined) recordInto(this.#at(dueNs), lagNs, responseNs, latencyNs);
  }

  #at(dueNs: number): Series {
    const index = Math.floor(dueNs / (intervalSeconds * 1e9));
    if (index === this.#currentIndex && this.#current !== undefined) return this.#current;
    let series = this.#open.get(index);
    if (series === undefined) {
      if (this.#open.size >= openIntervalsMax) this.#close(Math.min(...this.#open.keys()));
      series = this.#free.pop() ?? newSeries();
      this.#open.set(index, series);
    }
    this.#currentIndex = index;
    this.#current = series;
    return series;
  }

  /** Closes all intervals and frees what they held. */
  finish(): Series {
    const last = [...this.#open.keys()].sort((a, b) => a - b);
    for (const index of last) {
      const series = this.#take(index);
      if (series !== undefined) destroySeries(series);
    }
    for (const series of this.#free) destroySeries(series);
    this.#free.length = 0;
    return this.totals;
  }

  /** Frees everything, totals too. */
  destroy(): void {
    this.finish();
    destroySeries(this.totals);
  }

  #close(index: number): void {
    const series = this.#take(index);
    if (series === undefined) return;
    for (const name of seriesNames) if (series[name].count > 0) series[name].reset();
    this.#free.push(series);
  }

  /**
   * Writes the lines of an interval and takes it out of those that are open. A late row may open it
   * anew: then it has two lines a series, which add up.
   */
  #take(index: number): Series | undefined {
    const series = this.#open.get(index);
    if (series === undefined) return undefined;
    this.#open.delete(index);
    if (index === this.#currentIndex) this.#currentIndex = -1;
    for (const name of seriesNames) {
      if (series[name].count > 0) this.#writeLine(index, name, series[name]);
    }
    return series;
  }

  #writeLine(index: number, name: SeriesName, histogram: LatencyHistogram): void {
    const log = this.#log;
    if (log === undefined) return;
    const start = seconds(log.startNs + BigInt(index * intervalSeconds) * 1_000_000_000n);
    const maxMs = (histogram.maxNs / 1e6).toFixed(3);
    const length = intervalSeconds.toFixed(3);
    log.write(`Tag=${name},${start},${length},${maxMs},${histogram.encode()}\n`);
  }
}

function recordInto(
  series: Series,
  lagNs: number,
  responseNs: number | undefined,
  latencyNs: number,
): void {
  series.lag.record(lagNs);
  if (responseNs === undefined) return;
  series.response.record(responseNs);
  series.service.record(latencyNs);
}

/** Frees what `newSeries` made. */
export function destroySeries(series: Series): void {
  for (const name of seriesNames) series[name].destroy();
}

/** Times are absolute: a reader that finds neither start nor base time would invent one. */
function writeHead(log: IntervalLog): void {
  const start = seconds(log.startNs);
  const date = new Date(Number(log.startNs / 1_000_000n)).toISOString();
  log.write("#[Histogram log format version 1.3]\n");
  log.write(`#[StartTime: ${start} (seconds since epoch), ${date}]\n`);
  log.write('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n');
}

function seconds(ns: bigint): string {
  const milliseconds = ns / 1_000_000n;
  return `${milliseconds / 1000n}.${String(milliseconds % 1000n).padStart(3, "0")}`;
}
