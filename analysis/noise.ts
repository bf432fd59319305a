/** What looks like loss without any: the baseline's second run of a block against its first. */
import type { Plan } from "../contracts/plan.ts";
import {
  type BlockPoints,
  type Blocks,
  blocksOf,
  conditionOf,
  forEachMetric,
  type LossMetricId,
  pairsOf,
  pointsOf,
} from "./blocks.ts";
import { type Cell, none, value } from "./cell.ts";
import type { JudgedRun, MetricId } from "./judged-run.ts";
import { estimateNoise, type Pair, type RatioEstimate } from "./loss.ts";
import { geometricMean, meanInterval, quantile } from "./statistics.ts";

/** The baseline's second run against its first: what looks like loss without any. */
export type Noise = {
  readonly ratios: Readonly<Record<LossMetricId, RatioEstimate>>;
  readonly points: BlockPoints;
  readonly blocks: Blocks;
  /**
   * Noise floor: 95 % of pairs lie within this ratio of each other. Shown, and no part of any
   * verdict: a noisy campaign must not make its own margin wider.
   */
  readonly floor: Readonly<Record<LossMetricId, Cell>>;
  /** Where the spread comes from. */
  readonly spread: Readonly<Record<LossMetricId, Spread>>;
};

/** Standard deviations of the logarithm, by level; 0.05 is about 5 %. */
export type Spread = {
  /** Of runs of one block, from its two baselines. */
  readonly run: Cell;
  /** Of blocks, over what the runs of a block explain. */
  readonly block: Cell;
};

/** A quantile of so few pairs moves too much. */
const floorPairsMin = 10;

/** What the plan's baselines show of it over all complete blocks. */
export function noiseOf(plan: Plan, baseline: string, runs: readonly JudgedRun[]): Noise {
  const condition = conditionOf(plan, baseline) ?? "steady";
  const { complete, dropped } = blocksOf(plan.blocks, baseline, baseline, runs, condition);
  const noise = (id: MetricId): RatioEstimate => {
    const pairs = pairsOf(complete, id);
    return typeof pairs === "string"
      ? { kind: "none", reason: pairs }
      : estimateNoise(
          pairs.map(({ baseline }) => baseline),
          plan.equivalenceMargin,
        );
  };
  return {
    ratios: forEachMetric(noise),
    points: pointsOf(complete, ({ baseline: [a, b] }) => b / a),
    blocks: { complete: complete.length, dropped },
    floor: forEachMetric((id) => fromPairs(pairsOf(complete, id), floorOf)),
    spread: forEachMetric((id) => ({
      run: fromPairs(pairsOf(complete, id), runSpread),
      block: fromPairs(pairsOf(complete, id), blockSpread),
    })),
  };
}

type Baselines = readonly (readonly [number, number])[];

function fromPairs(pairs: readonly Pair[] | string, compute: (found: Baselines) => Cell): Cell {
  if (typeof pairs === "string") return none(pairs);
  const found = pairs.map(({ baseline }) => baseline);
  return found.flat().every((x) => x > 0) ? compute(found) : none("zero has no ratio");
}

/** exp of the 95 % quantile of |ln b - ln a|. */
function floorOf(pairs: Baselines): Cell {
  if (pairs.length < floorPairsMin) {
    return none(`needs ${floorPairsMin} A/A pairs, found ${pairs.length}`);
  }
  const sizes = pairs.map(([a, b]) => Math.abs(Math.log(b / a))).sort((x, y) => x - y);
  return value(Math.exp(quantile(sizes, 0.95)), "ratio");
}

/** Two runs of a block differ by sqrt(2) times what one run varies. */
function runVariance(pairs: Baselines): number {
  return pairs.reduce((sum, [a, b]) => sum + Math.log(b / a) ** 2, 0) / (2 * pairs.length);
}

function runSpread(pairs: Baselines): Cell {
  return pairs.length === 0
    ? none("no complete block")
    : value(Math.sqrt(runVariance(pairs)), "log");
}

/** Variance of block means, less the half of the runs' variance that is in a mean of two. */
function blockSpread(pairs: Baselines): Cell {
  if (pairs.length < 2) return none("needs two complete blocks");
  const { sd } = meanInterval(pairs.map((pair) => Math.log(geometricMean(pair))));
  return value(Math.sqrt(Math.max(0, sd ** 2 - runVariance(pairs) / 2)), "log");
}
