/** Capacities as tables for people: what each treatment holds and loses, and every search. */
import type { BlockCapacity, Capacities, TreatmentCapacity } from "./capacity.ts";
import { Footnotes, formatCell, formatNumber } from "./format.ts";
import { left, right, type Table } from "./tabular.ts";

/** What each treatment holds under the objective, one row a treatment. */
export function capacityTable({ settings, treatments, ceilingQps, warnings }: Capacities): Table {
  const notes = new Footnotes();
  const { share, sloMilliseconds, failedShareMax, precision, confirmations } = settings;
  const within = `${Number((100 * (1 - share)).toFixed(3))} % within ${sloMilliseconds} ms`;
  return {
    title: `Capacity: highest rate that holds ${within} (median of blocks [least–greatest])`,
    columns: [
      left("treatment"),
      right("requests/s"),
      right("throughput loss"),
      right("collapse at"),
      right("searches"),
    ],
    rows: [
      ...treatments.map((treatment) => [
        treatment.label,
        formatCell(treatment.capacityQps, notes, true),
        lossOf(treatment, notes),
        formatCell(worst(treatment.blocks), notes, false),
        `${confirmed(treatment.blocks)}/${treatment.blocks.length}`,
      ]),
      ["null server", formatCell(ceilingQps, notes, true), "", "", ""],
    ],
    notes: [
      ...notes.lines(),
      `objective: ${within}, counted from when requests were due, held ${confirmations} times; ` +
        `failed and unsent ones are late, and at most ${formatNumber(failedShareMax, "share")}`,
      `a search ends when its bracket is ${formatNumber(precision, "share")} wide; ` +
        "throughput loss: paired by block, (baseline - treatment) / baseline",
      "null server: what the load driver itself reaches on the same path",
      ...warnings.map((warning) => `warning: ${warning}`),
    ],
  };
}

/** Every search with its bracket. */
export function searchesTable({ treatments }: Capacities): Table {
  const notes = new Footnotes();
  return {
    title: "Every capacity search: last rate that held, first above it that did not",
    columns: [
      left("treatment"),
      right("block"),
      right("last pass"),
      right("first fail"),
      right("collapse at"),
      right("up/down p99"),
      right("probes"),
      left("ended"),
    ],
    rows: treatments.flatMap(({ label, blocks }) =>
      blocks.map((block) => [
        label,
        String(block.block),
        formatCell(block.lastPassQps, notes, false),
        formatCell(block.firstFailQps, notes, false),
        formatCell(block.collapseQps, notes, false),
        formatCell(block.hysteresis, notes, false),
        String(block.probes),
        block.ended,
      ]),
    ),
    notes: [
      ...notes.lines(),
      "collapse: less than 95 % of what was offered was answered well; " +
        "up/down: largest difference of p99 between the way up and the way down the ladder",
    ],
  };
}

function lossOf({ throughputLoss, ratio }: TreatmentCapacity, notes: Footnotes): string {
  if (throughputLoss === undefined) return "";
  const text = formatCell(throughputLoss, notes, true);
  return ratio?.kind === "point" ? `${text} (one block)` : text;
}

/** The lowest rate at which any block collapsed; else why none did. */
function worst(blocks: readonly BlockCapacity[]): BlockCapacity["collapseQps"] {
  const cells = blocks.map(({ collapseQps }) => collapseQps);
  const known = cells.flatMap((cell) => (cell.kind === "value" ? [cell] : []));
  const [first = cells[0]] = known.toSorted((a, b) => a.value - b.value);
  return first ?? { kind: "none", reason: "not searched" };
}

function confirmed(blocks: readonly BlockCapacity[]): number {
  return blocks.filter(({ lastPassQps }) => lastPassQps.kind === "value").length;
}
