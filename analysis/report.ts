/** The door of analysis: a bundle goes in, judged runs, comparison and tables come out. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { coldStartOf } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import {
  type Bundle,
  type BundleRun,
  cellKey,
  openBundle,
  readRunText,
  runFileName,
  runPath,
} from "./bundle.ts";
import type { Analysis } from "./analysis.ts";
import { describeStart, summariseStarts } from "./cold-start.ts";
import { compare } from "./comparison.ts";
import { type JudgedRun } from "./judged-run.ts";
import { connectionsFile, type LoadConnections, readConnections } from "./connections.ts";
import { CurveCollector } from "./curve.ts";
import { takeTables, type TakeFile, writerInto } from "./derived.ts";
import { judgeBrokenRun, judgeRun, type Reference, verdictOf } from "./gates.ts";
import { measureLatency } from "./latency.ts";
import { readOffsets } from "./offsets.ts";
import { describeSoftirq, type HostSamples, measureResources } from "./resources.ts";
import { parseSamples, type Sample } from "./samples.ts";
import { SecondLatency } from "./second-latency.ts";
import { stampOf } from "./stamp.ts";
import { wireFactsOf, type WireTexts } from "./wire.ts";

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
  const references = new Map<string, Reference>();
  const collector = new CurveCollector();
  try {
    for (const run of bundle.runs) {
      runs.push(await judge(bundle, run, references, collector, options));
    }
    const coldStarts = summariseStarts(bundle.plan, runs);
    const done = new Set(bundle.runs.map(({ record }) => cellKey(record)));
    return {
      schema: "ztbench/analysis/1",
      stamp: stampOf(bundle.plan, bundle.manifest, schedulingOf(bundle.runs)),
      softirq: describeSoftirq(bundle.manifest.facts),
      runs,
      notRun: bundle.manifest.order.map(cellKey).filter((key) => !done.has(key)),
      comparison: compare(bundle.plan, runs),
      ...(coldStarts !== undefined && { coldStarts }),
      curves: collector.curves(bundle.plan.treatments.map(({ label }) => label)),
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

async function judge(
  bundle: Bundle,
  run: BundleRun,
  references: Map<string, Reference>,
  collector: CurveCollector,
  options: AnalyseOptions,
): Promise<JudgedRun> {
  const { record } = run;
  const { block, position, label, arm } = record;
  const { condition } = record.treatment;
  const identity = { name: run.name, run: record.run, block, position, label, arm, condition };
  const broken = record.schema === "ztbench/failed-run/1" || !run.files.includes(requestsFile);
  if (broken) return { ...identity, verdict: "INVALID", gates: judgeBrokenRun(record) };
  const bySecond = condition === "cold-start" ? new SecondLatency() : undefined;
  const latency = await latencyOf(bundle, run, record, { ...options, collector, bySecond });
  const samples = await samplesOf(bundle, run, latency.startNs);
  const resources = measureResources(record, latency, samples);
  const connections = await connectionsOf(bundle, run, record, samples);
  const reference = referenceOf(record, references);
  const wire = wireFactsOf(record, await wireTextsOf(bundle, run, record));
  const gates = judgeRun({
    record,
    plan: bundle.plan,
    latency,
    resources,
    connections,
    reference,
    wire,
  });
  const verdict = verdictOf(gates);
  collector.settle(label, verdict, latency);
  const seconds = bySecond?.finish();
  return {
    ...identity,
    verdict,
    gates,
    latency,
    resources,
    wire,
    connections,
    ...(seconds !== undefined && {
      coldStart: describeStart({
        record,
        latency,
        samples,
        seconds,
        settings: coldStartOf(bundle.plan),
      }),
    }),
  };
}

/** What the kernel of the load host said of its connections, if it was asked. */
async function connectionsOf(
  bundle: Bundle,
  run: BundleRun,
  record: RunRecord,
  samples: HostSamples,
): Promise<LoadConnections> {
  const file = connectionsFile(record);
  const text = run.files.includes(file) ? await readRunText(bundle, run, file) : undefined;
  const { intervalNs, planned } = record.loadPlan;
  return readConnections(
    text,
    samples.get(record.deployment.entry.host) ?? [],
    intervalNs * planned,
  );
}

/** What proxies and services printed of themselves, as far as it was asked for. */
async function wireTextsOf(bundle: Bundle, run: BundleRun, record: RunRecord): Promise<WireTexts> {
  const { admin, statistics = [] } = record.deployment;
  const texts = new Map<string, { before: string; after: string }>();
  for (const { unit } of [...admin, ...statistics]) {
    const read = (when: string) => {
      const file = `proxies/${unit}-${when}.txt`;
      return run.files.includes(file) ? readRunText(bundle, run, file) : "";
    };
    texts.set(unit, { before: await read("before"), after: await read("after") });
  }
  return texts;
}

const requestsFile = "requests.csv.gz";

type LatencyReaders = AnalyseOptions & {
  readonly collector: CurveCollector;
  /** Of a cold start only: seconds of a steady run are in its interval log. */
  readonly bySecond: SecondLatency | undefined;
};

async function latencyOf(
  bundle: Bundle,
  run: BundleRun,
  record: RunRecord,
  { writeIntervalLog, collector, bySecond }: LatencyReaders,
) {
  const { loadPlan, measuredFromNs } = record;
  const { offsetsFile } = loadPlan;
  const lines: string[] = [];
  const latency = await measureLatency({
    path: runPath(bundle, run, requestsFile),
    name: runFileName(run, requestsFile),
    loadPlan,
    measuredFromNs,
    takeTotals: (totals) => {
      collector.hold(totals);
    },
    ...(bySecond !== undefined && {
      takeRequest: (dueNs: number, responseNs: number | undefined) => {
        bySecond.record(dueNs, responseNs);
      },
    }),
    ...(offsetsFile !== undefined && {
      offsetsNs: await readOffsets(
        runPath(bundle, run, offsetsFile),
        runFileName(run, offsetsFile),
        loadPlan.planned,
      ),
    }),
    ...(writeIntervalLog !== undefined && { writeInterval: (line: string) => lines.push(line) }),
  });
  await writeIntervalLog?.(run.name, lines.join(""));
  return latency;
}

async function samplesOf(bundle: Bundle, run: BundleRun, originNs: string): Promise<HostSamples> {
  const hosts = new Map<string, readonly Sample[]>();
  for (const file of run.files) {
    const host = /^samples\/([^/]+)\.txt$/.exec(file)?.[1];
    if (host === undefined) continue;
    const text = await readRunText(bundle, run, file);
    hosts.set(host, parseSamples(text, runFileName(run, file), originNs));
  }
  return hosts;
}

/** Tuning is compared with the campaign's first run, a digest with the treatment's first. */
function referenceOf(record: RunRecord, references: Map<string, Reference>): Reference {
  const [campaign] = references.values();
  const own = references.get(record.label) ?? {
    tuning: campaign?.tuning ?? record.tuning,
    configurationDigest: record.deployment.configurationDigest,
  };
  references.set(record.label, own);
  return own;
}
