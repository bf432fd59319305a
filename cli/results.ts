/** Everything that is derived from a bundle: tables, exports, and published figures beside ours. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Analysis } from "../analysis/analysis.ts";
import { compareClaims } from "../analysis/claims.ts";
import { readClaims } from "../analysis/claims-files.ts";
import {
  renderClaimsJson,
  renderClaimsMarkdown,
  renderClaimsText,
} from "../analysis/claims-table.ts";
import { writeExports } from "../analysis/exports/exports.ts";
import { renderJson } from "../analysis/json.ts";
import { report } from "../analysis/report.ts";
import { renderText } from "../analysis/text.ts";
import { root } from "./workspace.ts";

/**
 * Verifies a bundle, writes everything into its `tables/` and renders what a user wants to see.
 *
 * @throws Failure `document` if the bundle was changed or a file of it is bad
 */
export async function deriveResults(
  bundleDir: string,
  json: boolean,
): Promise<{ readonly analysis: Analysis; readonly shown: string }> {
  const analysis = await report(bundleDir);
  await writeExports(analysis, bundleDir);
  const claims = compareClaims(await readClaims(path.join(root, "claims")), analysis);
  const write = (name: string, text: string) => {
    writeFileSync(path.join(bundleDir, "tables", name), text);
  };
  write("claims.txt", renderClaimsText(claims));
  write("claims.md", renderClaimsMarkdown(claims));
  write("claims.json", renderClaimsJson(claims));
  if (json) return { analysis, shown: renderJson(analysis) };
  // Published figures are the CLI's service latencies: without such a run there is nothing beside.
  const usesCli = analysis.comparison.treatments.some(({ driver }) => driver === "vegeta");
  const shown = renderText(analysis);
  return { analysis, shown: usesCli ? `${shown}\n${renderClaimsText(claims)}` : shown };
}
