/** The door of analysis: a bundle goes in, judged runs, comparison and tables come out. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Bundle, type BundleRun, cellKey, openBundle } from "./bundle.ts";
import type { Analysis } from "./analysis.ts";
import { attribute } from "./attribution.ts";
import { summariseCapacities } from "./capacity.ts";
import { summariseStarts } from "./cold-start.ts";
import { compare } from "./comparison.ts";
import { none } from "./cell.ts";
import { CurveCollector } from "./curve.ts";
import { takeTables, type TakeFile, writerInto } from "./derived.ts";
import { judgeCampaign } from "./gates/campaign-gates.ts";
import type { JudgedRun } from "./judged-run.ts";
import { RunJudge } from "./judging.ts";
import { describeSoftirq } from "./resources.ts";
import { summariseRotations } from "./rotation-arms.ts";
import { judgeSearches } from "./searches.ts";
import { stampOf } from "./stamp.ts";

export type AnalyseOptions = {
  /** Receives the interval log of each run; without it none is made, which is faster. */
  readonly writeIntervalLog?: (runName: string, log: string) => Promise<void>;
};

/**
 * Verifies a bundle and computes everything that its tables show.
 *
 * @throws Failure `document` if the bundle was changed or a file of it is bad
 */
export async function analyse(bundleDir: string, options: AnalyseOptions = {}): Promise<Analysis> {
  return analyseBundle(await openBundle(bundleDir), options);
}

/** The same of a bundle that is open already. */
export async function analyseBundle(bundle: Bundle, options: AnalyseOptions): Promise<Analysis> {
  const runs: JudgedRun[] = [];
  const collector = new CurveCollector();
  const judge = new RunJudge({ ...options, collector });
  try {
    for (const run of bundle.runs) {
      runs.push(await judge.judge(bundle, run));
    }
    const { manifest } = bundle;
    const last = manifest.stopped?.afterBlock ?? bundle.plan.blocks;
    const plan = { ...bundle.plan, blocks: last };
    const coldStarts = summariseStarts(plan, runs);
    const capacities =
      plan.capacity === undefined
        ? undefined
        : summariseCapacities(plan, plan.capacity, await judgeSearches(bundle, plan.capacity));
    const comparison = compare(plan, runs, capacities);
    const attribution = attribute(plan, runs);
    const rotations = summariseRotations(plan, runs);
    const done = new Set(bundle.runs.map(({ record }) => cellKey(record)));
    return {
      schema: "ztbench/analysis/1",
      stamp: stampOf(plan, manifest, schedulingOf(bundle.runs)),
      softirq: describeSoftirq(manifest.facts),
      runs,
      notRun: manifest.order
        .filter(({ block }) => block <= last)
        .map(cellKey)
        .filter((key) => !done.has(key)),
      comparison,
      campaignGates: judgeCampaign({
        plan,
        manifest,
        records: bundle.runs.map(({ record }) => record),
        runs,
        noise: comparison.noise,
        ceilingQps: capacities?.ceilingQps ?? none("the driver's own ceiling was not searched"),
      }),
      ...(capacities !== undefined && { capacities }),
      ...(attribution !== undefined && { attribution }),
      ...(coldStarts !== undefined && { coldStarts }),
      ...(rotations !== undefined && { rotations }),
      curves: collector.curves(plan.treatments.map(({ label }) => label)),
    };
  } finally {
    collector.destroy();
  }
}

/** Name of the page that `report` writes into a bundle. */
export const htmlFile = "report.html";

/**
 * Analyses a bundle and writes all that can be derived from it alone: tables, interval logs and the
 * page for people.
 *
 * @throws Failure `document` if the bundle was changed or a file of it is bad
 */
export async function report(bundleDir: string): Promise<Analysis> {
  return (await derive(bundleDir, writerInto(bundleDir))).analysis;
}

/** The same, whoever takes the files: the interval log of each run as soon as it is read. */
export async function derive(
  bundleDir: string,
  take: TakeFile,
): Promise<{ readonly bundle: Bundle; readonly analysis: Analysis }> {
  const bundle = await openBundle(bundleDir);
  const analysis = await analyseBundle(bundle, {
    writeIntervalLog: (runName, log) => take(`tables/hlog/${runName}.hlog`, log),
  });
  await takeTables(analysis, take);
  const planText = await readFile(join(bundleDir, "plan.yaml"), "utf8");
  // Loaded when needed: the plot library takes longer to start than most verbs to run.
  const { renderHtml } = await import("./html/page.ts");
  const { manifest, runs } = bundle;
  await take(htmlFile, renderHtml(analysis, { planText, manifest, runs }));
  return { bundle, analysis };
}

/** What hosts granted, run by run; a run that broke off early has nothing to say. */
function schedulingOf(runs: readonly BundleRun[]): ReadonlySet<"rr" | "other"> {
  return new Set(
    runs.flatMap(({ record }) =>
      record.schema === "ztbench/record/1" ? [record.deployment.scheduling] : [],
    ),
  );
}
