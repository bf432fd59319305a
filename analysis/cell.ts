/**
 * A cell is a number with its unit, or the reason why there is none; nothing else may be printed.
 */

export type Unit =
  "ns" | "us" | "ratio" | "cores" | "bytes" | "count" | "share" | "log" | "per second";

export type Interval = {
  readonly low: number;
  readonly high: number;
  /** `confidence95`: of the mean over blocks; `range`: least and greatest of the runs. */
  readonly kind: "confidence95" | "range";
};

export type ValueCell = {
  readonly kind: "value";
  readonly value: number;
  readonly unit: Unit;
  readonly interval?: Interval;
};

export type ReasonCell = { readonly kind: "none"; readonly reason: string };

export type Cell = ValueCell | ReasonCell;

export const notMeasured: ReasonCell = { kind: "none", reason: "not measured" };

/** A cell with a number; a number that is none would be a bug of the caller. */
export function value(number: number, unit: Unit, interval?: Interval): ValueCell {
  if (!Number.isFinite(number)) throw new RangeError(`cell: must be finite, found ${number}`);
  return { kind: "value", value: number, unit, ...(interval === undefined ? {} : { interval }) };
}

/** A cell that says why there is no number. */
export function none(reason: string): ReasonCell {
  return { kind: "none", reason };
}

/** The number of a cell, undefined if it has none. */
export function numberOf(cell: Cell): number | undefined {
  return cell.kind === "value" ? cell.value : undefined;
}

/** The sum of cells of one unit; the first that has no number says why there is none. */
export function sumOf(cells: readonly Cell[]): Cell {
  let total: ValueCell | undefined;
  for (const cell of cells) {
    if (cell.kind === "none") return cell;
    total = value((total?.value ?? 0) + cell.value, cell.unit);
  }
  return total ?? none("no unit is counted");
}
