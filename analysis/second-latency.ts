/** Response times by the second in which requests were due; exact, for runs that last seconds. */
import { type Cell, none, value } from "./cell.ts";

/** Fewer requests than this beyond a quantile of one second say nothing. */
const beyondMin = 5;

/** Collects the requests of one run; failed ones rank above all others. */
export class SecondLatency {
  readonly #seconds: number[][] = [];

  /** @param responseNs undefined if it failed or was not answered in time */
  record(dueNs: number, responseNs: number | undefined): void {
    const index = Math.floor(dueNs / 1e9);
    (this.#seconds[index] ??= []).push(responseNs ?? Number.POSITIVE_INFINITY);
  }

  /** Sorted responses of each second; must not be recorded to after that. */
  finish(): readonly (readonly number[])[] {
    return Array.from(this.#seconds, (second: number[] | undefined) =>
      (second ?? []).sort((a, b) => a - b),
    );
  }
}

/** Quantile of sorted responses, by rank. */
export function quantileOf(sorted: readonly number[], share: number, name: string): Cell {
  if (Math.round(sorted.length * (1 - share) * 1e6) / 1e6 < beyondMin) {
    return none(`too few requests for ${name} of a second`);
  }
  const ns = sorted[Math.ceil(Math.round(sorted.length * share * 1e6) / 1e6) - 1] ?? Number.NaN;
  return Number.isFinite(ns) ? value(ns, "ns") : none("> timeout");
}

/**
 * When the median is back for good: the first second from which on every median is at most twice
 * that of the last one, as time after the first request.
 *
 * @param calmNs a last median above this is no end to measure by
 */
export function recoveryOf(medians: readonly Cell[], calmNs: number): Cell {
  const last = medians.at(-1);
  if (last === undefined) return none("no requests");
  if (last.kind === "none") return none(`no median at the end: ${last.reason}`);
  if (last.value > calmNs) return none("not back within the run");
  const late = medians.findLastIndex((cell) => cell.kind === "none" || cell.value > 2 * last.value);
  return value((late + 1) * 1e9, "ns");
}
