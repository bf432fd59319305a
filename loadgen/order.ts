/** Plan to ordered runs: which treatment is measured when, fixed before the first request. */
import type { Manifest } from "../contracts/manifest.ts";
import { isBaseline, type Plan } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import { seededDraw, shuffled } from "./random.ts";

/** A planned run; block, label and arm identify it. */
export type PlannedRun = Manifest["order"][number];

/** What a finished run says about the planned run it belongs to. */
export type Attempt = Pick<RunRecord, "block" | "label" | "arm"> & { readonly failed: boolean };

/** A failed run is measured once more, at the end of its block. */
const attemptsMax = 2;

/**
 * One pass over all treatments per block, in seeded random order, baselines twice (arms a, b).
 * Blocks are drawn one after another from one generator: more blocks leave the first ones as is.
 */
export function orderRuns(plan: Plan): PlannedRun[] {
  const draw = seededDraw(plan.seed);
  const cells = plan.treatments.flatMap(({ label }) =>
    isBaseline(plan, label)
      ? [
          { label, arm: "a" as const },
          { label, arm: "b" as const },
        ]
      : [{ label, arm: "a" as const }],
  );
  const blocks = Array.from({ length: plan.blocks }, (_, index) =>
    shuffled(cells, draw).map((cell, place) => ({
      run: index * cells.length + place + 1,
      block: index + 1,
      position: place + 1,
      ...cell,
    })),
  );
  return blocks.flat();
}

/**
 * The planned run that comes next, or undefined when all is measured. Within a block first what
 * was never tried, in planned order, then what failed once; such a repeat gets a position after
 * all others of its block. `run` is the order of execution, so it moves on when there were repeats.
 */
export function nextRun(
  order: readonly PlannedRun[],
  attempts: readonly Attempt[],
): PlannedRun | undefined {
  const tried = (run: PlannedRun) =>
    attempts.filter((a) => a.block === run.block && a.label === run.label && a.arm === run.arm);
  const isOpen = (run: PlannedRun) => {
    const own = tried(run);
    return own.length < attemptsMax && own.every((attempt) => attempt.failed);
  };
  const block = order.find(isOpen)?.block;
  if (block === undefined) return undefined;
  const planned = order.filter((run) => run.block === block);
  const open = planned.filter(isOpen);
  const fresh = open.find((run) => tried(run).length === 0);
  const chosen = fresh ?? open[0];
  if (chosen === undefined) return undefined;
  const repeats = attempts.filter((a) => a.block === block).length - planned.length;
  const position = fresh === undefined ? planned.length + repeats + 1 : chosen.position;
  return { ...chosen, run: attempts.length + 1, position };
}

/** How many runs are still to come if none fails. */
export function runsLeft(order: readonly PlannedRun[], attempts: readonly Attempt[]): number {
  let left = 0;
  const seen = [...attempts];
  for (let step = 0; step <= order.length * attemptsMax; step++) {
    const next = nextRun(order, seen);
    if (next === undefined) return left;
    seen.push({ ...next, failed: false });
    left += 1;
  }
  throw new Error("order: more runs left than planned");
}
