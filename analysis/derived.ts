/**
 * Everything that is derived from an analysis, as texts by file: whoever takes them writes them
 * into the bundle or compares them with what lies there, so that nothing is written unverified.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Analysis } from "./analysis.ts";
import { layerTables } from "./attribution-table.ts";
import { capacityTable, searchesTable } from "./capacity-table.ts";
import { coldStartTables } from "./cold-start-table.ts";
import { renderCsv } from "./csv.ts";
import { renderJson } from "./json.ts";
import { renderMarkdown, renderTable } from "./markdown.ts";
import type { Table } from "./tabular.ts";
import { renderTables, renderText } from "./text.ts";

/** Takes one derived file; its path is relative to the bundle, with `/`. */
export type TakeFile = (file: string, text: string) => Promise<void>;

/** Writes each file into a bundle, over what lies there. */
export function writerInto(bundleDir: string): TakeFile {
  return async (file, text) => {
    const path = join(bundleDir, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  };
}

/** Gives loss.*, and capacity.*, layers.* and cold-start.* where there are any. */
export async function takeTables(analysis: Analysis, take: TakeFile): Promise<void> {
  await take("tables/loss.txt", renderText(analysis));
  await take("tables/loss.md", renderMarkdown(analysis));
  await take("tables/loss.csv", renderCsv(analysis));
  await take("tables/loss.json", renderJson(analysis));
  const { attribution, capacities, coldStarts } = analysis;
  if (capacities !== undefined) {
    const tables = [capacityTable(capacities), searchesTable(capacities)];
    await takeAs("capacity", tables, capacities, take);
  }
  if (attribution !== undefined) {
    await takeAs("layers", layerTables(attribution), attribution, take);
  }
  if (coldStarts !== undefined) {
    await takeAs("cold-start", coldStartTables(coldStarts), coldStarts, take);
  }
}

/** Tables of one subject for terminals and for Markdown, and what they are made of. */
async function takeAs(
  name: string,
  tables: readonly Table[],
  data: object,
  take: TakeFile,
): Promise<void> {
  await take(`tables/${name}.txt`, renderTables(tables));
  await take(`tables/${name}.md`, tables.map(renderTable).join("\n"));
  await take(`tables/${name}.json`, `${JSON.stringify(data, null, 2)}\n`);
}
