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
import {
  additive,
  type BlockCosts,
  completeBlocks,
  type Costs,
  estimate,
  forEach,
  type Quantity,
} from "./block-costs.ts";
import { type Cell, none, numberOf, value } from "./cell.ts";
import { type HandshakeCosts, handshakeCostsOf } from "./handshake-cost.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { DifferenceEstimate } from "./loss.ts";
import { mean } from "./statistics.ts";

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
  /** Total less the sum of the steps' means, by additive quantity; what rounding leaves is 0. */
  readonly residual: Readonly<Record<string, Cell>>;
  /** Layers that are not there, and why. */
  readonly missing: readonly string[];
  readonly interaction?: Interaction;
  /** What opening a connection costs, where the plan has arms that open more or fewer. */
  readonly handshake?: HandshakeCosts;
};

export type Interaction = {
  /** (both - crypto) - (policy - neither), means of latency, nanoseconds. */
  readonly meanNs: DifferenceEstimate;
  /**
   * Whether crypto and policy cost something else together than each by itself; `open` where the
   * interval allows for both.
   */
  readonly verdict: "matters" | "does not matter" | "open";
  /** Costs with the interaction shared alike (Shapley), if it matters. */
  readonly shared?: { readonly cryptoNs: number; readonly policyNs: number };
};

/** An interaction below this share of the total is not worth telling. */
const interactionShare = 0.2;

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
  const handshake = handshakeCostsOf(ladder, plan.blocks, runs);
  return {
    rungs: there,
    blocks: [...blocks.keys()],
    steps,
    ...layersOf(ids, between),
    total,
    residual: residualOf(steps, total),
    ...(interaction !== undefined && { interaction }),
    ...(handshake !== undefined && { handshake }),
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

function residualOf(steps: readonly Step[], total: Step): Readonly<Record<string, Cell>> {
  const residual = (id: Quantity): Cell => {
    const [whole, parts] = [total.costs[id], steps.map(({ costs }) => costs[id])];
    if (whole.kind === "none") return whole;
    const sum = parts.reduce((so, part) => so + (part.kind === "none" ? 0 : part.mean), 0);
    const rest = whole.mean - sum;
    const isRounding = Math.abs(rest) <= 1e-9 * Math.max(1, Math.abs(whole.mean));
    return value(isRounding ? 0 : rest, id === "meanNs" ? "ns" : id === "cpuUs" ? "us" : "cores");
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
    if (absent?.kind === "none") return { meanNs: absent, verdict: "open" };
    const [x00 = 0, x10 = 0, x01 = 0, x11 = 0] = found.map((cell) => numberOf(cell) ?? 0);
    differences.push(x11 - x10 - (x01 - x00));
    alone.push({ crypto: x10 - x00, policy: x01 - x00, total: x11 - x00 });
  }
  const meanNs = estimate(differences);
  if (meanNs.kind !== "estimate") return { meanNs, verdict: "open" };
  const { low, high } = meanNs;
  const bound = interactionShare * Math.abs(mean(alone.map((block) => block.total)));
  const matters = (low > 0 || high < 0) && Math.abs(meanNs.mean) > bound;
  if (!matters) {
    const isSmall = Math.max(Math.abs(low), Math.abs(high)) <= bound;
    return { meanNs, verdict: isSmall ? "does not matter" : "open" };
  }
  const half = meanNs.mean / 2;
  const cryptoNs = mean(alone.map((block) => block.crypto)) + half;
  const policyNs = mean(alone.map((block) => block.policy)) + half;
  return { meanNs, verdict: "matters", shared: { cryptoNs, policyNs } };
}
