/**
 * Looks at a campaign while it lasts: whether a run is of use, and whether enough blocks are there.
 * Trusts the files, which were just written; a finished bundle is verified by `openBundle`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseDocument } from "../contracts/document.ts";
import { manifestSchema } from "../contracts/manifest.ts";
import { type Plan, planSchema, type Stopping } from "../contracts/plan.ts";
import { type RunDocument, runDocumentSchema } from "../contracts/record.ts";
import { compare } from "./comparison.ts";
import { describeGate } from "./gates/gate.ts";
import { differences } from "./gates/run-facts.ts";
import type { JudgedRun } from "./judged-run.ts";
import { type JudgedBundle, RunJudge } from "./judging.ts";
import type { RatioEstimate } from "./loss.ts";

type Seen = { readonly judged: JudgedRun; readonly record: RunDocument };

export class CampaignWatch {
  readonly #judge = new RunJudge();
  readonly #seen: Seen[] = [];

  /**
   * Judges a run of a bundle; all runs must come, in the order of execution.
   *
   * @returns why it is invalid, undefined if it is not
   * @throws Failure `document` for a bad file of the run
   */
  async judge(bundleDir: string, name: string): Promise<string | undefined> {
    const bundle = await readBundle(bundleDir);
    const file = join("runs", name, "record.json");
    const record = parseDocument(runDocumentSchema, await read(bundleDir, file), file);
    const run = { name, record, files: Object.keys(record.files) };
    const judged = await this.#judge.judge(bundle, run);
    this.#seen.push({ judged, record });
    if (judged.verdict !== "INVALID") return undefined;
    const failed = judged.gates.filter(({ outcome }) => outcome === "invalid");
    return failed.map(describeGate).join("; ");
  }

  /**
   * Whether the plan's stopping rule is met by the blocks up to this one. It looks at the width of
   * intervals alone, never at what they say.
   *
   * @returns why no further block is needed, undefined if one is
   */
  async enough(bundleDir: string, block: number): Promise<string | undefined> {
    const bundle = await readBundle(bundleDir);
    const { stopping } = bundle.plan;
    if (stopping === undefined) return undefined;
    const runs = this.#seen.filter((seen) => !tuningMoved(bundle, seen)).map((s) => s.judged);
    return stopReason({ ...bundle.plan, blocks: block }, stopping, runs);
  }
}

/** Pure: half of the width of the interval of every treatment, on logarithms, against the rule. */
export function stopReason(
  plan: Plan,
  stopping: Stopping,
  runs: readonly JudgedRun[],
): string | undefined {
  const { minBlocks, halfWidth, metric } = stopping;
  const { losses } = compare(plan, runs);
  const widths = losses.map(({ ratios }) => halfWidthOf(ratios[metric]));
  const most = Math.max(...widths);
  const complete = Math.min(...losses.map(({ blocks }) => blocks.complete));
  if (losses.length === 0 || complete < minBlocks || most > halfWidth) return undefined;
  return (
    `every interval of ${metric} is at most ±${(100 * most).toFixed(1)} % wide ` +
    `after block ${plan.blocks}, wanted ±${(100 * halfWidth).toFixed(1)} %`
  );
}

function halfWidthOf(estimate: RatioEstimate): number {
  return estimate.kind === "estimate"
    ? (Math.log(estimate.high) - Math.log(estimate.low)) / 2
    : Number.POSITIVE_INFINITY;
}

/** A run is judged before its block is read back; what moved then makes it invalid later. */
function tuningMoved({ manifest }: JudgedBundle, { record }: Seen): boolean {
  if (record.schema !== "ztbench/record/1") return false;
  const later = manifest.readbacks?.find(({ block }) => block === record.block);
  return later !== undefined && differences(record.tuning, later.tuning, "").length > 0;
}

async function readBundle(directory: string): Promise<JudgedBundle> {
  return {
    directory,
    plan: parseDocument(planSchema, await read(directory, "plan.yaml"), "plan.yaml"),
    manifest: parseDocument(
      manifestSchema,
      await read(directory, "manifest.json"),
      "manifest.json",
    ),
  };
}

function read(directory: string, file: string): Promise<string> {
  return readFile(join(directory, file), "utf8");
}
