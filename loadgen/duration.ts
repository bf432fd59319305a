/** How long a plan takes by what it says: told before anything is touched. Pure. */
import type { CapacitySettings } from "../contracts/capacity.ts";
import { loadOf, type Plan } from "../contracts/plan.ts";
import { orderSearches } from "./capacity.ts";
import { orderRuns } from "./order.ts";
import { plannedRunSeconds } from "./progress.ts";
import { nextStep, probesMax, type Tried } from "./search.ts";

export type PlanDuration = {
  readonly runs: number;
  readonly runSeconds: number;
  readonly searches: number;
  readonly searchSeconds: number;
  /** Both together, if nothing has to be repeated. */
  readonly seconds: number;
};

/** Deploying and destroying of a search, as for a run. */
const deploySeconds = 10;

/** Adds up the runs and searches of a plan, each with the load of its own treatment. */
export function durationOf(plan: Plan): PlanDuration {
  const treatments = new Map(plan.treatments.map((treatment) => [treatment.label, treatment]));
  const runs = orderRuns(plan);
  const runSeconds = runs.reduce((sum, { label }) => {
    const treatment = treatments.get(label);
    return sum + (treatment === undefined ? 0 : plannedRunSeconds(loadOf(plan, treatment)));
  }, 0);
  const searches = orderSearches(plan);
  const { capacity } = plan;
  const searchSeconds = capacity === undefined ? 0 : searches.length * searchSecondsOf(capacity);
  return {
    runs: runs.length,
    runSeconds,
    searches: searches.length,
    searchSeconds,
    seconds: runSeconds + searchSeconds,
  };
}

/** The search's own rule, for a capacity in the middle (as logarithms) of its range. */
function searchSecondsOf(capacity: CapacitySettings): number {
  const { startQps, maxQps, settleSeconds, cooldownSeconds, ladder } = capacity;
  const assumedQps = Math.sqrt(startQps * maxQps);
  const tried: Tried[] = [];
  const secondsOf = (own: number) => Math.min(settleSeconds, own) + own + cooldownSeconds;
  let seconds = deploySeconds;
  for (let probe = 0; probe < probesMax; probe++) {
    const step = nextStep(capacity, tried);
    if (step.next === "done") break;
    const { next, rateQps } = step;
    tried.push({ purpose: next, rateQps, passed: rateQps <= assumedQps });
    seconds += secondsOf(next === "search" ? capacity.probeSeconds : capacity.confirmSeconds);
  }
  return seconds + (ladder === undefined ? 0 : 2 * ladder.steps * secondsOf(ladder.secondsPerStep));
}
