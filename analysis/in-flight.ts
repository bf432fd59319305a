/**
 * How many requests were in flight, on a grid of moments, in one pass over rows in any order; and
 * whether a cap on workers made the driver wait.
 */

/** Grid; memory is 12 bytes a step, bounded by `stepsMax`. */
const stepNs = 10_000_000;
const stepsMax = 1 << 22;
/** A driver that waits for a worker is later than this; shorter lags have many causes. */
const lateNs = 5_000_000;
/** Fewer late steps than this may be chance. */
const lateStepsMin = 5;
/** Share of late steps at the highest number of requests that gives a cap away. */
const cappedShareMin = 0.8;

export type InFlight = {
  /** Highest number of requests in flight at the grid's moments. */
  readonly most: number;
  /** Steps of the grid in which a request left late. */
  readonly lateSteps: number;
  /** Of these, those that began and ended with the highest number in flight. */
  readonly cappedSteps: number;
  /** When the first of these began, nanoseconds after the origin; undefined if there is none. */
  readonly cappedFromNs: number | undefined;
};

/** Collects when requests left and ended; times count from an origin of the caller's. */
export class InFlightGrid {
  #change = new Int32Array(1024);
  #lateNs = new Float64Array(1024);
  #last = 0;

  /** Times before the origin or beyond the grid count at its edges. */
  record(sentNs: number, latencyNs: number, lagNs: number): void {
    const sent = step(sentNs);
    const done = step(sentNs + latencyNs);
    if (done > this.#last) this.#grow(done);
    this.#change[sent] = (this.#change[sent] ?? 0) + 1;
    this.#change[done] = (this.#change[done] ?? 0) - 1;
    if (lagNs > (this.#lateNs[sent] ?? 0)) this.#lateNs[sent] = lagNs;
  }

  finish(): InFlight {
    let now = 0;
    let most = 0;
    for (let i = 0; i <= this.#last; i += 1) {
      now += this.#change[i] ?? 0;
      if (now > most) most = now;
    }
    let [lateSteps, cappedSteps] = [0, 0];
    let cappedFromNs: number | undefined;
    now = 0;
    for (let i = 0; i <= this.#last; i += 1) {
      const before = now;
      now += this.#change[i] ?? 0;
      if ((this.#lateNs[i] ?? 0) < lateNs) continue;
      lateSteps += 1;
      if (before !== most || now !== most) continue;
      cappedSteps += 1;
      cappedFromNs ??= i * stepNs;
    }
    return { most, lateSteps, cappedSteps, cappedFromNs };
  }

  #grow(last: number): void {
    this.#last = last;
    if (last < this.#change.length) return;
    const length = Math.min(stepsMax, Math.max(last + 1, this.#change.length * 2));
    const [change, late] = [new Int32Array(length), new Float64Array(length)];
    change.set(this.#change);
    late.set(this.#lateNs);
    [this.#change, this.#lateNs] = [change, late];
  }
}

function step(ns: number): number {
  return Math.min(Math.max(Math.floor(ns / stepNs), 0), stepsMax - 1);
}

/**
 * True if the driver had to wait for workers: most moments at which it was late have the same
 * number of requests in flight, which is never exceeded. A driver that is late for want of CPU
 * shows no such plateau.
 */
export function isCapped({ lateSteps, cappedSteps }: InFlight): boolean {
  return lateSteps >= lateStepsMin && cappedSteps >= cappedShareMin * lateSteps;
}
