/** Measures vegeta processes one after the other and adds them up: histograms, never quantiles. */
import { Failure } from "../../contracts/failure.ts";
import { type ClockStep, findClockStep, LeastLag } from "../clock-step.ts";
import { highestTrackableNs } from "../histogram.ts";
import { type InFlight, InFlightGrid, isCapped } from "../in-flight.ts";
import { destroySeries, newSeries, type Series } from "../interval.ts";
import type { Outcome } from "../tally.ts";
import { plannedWithin, type Process, type Window } from "./merge.ts";
import type { FileTotals, Instant } from "./rows.ts";
import { type DecodeGob, type Format, readResults, type ResultFile } from "./source.ts";

export type FileReading = {
  readonly name: string;
  readonly format: Format;
  readonly attack: string;
  /** Rows of the whole file, inside the common window or not. */
  readonly rows: number;
  readonly planned: number;
  /** When its first request was due, nanoseconds since 1970; estimated. */
  readonly startNs: string;
  /** Rows of the whole file by status; 0 stands for no answer. */
  readonly codes: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  /** Highest number of requests in flight, seen every 10 ms. */
  readonly inFlight: number;
};

export type Counts = {
  readonly planned: number;
  readonly sent: number;
  readonly ok: number;
  readonly failed: number;
  /** Of the failed ones, those whose error says that time ran out. */
  readonly timedOut: number;
  readonly unsent: number;
  /** Rows that were not due within the common window. */
  readonly outside: number;
};

/** Receives processes; holds histograms that must be destroyed. */
export class Collector {
  readonly series: Series = newSeries();
  readonly files: FileReading[] = [];
  /** Why the figures are no measurement. */
  readonly problems: string[] = [];
  readonly #intervalNs: number;
  readonly #origin: Instant;
  readonly #decodeGob: DecodeGob;
  #planned = 0;
  #sent = 0;
  #failed = 0;
  #timedOut = 0;
  #outside = 0;

  constructor(intervalNs: number, origin: Instant, decodeGob: DecodeGob) {
    this.#intervalNs = intervalNs;
    this.#origin = origin;
    this.#decodeGob = decodeGob;
  }

  /**
   * Reads one process.
   *
   * @param planned undefined takes the highest sequence number for the last that was planned
   * @param window undefined counts everything
   * @throws Failure `document` for a bad row, or one that was not planned
   */
  async read(
    file: ResultFile,
    startNs: number,
    planned: number | undefined,
    window: Window | undefined,
  ): Promise<void> {
    const grid = new InFlightGrid();
    const least = new LeastLag();
    const [fromNs, toNs] =
      window === undefined
        ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
        : [window.fromNs - startNs, window.toNs - startNs];
    const intervalNs = this.#intervalNs;
    const totals = await readResults(
      file,
      this.#decodeGob,
      (seq, sentNs, latencyNs, outcome) => {
        const dueNs = seq * intervalNs;
        const lagNs = sentNs - startNs - dueNs;
        least.record(dueNs, lagNs);
        grid.record(dueNs, lagNs, latencyNs);
        if (dueNs < fromNs || dueNs >= toNs) {
          this.#outside += 1;
          return;
        }
        this.#sent += 1;
        this.#record(lagNs, latencyNs, outcome);
      },
      this.#origin,
    );
    if (planned !== undefined && totals.seqMax >= planned) refuseUnplanned(file, totals, planned);
    const process = { name: file.name, startNs, planned: planned ?? totals.seqMax + 1 };
    const all = { fromNs: Number.NEGATIVE_INFINITY, toNs: Number.POSITIVE_INFINITY };
    this.#planned += plannedWithin(process, window ?? all, intervalNs);
    const inFlight = grid.finish();
    this.files.push(this.#describe(file, process, totals, inFlight));
    this.problems.push(...problemsOf(file, inFlight, findClockStep(least.finish())));
  }

  counts(): Counts {
    const [planned, sent, failed] = [this.#planned, this.#sent, this.#failed];
    const [timedOut, outside] = [this.#timedOut, this.#outside];
    return { planned, sent, ok: sent - failed, failed, timedOut, unsent: planned - sent, outside };
  }

  /** Frees the histograms. */
  destroy(): void {
    destroySeries(this.series);
  }

  #record(lagNs: number, latencyNs: number, outcome: Outcome): void {
    // A start that is estimated too late makes requests look early; they count as on time.
    const lateNs = lagNs > 0 ? lagNs : 0;
    const responseNs = lateNs + latencyNs;
    this.series.lag.record(Math.min(lateNs, highestTrackableNs));
    if (outcome === "ok" && responseNs <= highestTrackableNs) {
      this.series.response.record(responseNs);
      this.series.service.record(latencyNs);
      return;
    }
    this.#failed += 1;
    if (outcome !== "failed") this.#timedOut += 1;
  }

  #describe(
    file: ResultFile,
    { startNs, planned }: Process,
    totals: FileTotals,
    inFlight: InFlight,
  ): FileReading {
    const { name, format } = file;
    const { attack, rows, codes, errors } = totals;
    return {
      name,
      format,
      attack,
      rows,
      planned,
      startNs: String(BigInt(this.#origin.seconds) * 1_000_000_000n + BigInt(startNs)),
      codes: Object.fromEntries([...codes].map(([code, count]) => [String(code), count])),
      errors: Object.fromEntries(errors),
      inFlight: inFlight.most,
    };
  }
}

function refuseUnplanned(file: ResultFile, totals: FileTotals, planned: number): never {
  throw new Failure(
    "document",
    `${file.name}: seq: must be below the ${planned} that --rate and --duration plan, found ` +
      String(totals.seqMax),
    { hint: "give rate and duration as vegeta was told, per process" },
  );
}

function problemsOf(
  file: ResultFile,
  inFlight: InFlight,
  step: ClockStep | undefined,
): readonly string[] {
  const problems: string[] = [];
  if (isCapped(inFlight)) {
    const from = ((inFlight.cappedFromNs ?? 0) / 1e9).toFixed(2);
    problems.push(
      `${file.name}: workers: the driver waited for a free one from ${from} s on, with ` +
        `${inFlight.most} requests in flight and never more: service times look too good, and ` +
        "requests that were due stayed away; raise -max-workers",
    );
  }
  if (step !== undefined) problems.push(`${file.name}: clock: ${describeStep(step)}`);
  return problems;
}

function describeStep({ ns, second }: ClockStep): string {
  const size = `${(Math.abs(ns) / 1e6).toFixed(1)} ms`;
  if (ns > 0) {
    return `stepped forward by ${size} in second ${second}: since then all requests are late alike`;
  }
  return (
    `requests of second ${second} left ${size} before they were due: a step back, or more ` +
    "requests per second than --rate says"
  );
}
