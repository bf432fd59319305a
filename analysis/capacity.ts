/**
 * Capacities under an objective: the bracket of each search, their median over blocks, what a
 * treatment loses against the baseline, and what the ladder shows above and below. Pure.
 */
import { type CapacitySettings, ceilingLabel } from "../contracts/capacity.ts";
import type { CapacityProbe, CapacitySearch } from "../contracts/capacity-search.ts";
import { baselineOf, capacityLabelOf, type Plan } from "../contracts/plan.ts";
import type { ProbeResult } from "./capacity-probe.ts";
import { type Cell, none, numberOf, value } from "./cell.ts";
import { estimateRatio, type RatioEstimate } from "./loss.ts";
import { median } from "./statistics.ts";

/** A rate that was tried, and what came of it; no result if it broke off. */
export type TriedRate = Pick<CapacityProbe, "purpose" | "rateQps" | "passed" | "reasons"> & {
  readonly result?: ProbeResult;
};

/** A search with what its raw files show. */
export type JudgedSearch = Pick<CapacitySearch, "block" | "position" | "label" | "ended"> & {
  readonly topology: string;
  readonly tried: readonly TriedRate[];
};

/** Same rate on the way up and down: response p99 may differ by less than this share. */
export const hysteresisMax = 0.25;
/** Below this share of good answers among planned requests a rate is collapse. */
export const collapseShare = 0.95;

export type BlockCapacity = {
  readonly block: number;
  readonly ended: CapacitySearch["ended"];
  /** Highest rate that held as often as it must. */
  readonly lastPassQps: Cell;
  /** Lowest rate above it that did not hold. */
  readonly firstFailQps: Cell;
  /** Lowest rate of the ladder at which the goodput fell below the share of what was offered. */
  readonly collapseQps: Cell;
  /** Largest relative difference of response p99 between up and down, over the ladder's rates. */
  readonly hysteresis: Cell;
  readonly probes: number;
};

export type TreatmentCapacity = {
  readonly label: string;
  readonly topology: string;
  readonly blocks: readonly BlockCapacity[];
  /** Median of the blocks' last passes, with the least and greatest. */
  readonly capacityQps: Cell;
  /** Capacity over that of its baseline in the same block; absent for a baseline. */
  readonly ratio?: RatioEstimate;
  /** 1 - ratio, with its interval: (QPS_base - QPS_zt) / QPS_base. */
  readonly throughputLoss?: Cell;
};

export type Capacities = {
  readonly settings: CapacitySettings;
  readonly treatments: readonly TreatmentCapacity[];
  /** What the driver itself reaches against a null server on the same path. */
  readonly ceilingQps: Cell;
  /** What a reader must know, e.g. a capacity that is the driver's own. */
  readonly warnings: readonly string[];
};

/** A capacity above this share of the driver's ceiling may be the driver's. */
const ceilingShare = 0.5;

/** Puts the searches of a campaign together. */
export function summariseCapacities(
  plan: Plan,
  settings: CapacitySettings,
  searches: readonly JudgedSearch[],
): Capacities {
  const labels = [...new Set(searches.map(({ label }) => label))];
  const all = new Map(labels.map((label) => [label, blocksOf(label, settings, searches)]));
  const ceiling = all.get(ceilingLabel);
  const ceilingQps =
    ceiling === undefined ? none("no search against a null server") : medianOf(ceiling);
  const treatments = plan.treatments
    .filter(({ label }) => all.has(label))
    .map((treatment): TreatmentCapacity => {
      const { label, topology } = treatment;
      const blocks = all.get(label) ?? [];
      const capacityQps = medianOf(blocks);
      const compared = baselineOf(plan, treatment);
      const other = plan.treatments.find((candidate) => candidate.label === compared);
      const baseline = other === undefined ? compared : capacityLabelOf(plan, other);
      if (baseline === label) return { label, topology, blocks, capacityQps };
      const ratio = ratioOf(blocks, all.get(baseline) ?? [], plan.equivalenceMargin);
      const throughputLoss = lossOf(ratio);
      return { label, topology, blocks, capacityQps, ratio, throughputLoss };
    });
  return { settings, treatments, ceilingQps, warnings: warningsOf(treatments, ceilingQps) };
}

function blocksOf(
  label: string,
  settings: CapacitySettings,
  searches: readonly JudgedSearch[],
): BlockCapacity[] {
  return searches
    .filter((search) => search.label === label)
    .sort((a, b) => a.block - b.block)
    .map((search) => describeSearch(settings, search));
}

/** The bracket and the ladder of one search. */
export function describeSearch(
  settings: Pick<CapacitySettings, "confirmations" | "maxQps" | "ladder">,
  search: JudgedSearch,
): BlockCapacity {
  const { block, ended, tried } = search;
  const pass = confirmedRate(settings.confirmations, tried);
  const searched = tried.filter(({ purpose }) => purpose === "search" || purpose === "confirm");
  const above = searched.filter((rate) => !rate.passed && rate.rateQps > (pass ?? 0));
  const failed = above.map(({ rateQps }) => rateQps);
  const noPass = ended === "none holds" ? "no rate holds the objective" : "the search broke off";
  return {
    block,
    ended,
    lastPassQps: pass === undefined ? none(noPass) : value(pass, "per second"),
    firstFailQps:
      failed.length > 0
        ? value(Math.min(...failed), "per second")
        : none(pass === undefined ? noPass : `nothing above ${settings.maxQps}/s was tried`),
    ...describeLadder(settings.ladder !== undefined, tried),
    probes: tried.length,
  };
}

/** The rate that held as often as wanted, the last of them if there were several. */
function confirmedRate(wanted: number, tried: readonly TriedRate[]): number | undefined {
  const held = new Map<number, number>();
  let confirmed: number | undefined;
  for (const { purpose, rateQps, passed } of tried) {
    if (purpose !== "confirm" || !passed) continue;
    const count = (held.get(rateQps) ?? 0) + 1;
    held.set(rateQps, count);
    if (count >= wanted) confirmed = rateQps;
  }
  return confirmed;
}

function describeLadder(
  wasPlanned: boolean,
  tried: readonly TriedRate[],
): Pick<BlockCapacity, "collapseQps" | "hysteresis"> {
  const up = tried.filter(({ purpose }) => purpose === "up");
  if (up.length === 0) {
    const missing = none(wasPlanned ? "no ladder: nothing was confirmed" : "no ladder in the plan");
    return { collapseQps: missing, hysteresis: missing };
  }
  const collapsed = up.filter(({ result }) => (result?.goodShare ?? 0) < collapseShare);
  const down = new Map(
    tried.filter(({ purpose }) => purpose === "down").map((rate) => [rate.rateQps, rate]),
  );
  const differences = up.flatMap(({ rateQps, result }) => {
    const before = result && numberOf(result.responseP99);
    const other = down.get(rateQps)?.result;
    const after = other && numberOf(other.responseP99);
    return before === undefined || after === undefined ? [] : [Math.abs(after / before - 1)];
  });
  return {
    collapseQps:
      collapsed.length > 0
        ? value(Math.min(...collapsed.map(({ rateQps }) => rateQps)), "per second")
        : none(`none up to ${Math.max(...up.map(({ rateQps }) => rateQps))}/s`),
    hysteresis:
      differences.length > 0
        ? value(Math.max(...differences), "share")
        : none("no rate has a p99 both ways"),
  };
}

function medianOf(blocks: readonly BlockCapacity[]): Cell {
  const found = blocks.flatMap(({ lastPassQps }) => numberOf(lastPassQps) ?? []);
  const [first] = blocks;
  if (first === undefined) return none("not searched");
  if (found.length === 0) return first.lastPassQps;
  const interval = { low: Math.min(...found), high: Math.max(...found), kind: "range" } as const;
  // One block has no spread to show.
  return value(median(found), "per second", found.length > 1 ? interval : undefined);
}

/** Only blocks in which both ends were found: a capacity of "at least" has no ratio. */
function ratioOf(
  own: readonly BlockCapacity[],
  baseline: readonly BlockCapacity[],
  margin: number,
): RatioEstimate {
  const isOpen = ({ ended }: BlockCapacity) => ended === "at most";
  if ([...own, ...baseline].some(isOpen)) {
    return { kind: "none", reason: "a capacity lies beyond the highest rate of the plan" };
  }
  const pairs = own.flatMap(({ block, lastPassQps }) => {
    const treatment = numberOf(lastPassQps);
    const other = baseline.find((candidate) => candidate.block === block);
    const base = other && numberOf(other.lastPassQps);
    if (treatment === undefined || base === undefined) return [];
    return [{ block, treatment, baseline: [base, base] as const }];
  });
  return estimateRatio(pairs, margin);
}

function lossOf(ratio: RatioEstimate): Cell {
  if (ratio.kind === "none") return ratio;
  if (ratio.kind === "point") return value(1 - ratio.ratio, "share");
  const interval = { low: 1 - ratio.high, high: 1 - ratio.low, kind: "confidence95" } as const;
  return value(1 - ratio.ratio, "share", interval);
}

function warningsOf(treatments: readonly TreatmentCapacity[], ceilingQps: Cell): string[] {
  const ceiling = numberOf(ceilingQps);
  const limited = treatments.flatMap(({ label, capacityQps }) => {
    const capacity = numberOf(capacityQps);
    if (ceiling === undefined || capacity === undefined) return [];
    if (capacity <= ceilingShare * ceiling) return [];
    const share = Math.round((100 * capacity) / ceiling);
    return [`${label}: its capacity is ${share} % of what the load driver itself reaches`];
  });
  const hysteretic = treatments.flatMap(({ label, blocks }) => {
    const worst = Math.max(...blocks.map(({ hysteresis }) => numberOf(hysteresis) ?? 0));
    if (worst < hysteresisMax) return [];
    return [
      `${label}: the ladder's p99 differs by ${Math.round(100 * worst)} % between up and down`,
    ];
  });
  return [...limited, ...hysteretic];
}
