/**
 * Analyses results of vegeta outside of any campaign: response, service and lag of one process, or
 * of several that ran at the same time.
 */
import { Failure } from "../../contracts/failure.ts";
import { Collector, type Counts, type FileReading } from "./collector.ts";
import { commonWindow, type Window } from "./merge.ts";
import type { Instant } from "./rows.ts";
import { type DecodeGob, readResults, type ResultFile } from "./source.ts";
import { type SeriesView, viewOf } from "./view.ts";

export type ReadOptions = {
  /** Requests per second of each process, as vegeta was told. */
  readonly rateQps: number;
  /** Planned length, as vegeta was told; undefined plans what sequence numbers show. */
  readonly durationSeconds: number | undefined;
  readonly decodeGob: DecodeGob;
};

export type Reading = {
  readonly schema: "ztbench/read/1";
  /** `INVALID`: the figures are no measurement, for the reasons in `problems`. */
  readonly verdict: "VALID" | "INVALID";
  readonly rateQps: number;
  readonly intervalNs: number;
  readonly files: readonly FileReading[];
  readonly counts: Counts;
  /** Over all planned requests; failed and unsent ones rank above all answers. */
  readonly response: SeriesView;
  readonly service: SeriesView;
  /** Over all requests that were sent. */
  readonly lag: SeriesView;
  /** What was assumed. */
  readonly notes: readonly string[];
  readonly problems: readonly string[];
};

type Survey = {
  readonly origin: Instant;
  /** When the first request was due, nanoseconds after the origin. */
  readonly startNs: number;
  /** Undefined if the file was not read to its end. */
  readonly seqMax: number | undefined;
};

/** Rows come in any order: so many times those of a second are looked at for the start. */
const surveyFactor = 4;
const surveyRowsMin = 1000;

/**
 * Reads files, each the result of one vegeta process at `rateQps`, and merges them.
 *
 * response = sent + latency - due, service = latency, lag = sent - due. Request `seq` was due at
 * `t0 + seq * I` with `I = floor(1e9 / rate)`; `t0` is the least `sent - seq * I` over the first
 * second, since vegeta does not tell when it began.
 *
 * @throws Failure `document` with file and line for whatever vegeta cannot have written, or for
 *   processes that did not run at the same time
 */
export async function readFiles(
  files: readonly ResultFile[],
  options: ReadOptions,
): Promise<Reading> {
  const intervalNs = Math.floor(1e9 / options.rateQps);
  const planned = plannedBy(options.durationSeconds, intervalNs);
  const isWhole = files.length > 1 && planned === undefined;
  const surveys: Survey[] = [];
  for (const file of files) surveys.push(await survey(file, options, intervalNs, isWhole));
  const origin = surveys[0]?.origin ?? { seconds: 0 };
  const starts = surveys.map((one) => one.startNs + (one.origin.seconds - origin.seconds) * 1e9);
  const window = windowOf(files, starts, surveys, planned, intervalNs);
  const collector = new Collector(intervalNs, origin, options.decodeGob);
  try {
    for (const [index, file] of files.entries()) {
      await collector.read(file, starts[index] ?? 0, planned, window);
    }
    const { series, problems } = collector;
    const counts = collector.counts();
    return {
      schema: "ztbench/read/1",
      verdict: problems.length === 0 ? "VALID" : "INVALID",
      rateQps: options.rateQps,
      intervalNs,
      files: collector.files,
      counts,
      response: viewOf(series.response, counts.planned),
      service: viewOf(series.service, counts.planned),
      lag: viewOf(series.lag, counts.sent),
      notes: notesOf(planned, window, counts),
      problems,
    };
  } finally {
    collector.destroy();
  }
}

/** vegeta sends until its duration has passed: one request for each interval that begins in it. */
function plannedBy(durationSeconds: number | undefined, intervalNs: number): number | undefined {
  if (durationSeconds === undefined) return undefined;
  return Math.ceil(Math.round(durationSeconds * 1e9) / intervalNs);
}

/** Undefined for one process, all of which counts. */
function windowOf(
  files: readonly ResultFile[],
  starts: readonly number[],
  surveys: readonly Survey[],
  planned: number | undefined,
  intervalNs: number,
): Window | undefined {
  if (files.length < 2) return undefined;
  const processes = files.map(({ name }, index) => ({
    name,
    startNs: starts[index] ?? 0,
    planned: planned ?? (surveys[index]?.seqMax ?? -1) + 1,
  }));
  return commonWindow(processes, intervalNs);
}

/** Finds the start of a process from its first rows; reads on if all of them are wanted. */
async function survey(
  file: ResultFile,
  { decodeGob }: ReadOptions,
  intervalNs: number,
  isWhole: boolean,
): Promise<Survey> {
  const wanted = Math.ceil(1e9 / intervalNs);
  const rowsMax = surveyFactor * wanted + surveyRowsMin;
  let [seen, rows, startNs] = [0, 0, Number.POSITIVE_INFINITY];
  const { seqMax, origin } = await readResults(file, decodeGob, (seq, sentNs) => {
    rows += 1;
    if (rows <= rowsMax && seq < wanted) {
      seen += 1;
      startNs = Math.min(startNs, sentNs - seq * intervalNs);
    }
    return !isWhole && (seen === wanted || rows >= rowsMax);
  });
  if (rows === 0) {
    throw new Failure("document", `${file.name}:1: has no result, at least one wanted`);
  }
  if (!Number.isFinite(startNs)) {
    throw new Failure(
      "document",
      `${file.name}:1: must begin with requests of its first second, found none of the first ` +
        `${wanted} among ${Math.min(rows, rowsMax)} rows`,
      { hint: "the beginning of the attack is missing, or --rate is not that of the process" },
    );
  }
  return { origin, startNs, seqMax: isWhole ? seqMax : undefined };
}

function notesOf(
  planned: number | undefined,
  window: Window | undefined,
  { outside }: Counts,
): readonly string[] {
  const notes = [
    "start estimated from the first second: a lateness that all its requests share is not seen",
  ];
  if (planned === undefined) {
    notes.push("without --duration the highest sequence number counts as the last planned request");
  }
  if (window !== undefined) {
    const seconds = ((window.toNs - window.fromNs) / 1e9).toFixed(3);
    notes.push(`${seconds} s in which all processes ran count, ${outside} requests lie outside`);
  }
  return notes;
}
