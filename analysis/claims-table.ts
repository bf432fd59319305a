/** The comparison with published figures, as text, Markdown and JSON. */
import type { ClaimRow, ClaimsComparison } from "./claims.ts";
import { Footnotes, formatCell } from "./format.ts";
import { renderTable } from "./markdown.ts";
import type { Table } from "./tabular.ts";
import { renderTables } from "./text.ts";

/** For a terminal, at most 100 columns wide. */
export function renderClaimsText(comparison: ClaimsComparison): string {
  return renderTables([claimsTable(comparison)]);
}

export function renderClaimsMarkdown(comparison: ClaimsComparison): string {
  return renderTable(claimsTable(comparison));
}

/** Everything, in a fixed order. */
export function renderClaimsJson(comparison: ClaimsComparison): string {
  return `${JSON.stringify(comparison, null, 2)}\n`;
}

/** One row a claim and fitting treatment, with reasons and flags below. */
export function claimsTable({ sources, rows, leftOut }: ClaimsComparison): Table {
  const notes = new Footnotes();
  const flags = new Footnotes();
  const left = (title: string) => ({ title, align: "left" as const });
  const right = (title: string) => ({ title, align: "right" as const });
  return {
    title: "Published against measured: service latency with the vegeta CLI, ms",
    columns: [
      left("claim"),
      left("treatment"),
      right("rate/s"),
      left("what"),
      right("published"),
      right("measured"),
      left("verdict"),
    ],
    rows: rows.map((row) => [
      `${row.source} ${row.claim}`,
      row.label ?? row.topology,
      String(row.rateQps),
      row.metric,
      `${row.publishedNs / 1e6}${flagOf(row, flags)}`,
      formatCell(row.measured, notes, true),
      row.verdict,
    ]),
    notes: [
      ...notes.lines(),
      ...flags.lines().map((line) => line.replace(/^\((\d+)\)/, "*$1 in the source itself:")),
      ...differencesOf(rows),
      ...leftOut.map(({ claim, lacks }) => `${claim}: not in the table, the source lacks ${lacks}`),
      "measured: median over valid runs [least–greatest] as the driver reports it, without its lag",
      ...sources.map(({ id, title, date }) => `${id}: ${title}${date ? `, ${date}` : ""}`),
    ],
  };
}

/** `*1*2`, pointing to what contradicts a figure. */
function flagOf({ contradictions }: ClaimRow, flags: Footnotes): string {
  return contradictions
    .map((because) => /\((\d+)\)/.exec(flags.mark(because))?.[1] ?? "")
    .map((number) => ` *${number}`)
    .join("");
}

function differencesOf(rows: readonly ClaimRow[]): string[] {
  const lines = rows.flatMap(({ topology, differences }) =>
    differences.map((difference) => `${topology}: ${difference}`),
  );
  return [...new Set(lines)];
}
