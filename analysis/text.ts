/** The comparison as terminal text, at most 100 columns wide. */
import type { Analysis } from "./analysis.ts";
import { judgementsOf, stampLines, tablesOf } from "./table.ts";
import type { Table } from "./tabular.ts";
import { wireLines } from "./wire.ts";

const columnsMax = 100;
const labelMax = 20;

/** Renders the tables for a terminal; plain text without control characters. */
export function renderText(analysis: Analysis): string {
  const { stamp } = analysis;
  const head = [
    `${stamp.plan}: ${stamp.purpose}`,
    ...(stamp.banner ? [`** ${stamp.banner} **`] : []),
  ];
  const judgements = judgementsOf(analysis);
  const wire = wireLines(analysis.runs);
  const blocks = [
    head,
    ...tablesOf(analysis, "narrow").map(layOut),
    ...(judgements.length === 0 ? [] : [["Runs left out or warned about", ...judgements]]),
    ...(wire.length === 0 ? [] : [["Seen on the wire", ...wire]]),
    stampLines(stamp),
  ];
  return `${joinBlocks(blocks)}\n`;
}

/** Tables one below the other, as the comparison's stand. */
export function renderTables(tables: readonly Table[]): string {
  return `${joinBlocks(tables.map(layOut))}\n`;
}

/** Blocks of lines, wrapped, with an empty line between two. */
export function joinBlocks(blocks: readonly (readonly string[])[]): string {
  return blocks.map((lines) => lines.flatMap(wrap).join("\n")).join("\n\n");
}

export function layOut({ title, columns, rows, notes }: Table): string[] {
  const cells = [columns.map((column) => column.title), ...rows].map(([label = "", ...rest]) => [
    label.length > labelMax ? `${label.slice(0, labelMax - 1)}…` : label,
    ...rest,
  ]);
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((text, i) => {
        const width = widths[i] ?? 0;
        return columns[i]?.align === "right" ? text.padStart(width) : text.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
  return [title, ...lines, ...notes];
}

/** Breaks a line that is too long at spaces; what follows is indented. */
function wrap(line: string): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > columnsMax) {
    const space = rest.lastIndexOf(" ", columnsMax);
    const end = space > 4 ? space : columnsMax;
    lines.push(rest.slice(0, end).trimEnd());
    rest = `    ${rest.slice(end).trimStart()}`;
  }
  return [...lines, rest];
}
