/** What each treatment costs in each block: the figures that layers are differences of. Pure. */
import { isMeasured, type MeasuredRun } from "./blocks.ts";
import { type Cell, none, numberOf, sumOf, value } from "./cell.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { DifferenceEstimate } from "./loss.ts";
import { mean, meanInterval } from "./statistics.ts";

/** What is attributed; the additive ones add up over rungs. */
export const quantities = ["meanNs", "cpuUs", "cores", "controlCores", "p50Ns", "p99Ns"] as const;
export type Quantity = (typeof quantities)[number];
export const additive: readonly Quantity[] = ["meanNs", "cpuUs", "cores", "controlCores"];

/** One number for each quantity, or why there is none. */
export type Costs = Readonly<Record<Quantity, DifferenceEstimate>>;

/** The treatments of one block: each quantity, or why it is not there. */
export type BlockCosts = ReadonlyMap<string, Readonly<Record<Quantity, Cell>>>;

/** Blocks in which each of some treatments has a valid run. */
export function completeBlocks(
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
  return {
    // A failed request has no time: a mean of the others would be too good.
    meanNs: failed > 0 ? none(`${failed} requests failed`) : response.meanNs,
    cpuUs: resources.cpuPerRequest,
    cores: resources.cores,
    controlCores:
      control.length === 0 ? value(0, "cores") : sumOf(control.map(({ cores }) => cores)),
    p50Ns: response.quantiles.p50,
    p99Ns: response.quantiles.p99,
  };
}

/** The mean of differences by block, with its interval. */
export function estimate(differences: readonly number[]): DifferenceEstimate {
  const [first] = differences;
  if (first === undefined) return none("no block in which every rung is valid");
  if (differences.length === 1) return { kind: "point", mean: first, pairs: 1 };
  const { n, ...interval } = meanInterval(differences);
  return { kind: "estimate", ...interval, pairs: n };
}

export function forEach<T>(compute: (id: Quantity) => T): Record<Quantity, T> {
  return Object.fromEntries(quantities.map((id) => [id, compute(id)])) as Record<Quantity, T>;
}
