/** Everything that is derived from a bundle: tables, exports, and published figures beside ours. */
import { createHash } from "node:crypto";
import path from "node:path";
import type { Analysis } from "../analysis/analysis.ts";
import type { Bundle } from "../analysis/bundle.ts";
import { sha256Of, sumsFile } from "../analysis/checksum.ts";
import { type ClaimsComparison, compareClaims } from "../analysis/claims.ts";
import { readClaims } from "../analysis/claims-files.ts";
import {
  renderClaimsJson,
  renderClaimsMarkdown,
  renderClaimsText,
} from "../analysis/claims-table.ts";
import { type TakeFile, writerInto } from "../analysis/derived.ts";
import { attestationFile, renderAttestation } from "../analysis/exports/attestation.ts";
import { crateFile, renderCrate } from "../analysis/exports/crate.ts";
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
  const digests = new Map<string, string>();
  const note: TakeFile = async (file, text) => {
    digests.set(file, createHash("sha256").update(text).digest("hex"));
    await take(file, text);
  };
  const { bundle, analysis } = await derive(bundleDir, note);
  await takeExports(analysis, note);
  const claims = compareClaims(await readClaims(path.join(root, "claims")), analysis);
  await note("tables/claims.txt", renderClaimsText(claims));
  await note("tables/claims.md", renderClaimsMarkdown(claims));
  await note("tables/claims.json", renderClaimsJson(claims));
  const sums = await sha256Of(path.join(bundleDir, sumsFile));
  await note(attestationFile, renderAttestation(bundle, analysis, sums, digests));
  // Last, since it names all others.
  await take(crateFile, renderCrate(bundle, analysis, digests));
  return { bundle, analysis, claims };
}
