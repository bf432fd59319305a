/**
 * Lays concurrent vegeta processes over one another: each has its own monotonic clock, so each is
 * measured from its own start, and only the time in which all of them ran counts.
 */
import { Failure } from "../../contracts/failure.ts";

/** Starts may lie so far apart. */
const skewMaxNs = 1e9;

/** One process; times are nanoseconds after an origin that all share. */
export type Process = {
  readonly name: string;
  /** When its first request was due. */
  readonly startNs: number;
  /** Requests that it should have sent. */
  readonly planned: number;
};

export type Window = { readonly fromNs: number; readonly toNs: number };

/**
 * The time in which all processes had requests due: from the latest start to the earliest end.
 *
 * @throws Failure `document` if they did not run at the same time
 */
export function commonWindow(processes: readonly Process[], intervalNs: number): Window {
  const starts = processes.map(({ startNs }) => startNs);
  const ends = processes.map(({ startNs, planned }) => startNs + planned * intervalNs);
  const [first, fromNs] = [Math.min(...starts), Math.max(...starts)];
  const toNs = Math.min(...ends);
  if (fromNs - first >= skewMaxNs) {
    const late = processes[starts.indexOf(fromNs)]?.name ?? "";
    throw new Failure(
      "document",
      `${late}: start: must be less than ${skewMaxNs / 1e9} s after that of the others, found ` +
        `${((fromNs - first) / 1e9).toFixed(3)} s`,
      { hint: "only processes that ran at the same time can be merged: read the others alone" },
    );
  }
  if (toNs <= fromNs) {
    const short = processes[ends.indexOf(toNs)]?.name ?? "";
    throw new Failure("document", `${short}: ended before the others began`);
  }
  return { fromNs, toNs };
}

/** How many of a process's requests were due within a window, its end excluded. */
export function plannedWithin(process: Process, window: Window, intervalNs: number): number {
  const before = (ns: number): number => {
    const count = Math.ceil((ns - process.startNs) / intervalNs);
    return Math.min(Math.max(count, 0), process.planned);
  };
  return before(window.toNs) - before(window.fromNs);
}
