/** The verb `compare`: two campaigns against each other, or one against published figures. */
import path from "node:path";
import { type CampaignSide, compareCampaigns } from "../analysis/agreement.ts";
import { renderAgreement } from "../analysis/agreement-table.ts";
import { sha256Of, sumsFile } from "../analysis/checksum.ts";
import { type ClaimsComparison, compareClaims } from "../analysis/claims.ts";
import { readClaims } from "../analysis/claims-files.ts";
import { renderClaimsJson, renderClaimsText } from "../analysis/claims-table.ts";
import { openBundle } from "../analysis/bundle.ts";
import { analyse, analyseBundle } from "../analysis/report.ts";
import { settingsOf } from "../analysis/settings.ts";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { type Io, readArguments, type Verb } from "./verb.ts";
import { root } from "./workspace.ts";

const usage = `./ztbench compare A B [--json]
       ./ztbench compare BUNDLE published [--json]

  A, B       bundles; both are verified and computed from their raw files
  published  the figures in claims/

Tells per treatment and metric AGREE, DISAGREE, UNDERPOWERED or NOT COMPARABLE, with every setting
that differs. Exit code 7 if anything is NOT COMPARABLE; the other verdicts are results, and end
with 0.`;

const published = "published";

export const compare: Verb = {
  summary: "tell whether two campaigns agree, or a campaign and published figures",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values, positionals } = readArguments(argv, options, { least: 2, most: 2 }, usage);
    const [a = "", b = ""] = positionals;
    const json = values.json === true;
    if (b === published) return comparePublished(path.resolve(a), json, io);
    return compareTwo(path.resolve(a), path.resolve(b), json, io);
  },
};

async function compareTwo(a: string, b: string, json: boolean, io: Io): Promise<number> {
  if ((await sealOf(a)) === (await sealOf(b))) {
    throw new Failure("comparison", `compare: both are the same campaign, ${a} and ${b}`, {
      hint: "give two campaigns that were measured apart from each other",
    });
  }
  const agreement = compareCampaigns(await sideOf(a), await sideOf(b));
  io.print(json ? JSON.stringify(agreement, null, 2) : renderAgreement(agreement));
  return agreement.conclusion === "NOT COMPARABLE" ? exitCodes.comparison : 0;
}

async function sideOf(bundleDir: string): Promise<CampaignSide> {
  const bundle = await openBundle(bundleDir);
  return { analysis: await analyseBundle(bundle, {}), settings: settingsOf(bundle) };
}

/** Bundles of the same files are one measurement; where there are none, opening it will say so. */
function sealOf(bundleDir: string): Promise<string> {
  return sha256Of(path.join(bundleDir, sumsFile)).catch(() => bundleDir);
}

async function comparePublished(bundleDir: string, json: boolean, io: Io): Promise<number> {
  const documents = await readClaims(path.join(root, "claims"));
  const claims = compareClaims(documents, await analyse(bundleDir));
  io.print(json ? renderClaimsJson(claims).trimEnd() : renderClaimsText(claims).trimEnd());
  return isCompared(claims) ? 0 : exitCodes.comparison;
}

function isCompared({ rows }: ClaimsComparison): boolean {
  return rows.some(({ verdict }) => verdict !== "-" && !verdict.startsWith("not comparable"));
}
