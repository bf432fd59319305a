/** Blocks of runs that belong together, and what one metric says in each: the pairs of a loss. */
import type { Condition, Plan } from "../contracts/plan.ts";
import { numberOf } from "./cell.ts";
import { type JudgedRun, type MetricId, metricsOf } from "./judged-run.ts";
import type { Pair } from "./loss.ts";

/** A block that is not used, and what it lacks. */
export type DroppedBlock = { readonly block: number; readonly lacks: string };

/** The figures that a loss is computed of. */
export const lossMetricIds = ["responseP50", "responseP99", "cpuPerRequest"] as const;
export type LossMetricId = (typeof lossMetricIds)[number];

/** What one complete block shows; the estimates are made of these. */
export type BlockPoint = {
  readonly block: number;
  /** Treatment over the geometric mean of the block's baselines; for noise, second over first. */
  readonly ratio: number;
};
export type BlockPoints = Readonly<Record<LossMetricId, readonly BlockPoint[]>>;

export type Blocks = { readonly complete: number; readonly dropped: readonly DroppedBlock[] };

export type MeasuredRun<C extends Condition = Condition> = JudgedRun &
  Required<Pick<JudgedRun, "latency" | "resources">> & { readonly condition: C };

export function isMeasured(run: JudgedRun): run is MeasuredRun {
  return run.verdict !== "INVALID" && run.latency !== undefined && run.resources !== undefined;
}

/** All of one condition: a cold start says nothing about what is steady, nor the reverse. */
export type Block<C extends Condition = Condition> = {
  readonly block: number;
  readonly baseline: readonly [MeasuredRun<C>, MeasuredRun<C>];
  readonly treatment: MeasuredRun<C>;
};

export function forEachMetric<T>(compute: (id: LossMetricId) => T): Record<LossMetricId, T> {
  return {
    responseP50: compute("responseP50"),
    responseP99: compute("responseP99"),
    cpuPerRequest: compute("cpuPerRequest"),
  };
}

/**
 * Blocks with both baselines and the treatment valid, all of that condition; the others with what
 * they lack.
 */
export function blocksOf<C extends Condition>(
  planned: number,
  baseline: string,
  label: string,
  runs: readonly JudgedRun[],
  condition: C,
): { complete: readonly Block<C>[]; dropped: readonly DroppedBlock[] } {
  const ofCondition = (run: JudgedRun): run is MeasuredRun<C> =>
    isMeasured(run) && run.condition === condition;
  const complete: Block<C>[] = [];
  const dropped: DroppedBlock[] = [];
  for (let block = 1; block <= planned; block += 1) {
    const find = (wanted: string, arm: "a" | "b"): MeasuredRun<C> | undefined =>
      runs
        .filter(ofCondition)
        .find((run) => run.block === block && run.label === wanted && run.arm === arm);
    const [a, b] = [find(baseline, "a"), find(baseline, "b")];
    const treatment = find(label, "a");
    if (a === undefined || b === undefined) {
      dropped.push({ block, lacks: "two valid baseline runs" });
    } else if (treatment === undefined) {
      dropped.push({ block, lacks: `a valid run of ${label}` });
    } else complete.push({ block, baseline: [a, b], treatment });
  }
  return { complete, dropped };
}

/** The values of one metric, or the reason that a run has none. */
export function pairsOf(blocks: readonly Block[], id: MetricId): readonly Pair[] | string {
  const pairs: Pair[] = [];
  for (const { block, baseline, treatment } of blocks) {
    const cells = [treatment, ...baseline].map((r) => metricsOf(r.latency, r.resources)[id]);
    const [x, a, b] = cells.map(numberOf);
    if (x === undefined || a === undefined || b === undefined) {
      const absent = cells.find((cell) => cell.kind === "none");
      return absent?.kind === "none" ? absent.reason : "not measured";
    }
    pairs.push({ block, treatment: x, baseline: [a, b] });
  }
  return pairs;
}

/** Blocks as points of a plot; a ratio that is none is left out, its estimate says why. */
export function pointsOf(blocks: readonly Block[], ratioOf: (pair: Pair) => number): BlockPoints {
  return forEachMetric((id) => {
    const pairs = pairsOf(blocks, id);
    if (typeof pairs === "string") return [];
    return pairs
      .map((pair) => ({ block: pair.block, ratio: ratioOf(pair) }))
      .filter(({ ratio }) => Number.isFinite(ratio));
  });
}

/** Condition of a treatment, undefined if the plan has none of that label. */
export function conditionOf(plan: Plan, label: string): Condition | undefined {
  return plan.treatments.find((treatment) => treatment.label === label)?.condition;
}
