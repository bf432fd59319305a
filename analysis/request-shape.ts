/**
 * How the requests of a run lie in time: per second how many were sent and how long they took, how
 * even the gaps between them were, how many were in flight. One pass over rows in any order.
 */
import type { LoadPlan } from "../contracts/record.ts";
import { type Cell, none, value } from "./cell.ts";
import { InFlightGrid } from "./in-flight.ts";
import { rankOf } from "./rank.ts";

export type SecondShape = {
  readonly planned: number;
  readonly sent: number;
  /** Failed requests rank above all others: infinite where too many failed. */
  readonly p50Ns: number;
  readonly p99Ns: number;
};

export type RequestShape = {
  /** By the second in which requests were due. */
  readonly seconds: readonly SecondShape[];
  /** Standard deviation of the gaps between sends over their mean: 0 even, 1 as Poisson's. */
  readonly gapVariation: Cell;
  /** Highest number of requests in flight. */
  readonly inFlightMost: number;
};

/** Buckets an octave: a bucket is 0.27 % wide. */
const perOctave = 256;
/** Up to 2^37 ns, 137 s. */
const bucketsMax = 37 * perOctave;
/** No request is answered later than a minute after it was sent: then its second is complete. */
const openSecondsMax = 64;
/** Gaps are looked at for so many requests at most, which are kept and sorted. */
const gapsMax = 1_000_000;

/** Collects the requests of one run. */
export class ShapeCollector {
  readonly #plan: Pick<LoadPlan, "intervalNs" | "planned">;
  readonly #offsetsNs: Float64Array | undefined;
  readonly #open = new Map<number, OpenSecond>();
  readonly #closed = new Map<number, Pick<SecondShape, "sent" | "p50Ns" | "p99Ns">>();
  readonly #inFlight = new InFlightGrid();
  readonly #gapsUntilNs: number;
  #sent = new Float64Array(1024);
  #kept = 0;
  #newest = 0;

  constructor(plan: Pick<LoadPlan, "intervalNs" | "planned">, offsetsNs?: Float64Array) {
    this.#plan = plan;
    this.#offsetsNs = offsetsNs;
    this.#gapsUntilNs = offsetsNs?.[gapsMax] ?? gapsMax * plan.intervalNs;
  }

  /** @param responseNs undefined if it failed or was not answered in time */
  record(dueNs: number, responseNs: number | undefined, lagNs: number, latencyNs: number): void {
    const index = Math.floor(dueNs / 1e9);
    if (index > this.#newest) this.#advance(index);
    let second = this.#open.get(index);
    if (second === undefined) {
      second = { sent: 0, buckets: new Uint32Array(bucketsMax) };
      this.#open.set(index, second);
    }
    second.sent += 1;
    if (responseNs !== undefined) {
      const bucket = Math.min(bucketsMax - 1, Math.floor(Math.log2(responseNs + 1) * perOctave));
      second.buckets[bucket] = (second.buckets[bucket] ?? 0) + 1;
    }
    const sentNs = dueNs + lagNs;
    this.#inFlight.record(dueNs, lagNs, latencyNs);
    if (dueNs < this.#gapsUntilNs) this.#keep(sentNs);
  }

  finish(): RequestShape {
    for (const index of [...this.#open.keys()]) this.#close(index);
    const planned = this.#plannedBySecond();
    const length = Math.max(planned.length, ...[...this.#closed.keys()].map((key) => key + 1));
    const seconds = Array.from({ length }, (_, index) => ({
      planned: planned[index] ?? 0,
      ...(this.#closed.get(index) ?? { sent: 0, p50Ns: Infinity, p99Ns: Infinity }),
    }));
    return {
      seconds,
      gapVariation: this.#gapVariation(),
      inFlightMost: this.#inFlight.finish().most,
    };
  }

  #advance(index: number): void {
    this.#newest = index;
    for (const open of [...this.#open.keys()]) {
      if (open < index - openSecondsMax) this.#close(open);
    }
  }

  #close(index: number): void {
    const second = this.#open.get(index);
    if (second === undefined) return;
    this.#open.delete(index);
    const { sent } = second;
    // Of one that was opened anew by a row beyond all time-outs, the first part stands.
    const before = this.#closed.get(index);
    if (before !== undefined) this.#closed.set(index, { ...before, sent: before.sent + sent });
    else {
      const [p50Ns, p99Ns] = [quantileOf(second, 0.5), quantileOf(second, 0.99)];
      this.#closed.set(index, { sent, p50Ns, p99Ns });
    }
  }

  #keep(sentNs: number): void {
    if (this.#kept === this.#sent.length) {
      const longer = new Float64Array(this.#sent.length * 2);
      longer.set(this.#sent);
      this.#sent = longer;
    }
    this.#sent[this.#kept] = sentNs;
    this.#kept += 1;
  }

  #gapVariation(): Cell {
    if (this.#kept < 3) return none("too few requests");
    const sent = this.#sent.subarray(0, this.#kept).sort();
    const gaps = this.#kept - 1;
    const mean = ((sent[gaps] ?? Number.NaN) - (sent[0] ?? Number.NaN)) / gaps;
    let square = 0;
    for (let i = 1; i <= gaps; i += 1) {
      square += ((sent[i] ?? Number.NaN) - (sent[i - 1] ?? Number.NaN) - mean) ** 2;
    }
    return mean > 0 ? value(Math.sqrt(square / gaps) / mean, "ratio") : none("all sent at once");
  }

  #plannedBySecond(): readonly number[] {
    const { intervalNs, planned } = this.#plan;
    const counts: number[] = [];
    if (this.#offsetsNs !== undefined) {
      for (const ns of this.#offsetsNs) {
        const index = Math.floor(ns / 1e9);
        counts[index] = (counts[index] ?? 0) + 1;
      }
      return Array.from(counts, (count: number | undefined) => count ?? 0);
    }
    const firstFrom = (second: number): number =>
      Math.min(planned, Math.ceil((second * 1e9) / intervalNs));
    for (let second = 0; firstFrom(second) < planned; second += 1) {
      counts.push(firstFrom(second + 1) - firstFrom(second));
    }
    return counts;
  }
}

type OpenSecond = { sent: number; readonly buckets: Uint32Array };

/** Middle of the bucket that holds the rank; infinite if it is among the failed. */
function quantileOf({ sent, buckets }: OpenSecond, share: number): number {
  const rank = rankOf(sent, share);
  let seen = 0;
  for (let i = 0; i < buckets.length; i += 1) {
    seen += buckets[i] ?? 0;
    if (seen >= rank) return 2 ** ((i + 0.5) / perOctave);
  }
  return Number.POSITIVE_INFINITY;
}
