/**
 * What each layer of a ladder costs: differences between rungs within blocks. Means and CPU add
 * up; quantiles do not, so their steps are told as increments in this order and nothing more. Pure.
 */
import type { Plan } from "../contracts/plan.ts";
import {
  type Ladder,
  type Layer,
  layers,
  type RungId,
  rungIds,
  rungs,
} from "../contracts/ladder.ts";
import { isMeasured, type MeasuredRun } from "./blocks.ts";
import { type Cell, none, numberOf, value } from "./cell.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { DifferenceEstimate } from "./loss.ts";
import { mean, meanInterval } from "./statistics.ts";

/** What is attributed; the first three add up over rungs. */
export const quantities = ["meanNs", "cpuUs", "cores", "controlCores", "p50Ns", "p99Ns"] as const;
export type Quantity = (typeof quantities)[number];
export const additive: readonly Quantity[] = ["meanNs", "cpuUs", "cores", "controlCores"];

/** One number for each quantity, or why there is none. */
export type Costs = Readonly<Record<Quantity, DifferenceEstimate>>;

export type Step = {
  readonly from: RungId;
  readonly to: RungId;
  readonly costs: Costs;
};

export type LayerCost = Step & {
  readonly layer: Layer;
  /** Rungs of the layer that the plan has not, so that it holds more than its name says. */
  readonly note?: string;
};

export type Attribution = {
  /** Rungs that the plan has, in order. */
  readonly rungs: readonly {
    readonly rung: RungId;
    readonly label: string;
    readonly what: string;
  }[];
  /** Blocks in which every rung is valid; only these are used, so that the steps add up. */
  readonly blocks: readonly number[];
  /** From each rung to the next. */
  readonly steps: readonly Step[];
  readonly layers: readonly LayerCost[];
  /** From the first rung to the last. */
  readonly total: Step;
  /** Total less the sum of the steps' means, by additive quantity: 0 but for rounding. */
  readonly residual: Readonly<Record<string, Cell>>;
  /** Layers that are not there, and why. */
  readonly missing: readonly string[];
  readonly interaction?: Interaction;
};

export type Interaction = {
  /** (both - crypto) - (policy - neither), means of latency, nanoseconds. */
  readonly meanNs: DifferenceEstimate;
  /** Whether crypto and policy cost something else together than each by itself. */
  readonly matters: boolean;
  /** Costs with the interaction shared alike (Shapley), if it matters. */
  readonly shared?: { readonly cryptoNs: number; readonly policyNs: number };
};

/** An interaction below this share of the total is not worth telling. */
const interactionShare = 0.2;

/** The rungs of one block: each quantity, or why it is not there. */
type BlockCosts = ReadonlyMap<string, Readonly<Record<Quantity, Cell>>>;

/** Attributes the cost of a ladder; undefined if the plan has none. */
export function attribute(plan: Plan, runs: readonly JudgedRun[]): Attribution | undefined {
  const { ladder } = plan;
  if (ladder === undefined) return undefined;
  const there = rungIds.flatMap((rung) => {
    const label = ladder.rungs[rung];
    return label === undefined ? [] : [{ rung, label, what: rungs[rung] }];
  });
  const labels = there.map(({ label }) => label);
  const blocks = completeBlocks(plan.blocks, labels, runs);
  const labelOf = new Map(there.map(({ rung, label }) => [rung, label]));
  const between = (from: RungId, to: RungId): Step => ({
    from,
    to,
    costs: costsBetween(blocks, labelOf.get(from) ?? "", labelOf.get(to) ?? ""),
  });
  const ids = there.map(({ rung }) => rung);
  const [first = "R0", last = "R0"] = [ids[0], ids.at(-1)];
  const steps = ids.slice(1).map((to, index) => between(ids[index] ?? first, to));
  const total = between(first, last);
  const interaction = interactionOf(ladder, plan.blocks, runs);
  return {
    rungs: there,
    blocks: [...blocks.keys()],
    steps,
    ...layersOf(ids, between),
    total,
    residual: residualOf(steps, total),
    ...(interaction !== undefined && { interaction }),
  };
}

/** A layer whose lower rung is absent starts at the rung below, and says so. */
function layersOf(
  ids: readonly RungId[],
  between: (from: RungId, to: RungId) => Step,
): Pick<Attribution, "layers" | "missing"> {
  const found: LayerCost[] = [];
  const missing: string[] = [];
  for (const { layer, from, to } of layers) {
    if (!ids.includes(to)) {
      missing.push(`${layer}: no rung ${to} (${rungs[to]})`);
      continue;
    }
    const start = ids.filter((id) => id <= from).at(-1);
    if (start === undefined) {
      missing.push(`${layer}: no rung at or below ${from}`);
      continue;
    }
    const note =
      start === from ? undefined : `no rung ${from}: holds what lies between ${start} and it, too`;
    found.push({ layer, ...between(start, to), ...(note !== undefined && { note }) });
  }
  return { layers: found, missing };
}

function completeBlocks(
  planned: number,
  labels: readonly string[],
  runs: readonly JudgedRun[],
): ReadonlyMap<number, BlockCosts> {
  const valid = runs.filter(isMeasured);
  const blocks = new Map<number, BlockCosts>();
  for (let block = 1; block <= planned; block += 1) {
    const here = valid.filter((run) => run.block === block);
    const own = labels.map((label) => [label, here.filter((run) => run.label === label)] as const);
    if (own.some(([, found]) => found.length === 0)) continue;
    blocks.set(block, new Map(own.map(([label, found]) => [label, meanOf(found)])));
  }
  return blocks;
}

/** A baseline runs twice in a block: the mean of both. */
function meanOf(runs: readonly MeasuredRun[]): Readonly<Record<Quantity, Cell>> {
  const cells = runs.map(quantitiesOf);
  const one = (id: Quantity): Cell => {
    const found = cells.map((cell) => cell[id]);
    const absent = found.find((cell) => cell.kind === "none");
    const [first] = found;
    if (absent !== undefined || first?.kind !== "value") return absent ?? none("not measured");
    return value(mean(found.map((cell) => numberOf(cell) ?? Number.NaN)), first.unit);
  };
  return forEach(one);
}

function quantitiesOf({ latency, resources }: MeasuredRun): Readonly<Record<Quantity, Cell>> {
  const { response, failed } = latency;
  const control = resources.units.filter(({ kind }) => kind === "control" || kind === "issuer");
  const controlCores = control.map(({ cores }) => cores);
  const absent = controlCores.find((cell) => cell.kind === "none");
  return {
    // A failed request has no time: a mean of the others would be too good.
    meanNs: failed > 0 ? none(`${failed} requests failed`) : response.meanNs,
    cpuUs: resources.cpuPerRequest,
    cores: resources.cores,
    controlCores:
      absent ??
      value(
        controlCores.reduce((sum, cell) => sum + (numberOf(cell) ?? 0), 0),
        "cores",
      ),
    p50Ns: response.quantiles.p50,
    p99Ns: response.quantiles.p99,
  };
}

function costsBetween(blocks: ReadonlyMap<number, BlockCosts>, from: string, to: string): Costs {
  return forEach((id) => {
    const differences: number[] = [];
    for (const costs of blocks.values()) {
      const [before, after] = [costs.get(from)?.[id], costs.get(to)?.[id]];
      const absent = [before, after].find((cell) => cell?.kind === "none");
      if (absent?.kind === "none") return absent;
      const [a, b] = [before && numberOf(before), after && numberOf(after)];
      if (a === undefined || b === undefined) return none("not measured");
      differences.push(b - a);
    }
    return estimate(differences);
  });
}

function estimate(differences: readonly number[]): DifferenceEstimate {
  const [first] = differences;
  if (first === undefined) return none("no block in which every rung is valid");
  if (differences.length === 1) return { kind: "point", mean: first, pairs: 1 };
  const { n, ...interval } = meanInterval(differences);
  return { kind: "estimate", ...interval, pairs: n };
}

function residualOf(steps: readonly Step[], total: Step): Readonly<Record<string, Cell>> {
  const residual = (id: Quantity): Cell => {
    const [whole, parts] = [total.costs[id], steps.map(({ costs }) => costs[id])];
    if (whole.kind === "none") return whole;
    const sum = parts.reduce((so, part) => so + (part.kind === "none" ? 0 : part.mean), 0);
    return value(whole.mean - sum, id === "meanNs" ? "ns" : id === "cpuUs" ? "us" : "cores");
  };
  return Object.fromEntries(additive.map((id) => [id, residual(id)]));
}

/** I = (x11 - x10) - (x01 - x00) of crypto and policy under proxies, by block. */
function interactionOf(
  ladder: Ladder,
  planned: number,
  runs: readonly JudgedRun[],
): Interaction | undefined {
  const corners = [ladder.rungs.R3, ladder.rungs.R4, ladder.policyWithoutCrypto, ladder.rungs.R5];
  const labels = corners.filter((label) => label !== undefined);
  if (labels.length < corners.length) return undefined;
  const differences: number[] = [];
  const alone: { readonly crypto: number; readonly policy: number; readonly total: number }[] = [];
  for (const costs of completeBlocks(planned, labels, runs).values()) {
    const found = labels.map((label) => costs.get(label)?.meanNs ?? none("not measured"));
    const absent = found.find((cell) => cell.kind === "none");
    if (absent?.kind === "none") return { meanNs: absent, matters: false };
    const [x00 = 0, x10 = 0, x01 = 0, x11 = 0] = found.map((cell) => numberOf(cell) ?? 0);
    differences.push(x11 - x10 - (x01 - x00));
    alone.push({ crypto: x10 - x00, policy: x01 - x00, total: x11 - x00 });
  }
  const meanNs = estimate(differences);
  if (meanNs.kind !== "estimate") return { meanNs, matters: false };
  const excludesZero = meanNs.low > 0 || meanNs.high < 0;
  const total = mean(alone.map((block) => block.total));
  const matters = excludesZero && Math.abs(meanNs.mean) > interactionShare * Math.abs(total);
  if (!matters) return { meanNs, matters };
  const half = meanNs.mean / 2;
  const cryptoNs = mean(alone.map((block) => block.crypto)) + half;
  const policyNs = mean(alone.map((block) => block.policy)) + half;
  return { meanNs, matters, shared: { cryptoNs, policyNs } };
}

function forEach<T>(compute: (id: Quantity) => T): Record<Quantity, T> {
  return Object.fromEntries(quantities.map((id) => [id, compute(id)])) as Record<Quantity, T>;
}
