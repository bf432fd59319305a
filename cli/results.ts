/** Everything that is derived from a bundle: tables, exports, and published figures beside ours. */
import path from "node:path";
import type { Analysis } from "../analysis/analysis.ts";
import type { Bundle } from "../analysis/bundle.ts";
import { type ClaimsComparison, compareClaims } from "../analysis/claims.ts";
import { readClaims } from "../analysis/claims-files.ts";
import {
  renderClaimsJson,
  renderClaimsMarkdown,
  renderClaimsText,
} from "../analysis/claims-table.ts";
import { type TakeFile, writerInto } from "../analysis/derived.ts";
import { takeExports } from "../analysis/exports/exports.ts";
import { renderJson } from "../analysis/json.ts";
import { derive } from "../analysis/report.ts";
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
  const { analysis, claims } = await deriveAll(bundleDir, writerInto(bundleDir));
  if (json) return { analysis, shown: renderJson(analysis) };
  // Published figures are the CLI's service latencies: without such a run there is nothing beside.
  const usesCli = analysis.comparison.treatments.some(({ driver }) => driver === "vegeta");
  const shown = renderText(analysis);
  return { analysis, shown: usesCli ? `${shown}\n${renderClaimsText(claims)}` : shown };
}

export type Derived = {
  readonly bundle: Bundle;
  readonly analysis: Analysis;
  readonly claims: ClaimsComparison;
};

/** Every file that a report consists of goes through `take`, so that `verify` sees each of them. */
export async function deriveAll(bundleDir: string, take: TakeFile): Promise<Derived> {
  const { bundle, analysis } = await derive(bundleDir, take);
  await takeExports(analysis, take);
  const claims = compareClaims(await readClaims(path.join(root, "claims")), analysis);
  await take("tables/claims.txt", renderClaimsText(claims));
  await take("tables/claims.md", renderClaimsMarkdown(claims));
  await take("tables/claims.json", renderClaimsJson(claims));
  return { bundle, analysis, claims };
}
