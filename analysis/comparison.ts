/**
 * Puts the judged runs of a campaign together: what each treatment shows over its blocks, what it
 * costs against the baseline, and what noise alone does.
 */
import { baselineOf, type Condition, isBaseline, loadOf, type Plan } from "../contracts/plan.ts";
import { type Cell, none, notMeasured, numberOf, type ReasonCell, value } from "./cell.ts";
import type { ColdStart } from "./cold-start.ts";
import type { LoadConnections } from "./connections.ts";
import type { GateResult, RunVerdict } from "./gates.ts";
import type { RunLatency } from "./latency.ts";
import {
  type DifferenceEstimate,
  estimateDifference,
  estimateNoise,
  estimateRatio,
  type Pair,
  type RatioEstimate,
} from "./loss.ts";
import type { RunResources } from "./resources.ts";
import type { LegFacts } from "./wire.ts";
import { geometricMean, median } from "./statistics.ts";

/** A run that was measured, or broke off before there was anything to measure. */
export type JudgedRun = {
  readonly name: string;
  readonly run: number;
  readonly block: number;
  readonly position: number;
  readonly label: string;
  readonly arm: "a" | "b";
  readonly condition: Condition;
  readonly verdict: RunVerdict;
  readonly gates: readonly GateResult[];
  readonly latency?: RunLatency;
  readonly resources?: RunResources;
  readonly connections?: LoadConnections;
  /** Of a cold start only. */
  readonly coldStart?: ColdStart;
  readonly wire?: readonly LegFacts[];
};

export const metricIds = [
  "responseP50",
  "responseP95",
  "responseP99",
  "responseP999",
  "responseMax",
  "serviceP50",
  "serviceP99",
  "lagP50",
  "lagP99",
  "sentShare",
  "failedShare",
  "cpuPerRequest",
  "cores",
  "generatorShare",
] as const;
export type MetricId = (typeof metricIds)[number];
export type Metrics = Readonly<Record<MetricId, Cell>>;

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
  /** Requests of all valid runs. */
  readonly requests: { readonly sent: number; readonly failed: number };
};

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

export type Loss = {
  readonly label: string;
  /** What it is compared with. */
  readonly baseline: string;
  readonly ratios: Readonly<Record<LossMetricId, RatioEstimate>>;
  /** In the unit of the metric: nanoseconds, or microseconds of CPU time. */
  readonly differences: Readonly<Record<LossMetricId, DifferenceEstimate>>;
  readonly coresDifference: DifferenceEstimate;
  readonly throughput: ReasonCell;
  readonly points: BlockPoints;
  readonly blocks: Blocks;
};

/** The baseline's second run against its first: what looks like loss without any. */
export type Noise = {
  readonly ratios: Readonly<Record<LossMetricId, RatioEstimate>>;
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

/** The figures of one run that are compared. */
export function metricsOf(latency: RunLatency, resources: RunResources): Metrics {
  const { response, service, lag, planned, sent } = latency;
  return {
    responseP50: response.quantiles.p50,
    responseP95: response.quantiles.p95,
    responseP99: response.quantiles.p99,
    responseP999: response.quantiles["p99.9"],
    responseMax: response.maxNs,
    serviceP50: service.quantiles.p50,
    serviceP99: service.quantiles.p99,
    lagP50: lag.quantiles.p50,
    lagP99: lag.quantiles.p99,
    sentShare: value(sent / planned, "share"),
    failedShare: sent === 0 ? none("nothing was sent") : value(latency.failed / sent, "share"),
    cpuPerRequest: resources.cpuPerRequest,
    cores: resources.cores,
    generatorShare: resources.generatorShare,
  };
}

/** Compares all treatments of a plan; invalid runs take no part in any number. */
export function compare(plan: Plan, runs: readonly JudgedRun[]): Comparison {
  const compared = plan.treatments.filter(({ label }) => !isBaseline(plan, label));
  const further = plan.treatments
    .map(({ label }) => label)
    .filter((label) => isBaseline(plan, label) && label !== plan.baseline);
  return {
    treatments: plan.treatments.map((treatment) => summarise(plan, treatment, runs)),
    losses: compared.map((treatment) => lossOf(plan, treatment, runs)),
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
    requests: {
      sent: used.reduce((total, run) => total + run.latency.sent, 0),
      failed: used.reduce((total, run) => total + run.latency.failed, 0),
    },
  };
}

/** Median with least and greatest; a value missing in any run is missing in the whole. */
function middle(cells: readonly Cell[], missing: ReasonCell): Cell {
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

type MeasuredRun<C extends Condition = Condition> = JudgedRun &
  Required<Pick<JudgedRun, "latency" | "resources">> & { readonly condition: C };

function isMeasured(run: JudgedRun): run is MeasuredRun {
  return run.verdict !== "INVALID" && run.latency !== undefined && run.resources !== undefined;
}

/** Why a treatment has no valid run at all. */
function whyNone(runs: readonly JudgedRun[]): string {
  if (runs.length === 0) return "not run";
  const missedRate = (run: JudgedRun): boolean =>
    run.gates.some(({ id, outcome }) => id === "sent" && outcome === "invalid");
  return runs.every(missedRate) ? "rate missed" : "no valid run";
}

/** All of one condition: a cold start says nothing about what is steady, nor the reverse. */
type Block<C extends Condition = Condition> = {
  readonly block: number;
  readonly baseline: readonly [MeasuredRun<C>, MeasuredRun<C>];
  readonly treatment: MeasuredRun<C>;
};

function lossOf(
  plan: Plan,
  treatment: Plan["treatments"][number],
  runs: readonly JudgedRun[],
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
    throughput: notMeasured,
    points: pointsOf(complete, ({ treatment: x, baseline: own }) => x / geometricMean(own)),
    blocks: { complete: complete.length, dropped },
  };
}

function forEachMetric<T>(compute: (id: LossMetricId) => T): Record<LossMetricId, T> {
  return {
    responseP50: compute("responseP50"),
    responseP99: compute("responseP99"),
    cpuPerRequest: compute("cpuPerRequest"),
  };
}

function whyNoBlock(own: readonly JudgedRun[]): string {
  return own.some(isMeasured) ? "no complete block" : whyNone(own);
}

function conditionOf(plan: Plan, label: string): Condition | undefined {
  return plan.treatments.find((treatment) => treatment.label === label)?.condition;
}

/**
 * Blocks with both baselines and the treatment valid, all of that condition; the others with what
 * they lack.
 */
function blocksOf<C extends Condition>(
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
function pairsOf(blocks: readonly Block[], id: MetricId): readonly Pair[] | string {
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
function pointsOf(blocks: readonly Block[], ratioOf: (pair: Pair) => number): BlockPoints {
  return forEachMetric((id) => {
    const pairs = pairsOf(blocks, id);
    if (typeof pairs === "string") return [];
    return pairs
      .map((pair) => ({ block: pair.block, ratio: ratioOf(pair) }))
      .filter(({ ratio }) => Number.isFinite(ratio));
  });
}

function noiseOf(plan: Plan, baseline: string, runs: readonly JudgedRun[]): Noise {
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
  };
}
