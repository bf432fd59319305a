/** The comparison as Markdown, for READMEs and reports. */
import type { Analysis } from "./analysis.ts";
import { judgementsOf, stampLines, tablesOf } from "./table.ts";
import type { Table } from "./tabular.ts";
import { wireLines } from "./wire.ts";

/** Renders the tables as Markdown. */
export function renderMarkdown(analysis: Analysis): string {
  const { stamp } = analysis;
  const judgements = judgementsOf(analysis);
  const wire = wireLines(analysis.runs);
  return [
    `## ${escape(stamp.plan)}\n`,
    `${escape(stamp.purpose)}\n`,
    ...(stamp.banner === undefined ? [] : [`**${escape(stamp.banner)}**\n`]),
    ...tablesOf(analysis, "wide").map(renderTable),
    ...(judgements.length === 0
      ? []
      : ["### Runs left out or warned about\n", renderList(judgements)]),
    ...(wire.length === 0 ? [] : ["### Seen on the wire\n", renderList(wire)]),
    "### Measured on\n",
    renderList(stampLines(stamp)),
  ].join("\n");
}

export function renderTable({ title, columns, rows, notes }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escape).join(" | ")} |`;
  const rule = columns.map(({ align }) => (align === "right" ? "---:" : "---"));
  return [
    `### ${escape(title)}\n`,
    line(columns.map((column) => column.title)),
    `| ${rule.join(" | ")} |`,
    ...rows.map(line),
    "",
    renderList(notes),
  ].join("\n");
}

function renderList(lines: readonly string[]): string {
  return lines.map((line) => `- ${escape(line)}\n`).join("");
}

/** Text of records must not become markup or end a cell. */
export function escape(text: string): string {
  return text.replace(/[\\`*_[\]<>|]/g, "\\$&").replaceAll("\n", " ");
}
