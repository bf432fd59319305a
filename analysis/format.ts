/** Numbers as people read them; every renderer for people uses these. */
import type { Cell, Interval, Unit, ValueCell } from "./cell.ts";
import type { DifferenceEstimate, RatioEstimate } from "./loss.ts";

/** Collects reasons, so that a narrow cell can point to a line below the table. */
export class Footnotes {
  readonly #reasons: string[] = [];

  /** The mark of a reason where a number is missing; equal reasons share one. */
  mark(reason: string): string {
    return `- ${this.reference(reason)}`;
  }

  /** The same beside what is there. */
  reference(reason: string): string {
    if (!this.#reasons.includes(reason)) this.#reasons.push(reason);
    return `(${this.#reasons.indexOf(reason) + 1})`;
  }

  lines(): readonly string[] {
    return this.#reasons.map((reason, index) => `(${index + 1}) ${reason}`);
  }
}

/** A cell in the unit of its column, without the unit's name. */
export function formatCell(cell: Cell, notes: Footnotes, showRange: boolean): string {
  if (cell.kind === "none") return notes.mark(cell.reason);
  const number = formatNumber(cell.value, cell.unit);
  const { interval } = cell;
  return showRange && interval !== undefined
    ? `${number} [${formatRange(interval, cell)}]`
    : number;
}

function formatRange({ low, high }: Interval, { unit }: ValueCell): string {
  return `${formatNumber(low, unit)}–${formatNumber(high, unit)}`;
}

/** Nanoseconds are shown in milliseconds, bytes in MiB, shares in percent. */
export function formatNumber(number: number, unit: Unit): string {
  switch (unit) {
    case "ns":
      return digits(number / 1e6);
    case "bytes":
      return (number / 2 ** 20).toFixed(1);
    case "share":
      return formatShare(number);
    case "cores":
      return number.toFixed(3);
    case "us":
      return number.toFixed(number < 100 ? 1 : 0);
    case "ratio":
    case "log":
      return number.toFixed(3);
    case "count":
    case "per second":
      return String(number);
  }
}

/** Three digits that matter, none that do not. */
function digits(number: number): string {
  const size = Math.abs(number);
  if (size >= 100) return number.toFixed(0);
  if (size >= 10) return number.toFixed(1);
  return number.toFixed(size >= 1 ? 2 : 3);
}

/** Never rounds up to 100 %, nor down to 0 %. */
function formatShare(share: number): string {
  if (share === 0 || share === 1) return `${share * 100} %`;
  if (share > 0.9995) return "99.9+ %";
  if (share < 0.0005) return "<0.05 %";
  return `${(share * 100).toFixed(1)} %`;
}

/** A ratio as the change it means: 1.25 is +25 %. */
export function formatChange(ratio: number): string {
  const percent = (ratio - 1) * 100;
  return signed(percent, Math.abs(percent) < 10 ? 1 : 0);
}

/** A signed number; what rounds to zero has no sign. */
export function signed(number: number, places: number): string {
  const text = number.toFixed(places);
  if (Number(text) === 0) return text.replace("-", "");
  return number > 0 ? `+${text}` : text;
}

/** Loss with its interval, `+25 % [+20, +30]`. */
export function formatRatio(estimate: RatioEstimate, notes: Footnotes): string {
  switch (estimate.kind) {
    case "none":
      return notes.mark(estimate.reason);
    case "point":
      return `${formatChange(estimate.ratio)} %`;
    case "estimate": {
      const { ratio, low, high } = estimate;
      return `${formatChange(ratio)} % [${formatChange(low)}, ${formatChange(high)}]`;
    }
  }
}

/** What a ratio of capacities loses, 1 - ratio: 0.4 is `+60 % [+55, +65]`. */
export function formatThroughputLoss(ratio: RatioEstimate, notes: Footnotes): string {
  if (ratio.kind === "none") return notes.mark(ratio.reason);
  const lost = (of: number): string => formatChange(2 - of);
  return ratio.kind === "point"
    ? `${lost(ratio.ratio)} %`
    : `${lost(ratio.ratio)} % [${lost(ratio.high)}, ${lost(ratio.low)}]`;
}

/** Verdict, with its reason if it is not from an interval. */
export function formatVerdict(estimate: RatioEstimate): string {
  if (estimate.kind === "none") return "-";
  if (estimate.kind === "point") return `inconclusive (${estimate.reason})`;
  return estimate.heldBack === undefined ? estimate.verdict : `${estimate.verdict} (Holm)`;
}

/** Difference with its interval, divided by `scale`, `+68 [+60, +77]`. */
export function formatDifference(
  estimate: DifferenceEstimate,
  scale: number,
  places: number,
  notes: Footnotes,
): string {
  if (estimate.kind === "none") return notes.mark(estimate.reason);
  const shown = (number: number): string => signed(number / scale, places);
  return estimate.kind === "point"
    ? shown(estimate.mean)
    : `${shown(estimate.mean)} [${shown(estimate.low)}, ${shown(estimate.high)}]`;
}
