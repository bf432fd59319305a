/** Cold starts as text and Markdown: all tables, for files beside the comparison. */
import type { ColdStarts } from "./cold-start.ts";
import { startsTable, stormTable, timelineTables } from "./cold-start-table.ts";
import { renderTable } from "./markdown.ts";
import type { Table } from "./tabular.ts";
import { layOut, wrap } from "./text.ts";

function tablesOf(starts: ColdStarts): readonly Table[] {
  return [stormTable(starts), startsTable(starts), ...timelineTables(starts)];
}

/** For a terminal, like the comparison's. */
export function renderColdText(starts: ColdStarts): string {
  const tables = tablesOf(starts).map((table) => layOut(table).flatMap(wrap).join("\n"));
  return `${tables.join("\n\n")}\n`;
}

/** As Markdown. */
export function renderColdMarkdown(starts: ColdStarts): string {
  return tablesOf(starts).map(renderTable).join("\n");
}
