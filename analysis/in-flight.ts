/**
 * How many requests were in flight, on a grid of moments, in one pass over rows in any order; and
 * whether a cap on workers made the driver wait.
 */

/** Grid; memory is 8 bytes a step, bounded by `stepsMax`. */
const stepNs = 10_000_000;
const stepsMax = 1 << 22;
/** A driver that waits for a worker is later than this; shorter lags have many causes. */
const lateNs = 5_000_000;
/** Fewer moments than this may be chance. */
const overdueMin = 5;
/** Share of the moments with an overdue request at which no worker was free. */
const cappedShareMin = 0.8;

export type InFlight = {
  /** Highest number of requests in flight at the grid's moments. */
  readonly most: number;
  /** Moments at which some request was overdue. */
  readonly overdue: number;
  /** Of these, those with the highest number in flight. */
  readonly capped: number;
  /** The first of these, nanoseconds after the origin; undefined if there is none. */
  readonly cappedFromNs: number | undefined;
};

/** Collects when requests were due, left and ended; times count from an origin of the caller's. */
export class InFlightGrid {
  #change = new Int32Array(1024);
  #waiting = new Int32Array(1024);
  #last = 0;

  /** Times before the origin or beyond the grid count at its edges. */
  record(dueNs: number, lagNs: number, latencyNs: number): void {
    const sentNs = dueNs + lagNs;
    const sent = stepOf(sentNs);
    const done = stepOf(sentNs + latencyNs);
    if (done > this.#last) this.#grow(done);
    if (sent !== done) {
      this.#change[sent] = (this.#change[sent] ?? 0) + 1;
      this.#change[done] = (this.#change[done] ?? 0) - 1;
    }
    if (lagNs < lateNs) return;
    const due = stepOf(dueNs);
    this.#waiting[due] = (this.#waiting[due] ?? 0) + 1;
    this.#waiting[sent] = (this.#waiting[sent] ?? 0) - 1;
  }

  /** What was seen at the end of each step. */
  finish(): InFlight {
    let most = 0;
    for (let i = 0, flying = 0; i <= this.#last; i += 1) {
      flying += this.#change[i] ?? 0;
      if (flying > most) most = flying;
    }
    let [overdue, capped] = [0, 0];
    let cappedFromNs: number | undefined;
    for (let i = 0, flying = 0, waiting = 0; i <= this.#last; i += 1) {
      flying += this.#change[i] ?? 0;
      waiting += this.#waiting[i] ?? 0;
      if (waiting === 0) continue;
      overdue += 1;
      if (flying !== most) continue;
      capped += 1;
      cappedFromNs ??= (i + 1) * stepNs;
    }
    return { most, overdue, capped, cappedFromNs };
  }

  #grow(last: number): void {
    this.#last = last;
    if (last < this.#change.length) return;
    const length = Math.min(stepsMax, Math.max(last + 1, this.#change.length * 2));
    const [change, waiting] = [new Int32Array(length), new Int32Array(length)];
    change.set(this.#change);
    waiting.set(this.#waiting);
    [this.#change, this.#waiting] = [change, waiting];
  }
}

function stepOf(ns: number): number {
  return Math.min(Math.max(Math.floor(ns / stepNs), 0), stepsMax - 1);
}

/**
 * True if the driver had to wait for workers: at most moments at which a request was overdue there
 * were as many in flight as ever, and never more. A driver that is late for want of CPU shows no
 * such plateau.
 */
export function isCapped({ most, overdue, capped }: InFlight): boolean {
  return most > 0 && overdue >= overdueMin && capped >= cappedShareMin * overdue;
}
