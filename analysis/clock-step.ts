/**
 * Finds a step of the clock inside recorded data. vegeta's stamps are monotonic, so what is found
 * was made afterwards, or by another driver whose stamps are readings of the wall clock.
 */

/** Smaller steps cannot be told from lateness. */
const stepMinNs = 10_000_000;
/** After a step the least lag is constant to within this share of the step. */
const wobble = 0.2;
/** So many seconds must follow, since a driver that is late may need a while to catch up. */
const secondsAfterMin = 3;

export type ClockStep = {
  /** Seconds after the start, by when requests were due. */
  readonly second: number;
  readonly ns: number;
};

/** Collects the least lag of each second in which requests were due. */
export class LeastLag {
  readonly #least: number[] = [];

  record(dueNs: number, lagNs: number): void {
    const second = Math.floor(dueNs / 1e9);
    const least = this.#least[second];
    if (least === undefined || lagNs < least) this.#least[second] = lagNs;
  }

  /** By second; infinite where nothing was sent. */
  finish(): readonly number[] {
    return Array.from(this.#least, (ns: number | undefined) => ns ?? Number.POSITIVE_INFINITY);
  }
}

/**
 * The first step, or undefined.
 *
 * Backward: requests seem to leave before they were due, which no driver does. Forward: from some
 * second on every request is late by the same amount. An open-loop driver that keeps up with its
 * rate catches up within moments, and the lag of one that does not keep up grows or varies.
 */
export function findClockStep(leastLagNs: readonly number[]): ClockStep | undefined {
  const seconds = leastLagNs.flatMap((ns, second) => (Number.isFinite(ns) ? [{ second, ns }] : []));
  const early = seconds.find(({ ns }) => ns <= -stepMinNs);
  if (early !== undefined) return early;
  // From the end: the longest tail whose least lags are all alike and large.
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  let from = seconds.length;
  for (let i = seconds.length - 1; i >= 0; i -= 1) {
    const ns = seconds[i]?.ns ?? 0;
    const [lower, higher] = [Math.min(low, ns), Math.max(high, ns)];
    if (lower < stepMinNs || higher - lower > wobble * lower) break;
    [low, high, from] = [lower, higher, i];
  }
  const [before, first] = [seconds[from - 1], seconds[from]];
  if (before === undefined || first === undefined) return undefined;
  if (seconds.length - from < secondsAfterMin || before.ns > low / 2) return undefined;
  return { second: first.second, ns: low };
}
