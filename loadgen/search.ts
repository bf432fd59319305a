/**
 * The search for a capacity: which rate to try next, given what the ones before it showed; pure.
 * First it grows, then it halves the gap, then the candidate must hold again.
 */
import type { CapacitySettings } from "../contracts/capacity.ts";

/** A rate that was tried and whether it held the objective. */
export type Tried = {
  readonly purpose: "search" | "confirm";
  readonly rateQps: number;
  readonly passed: boolean;
};

export type SearchStep =
  | { readonly next: "search" | "confirm"; readonly rateQps: number }
  /** Nothing more to try: the analysis makes the bracket of what was seen. */
  | { readonly next: "done"; readonly because: "confirmed" | "at most" | "none holds" };

type Rules = Pick<CapacitySettings, "startQps" | "maxQps" | "precision" | "confirmations">;

/** Each rate is so many times the one before until one does not hold. */
const growth = 1.5;
/** A candidate that does not hold again is lowered by this share. */
const backOff = 0.015;
/** Below this rate nothing is searched. */
const leastQps = 1;
/** Bound of one search; growth and bisection need about 20, every back-off a few more. */
export const probesMax = 60;

/**
 * The next probe of a search.
 *
 * @param rules from the plan
 * @param tried all probes of this search so far, in order
 */
export function nextStep(rules: Rules, tried: readonly Tried[]): SearchStep {
  const confirming = tried.filter(({ purpose }) => purpose === "confirm");
  const last = confirming.at(-1);
  if (last !== undefined) return afterConfirmation(rules, confirming, last);
  const passed = tried.filter((probe) => probe.passed).map(({ rateQps }) => rateQps);
  const failed = tried.filter((probe) => !probe.passed).map(({ rateQps }) => rateQps);
  const lower = passed.length === 0 ? undefined : Math.max(...passed);
  const upper = failed.length === 0 ? undefined : Math.min(...failed);
  if (lower === undefined) {
    if (upper === undefined) return search(rules.startQps);
    if (upper <= leastQps) return { next: "done", because: "none holds" };
    return search(Math.max(leastQps, Math.floor(upper / growth)));
  }
  if (upper === undefined) {
    if (lower >= rules.maxQps) return { next: "confirm", rateQps: lower };
    return search(Math.min(rules.maxQps, Math.ceil(lower * growth)));
  }
  const middle = Math.round(Math.sqrt(lower * upper));
  const isNarrow = (upper - lower) / lower <= rules.precision || middle <= lower || middle >= upper;
  // A rate that once held below one that did not, and above: noise; the lower end is confirmed.
  return isNarrow || upper <= lower ? { next: "confirm", rateQps: lower } : search(middle);
}

function afterConfirmation(rules: Rules, confirming: readonly Tried[], last: Tried): SearchStep {
  const { rateQps } = last;
  if (!last.passed) {
    const lowered = Math.min(rateQps - 1, Math.floor(rateQps * (1 - backOff)));
    if (lowered < leastQps) return { next: "done", because: "none holds" };
    return { next: "confirm", rateQps: lowered };
  }
  const held = confirming.filter((probe) => probe.rateQps === rateQps).length;
  if (held < rules.confirmations) return { next: "confirm", rateQps };
  return { next: "done", because: rateQps >= rules.maxQps ? "at most" : "confirmed" };
}

function search(rateQps: number): SearchStep {
  return { next: "search", rateQps };
}

/**
 * Rates of a ladder, ascending: `steps` of them in geometric distances.
 *
 * @param capacityQps that the ends are multiples of
 */
export function ladderRates(
  capacityQps: number,
  { steps, from, to }: NonNullable<CapacitySettings["ladder"]>,
): number[] {
  const ratio = (to / from) ** (1 / (steps - 1));
  const rates = Array.from({ length: steps }, (_, step) =>
    Math.max(leastQps, Math.round(capacityQps * from * ratio ** step)),
  );
  return [...new Set(rates)];
}
