/**
 * Puts the judged runs of a campaign together: what each treatment shows over its blocks, what it
 * costs against the baseline, and what noise alone does.
 */
import {
  baselineOf,
  capacityLabelOf,
  type Condition,
  isBaseline,
  loadOf,
  type Plan,
} from "../contracts/plan.ts";
import {
  type BlockPoints,
  type Blocks,
  blocksOf,
  conditionOf,
  forEachMetric,
  isMeasured,
  type LossMetricId,
  pairsOf,
  pointsOf,
} from "./blocks.ts";
import type { Capacities } from "./capacity.ts";
import { type Cell, none, notMeasured, numberOf, type ReasonCell, value } from "./cell.ts";
import { type JudgedRun, type MetricId, metricIds, type Metrics, metricsOf } from "./judged-run.ts";
import {
  type DifferenceEstimate,
  estimateDifference,
  estimateRatio,
  holdFamily,
  type RatioEstimate,
} from "./loss.ts";
import { matrixIds, type RunMatrix } from "./matrix.ts";
import { type Noise, noiseOf } from "./noise.ts";
import { geometricMean, median } from "./statistics.ts";

export type Treatment = {
  readonly label: string;
  readonly topology: string;
  readonly driver: string;
  readonly condition: Condition;
  /** Requests per second that were planned. */
  readonly rateQps: number;
  readonly runs: { readonly planned: number; readonly valid: number; readonly warned: number };
  /** Median over valid runs, with least and greatest. */
  readonly metrics: Metrics;
  /** CPU per request of the data plane by kind of unit, median over valid runs. */
  readonly cpuPerRequestByKind: Readonly<Record<string, Cell>>;
  /** Of the load driver to the entry when measuring began, as the kernel told. */
  readonly connections: Cell;
  /** Connections, memory, files, network and sessions; median over valid runs. */
  readonly matrix: RunMatrix;
  /** Requests of all valid runs. */
  readonly requests: { readonly sent: number; readonly failed: number };
};

export type Loss = {
  readonly label: string;
  /** What it is compared with. */
  readonly baseline: string;
  readonly ratios: Readonly<Record<LossMetricId, RatioEstimate>>;
  /** In the unit of the metric: nanoseconds, or microseconds of CPU time. */
  readonly differences: Readonly<Record<LossMetricId, DifferenceEstimate>>;
  readonly coresDifference: DifferenceEstimate;
  /** Capacity over that of the baseline; the loss is 1 less this. */
  readonly throughput: RatioEstimate;
  readonly points: BlockPoints;
  readonly blocks: Blocks;
};

export type Comparison = {
  readonly treatments: readonly Treatment[];
  readonly losses: readonly Loss[];
  /** Of the plan's baseline. */
  readonly noise: Noise;
  /** Of further baselines by their label, where the plan has treatments of several rates. */
  readonly furtherNoise?: Readonly<Record<string, Noise>>;
};

/**
 * Compares all treatments of a plan; invalid runs take no part in any number.
 *
 * @param capacities if the plan has searches
 */
export function compare(
  plan: Plan,
  runs: readonly JudgedRun[],
  capacities?: Capacities,
): Comparison {
  const compared = plan.treatments.filter(({ label }) => !isBaseline(plan, label));
  const further = plan.treatments
    .map(({ label }) => label)
    .filter((label) => isBaseline(plan, label) && label !== plan.baseline);
  return {
    treatments: plan.treatments.map((treatment) => summarise(plan, treatment, runs)),
    losses: holdTogether(compared.map((treatment) => lossOf(plan, treatment, runs, capacities))),
    noise: noiseOf(plan, plan.baseline, runs),
    ...(further.length > 0 && {
      furtherNoise: Object.fromEntries(
        further.map((label) => [label, noiseOf(plan, label, runs)] as const),
      ),
    }),
  };
}

function summarise(
  plan: Plan,
  treatment: Plan["treatments"][number],
  runs: readonly JudgedRun[],
): Treatment {
  const { label, topology, driver, condition } = treatment;
  const own = runs.filter((run) => run.label === label);
  const used = own.filter(isMeasured);
  const missing = none(used.length === 0 ? whyNone(own) : "not measured");
  const kinds = [...new Set(used.flatMap((r) => Object.keys(r.resources.cpuPerRequestByKind)))];
  const metrics = used.map((run) => metricsOf(run.latency, run.resources));
  const over = (id: MetricId): Cell =>
    middle(
      metrics.map((m) => m[id]),
      missing,
    );
  return {
    label,
    topology,
    driver,
    condition,
    rateQps: loadOf(plan, treatment).rateQps,
    runs: {
      planned: plan.blocks * (isBaseline(plan, label) ? 2 : 1),
      valid: used.length,
      warned: used.filter(({ verdict }) => verdict === "WARN").length,
    },
    metrics: Object.fromEntries(metricIds.map((id) => [id, over(id)])) as Record<MetricId, Cell>,
    cpuPerRequestByKind: Object.fromEntries(
      kinds.map((kind) => [
        kind,
        middle(
          used.map((run) => run.resources.cpuPerRequestByKind[kind] ?? notMeasured),
          missing,
        ),
      ]),
    ),
    connections: middle(
      used.map((run) => run.connections?.established ?? notMeasured),
      missing,
    ),
    matrix: Object.fromEntries(
      matrixIds.map((id) => [
        id,
        middle(
          used.map((run) => run.matrix?.[id] ?? notMeasured),
          missing,
        ),
      ]),
    ) as RunMatrix,
    requests: {
      sent: used.reduce((total, run) => total + run.latency.sent, 0),
      failed: used.reduce((total, run) => total + run.latency.failed, 0),
    },
  };
}

/** Median with least and greatest; a value missing in any run is missing in the whole. */
export function middle(cells: readonly Cell[], missing: ReasonCell): Cell {
  const [first] = cells;
  if (first === undefined) return missing;
  const absent = cells.find((cell) => cell.kind === "none");
  if (absent !== undefined || first.kind === "none") return absent ?? first;
  const numbers = cells.map((cell) => numberOf(cell) ?? Number.NaN);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  // One run has no spread to show.
  const range = numbers.length > 1 ? ({ low, high, kind: "range" } as const) : undefined;
  return value(median(numbers), first.unit, range);
}

/** Why a treatment has no valid run at all. */
export function whyNone(runs: readonly JudgedRun[]): string {
  if (runs.length === 0) return "not run";
  const missedRate = (run: JudgedRun): boolean =>
    run.gates.some(({ id, outcome }) => id === "sent" && outcome === "invalid");
  return runs.every(missedRate) ? "rate missed" : "no valid run";
}

function lossOf(
  plan: Plan,
  treatment: Plan["treatments"][number],
  runs: readonly JudgedRun[],
  capacities: Capacities | undefined,
): Loss {
  const { label, condition } = treatment;
  const own = runs.filter((run) => run.label === label);
  const baseline = baselineOf(plan, treatment);
  const apart = conditionOf(plan, baseline) !== condition;
  const { complete, dropped } = apart
    ? { complete: [], dropped: [] }
    : blocksOf(plan.blocks, baseline, label, runs, condition);
  const missing = apart ? "not comparable: condition differs" : whyNoBlock(own);
  const ratio = (id: MetricId): RatioEstimate => {
    if (complete.length === 0) return { kind: "none", reason: missing };
    const pairs = pairsOf(complete, id);
    return typeof pairs === "string"
      ? { kind: "none", reason: pairs }
      : estimateRatio(pairs, plan.equivalenceMargin);
  };
  const difference = (id: MetricId): DifferenceEstimate => {
    if (complete.length === 0) return { kind: "none", reason: missing };
    const pairs = pairsOf(complete, id);
    return typeof pairs === "string" ? { kind: "none", reason: pairs } : estimateDifference(pairs);
  };
  return {
    label,
    baseline,
    ratios: forEachMetric(ratio),
    differences: forEachMetric(difference),
    coresDifference: difference("cores"),
    throughput: throughputOf(plan, treatment, capacities),
    points: pointsOf(complete, ({ treatment: x, baseline: own }) => x / geometricMean(own)),
    blocks: { complete: complete.length, dropped },
  };
}

/** Treatments that differ in their rate only have one capacity. */
function throughputOf(
  plan: Plan,
  treatment: Plan["treatments"][number],
  capacities: Capacities | undefined,
): RatioEstimate {
  if (capacities === undefined) return notMeasured;
  const searched = capacityLabelOf(plan, treatment);
  const found = capacities.treatments.find(({ label }) => label === searched);
  return found?.ratio ?? { kind: "none", reason: "no search of it" };
}

/** All treatments of one metric are a family: each was a chance to find something. */
function holdTogether(losses: readonly Loss[]): readonly Loss[] {
  const families = forEachMetric((id) => holdFamily(losses.map(({ ratios }) => ratios[id])));
  return losses.map((loss, index) => ({
    ...loss,
    ratios: forEachMetric((id) => families[id][index] ?? loss.ratios[id]),
  }));
}

function whyNoBlock(own: readonly JudgedRun[]): string {
  return own.some(isMeasured) ? "no complete block" : whyNone(own);
}
