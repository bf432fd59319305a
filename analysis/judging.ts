/**
 * Reads everything of one run, measures it and judges it. Runs come in the order of execution: the
 * first one is what later ones are compared with.
 */
import { coldStartOf } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import { type Bundle, type BundleRun, readRunText, runFileName, runPath } from "./bundle.ts";
import { describeStart } from "./cold-start.ts";
import { connectFile, type ConnectSeries, readConnect } from "./connect.ts";
import { connectionsFile, type LoadConnections, readConnections } from "./connections.ts";
import type { CurveCollector } from "./curve.ts";
import { verdictOf } from "./gates/gate.ts";
import type { GateInput, Reference } from "./gates/input.ts";
import { judgeBrokenRun, judgeRun } from "./gates/judge.ts";
import { type HostEvidence, hostEvidenceOf } from "./host-evidence.ts";
import type { JudgedRun } from "./judged-run.ts";
import { measureLatency, type RunLatency, type TakeRequest } from "./latency.ts";
import { matrixOf } from "./matrix.ts";
import { readOffsets } from "./offsets.ts";
import { proxyFactsOf } from "./proxy-facts.ts";
import { type RequestShape, ShapeCollector } from "./request-shape.ts";
import { type HostSamples, measureResources } from "./resources.ts";
import { parseSamples, type Sample } from "./samples.ts";
import { rotationOf } from "./rotation.ts";
import { SecondLatency } from "./second-latency.ts";
import { wireFactsOf, type WireTexts } from "./wire.ts";

export type JudgingOptions = {
  /** Receives the interval log of each run; without it none is made, which is faster. */
  readonly writeIntervalLog?: (runName: string, log: string) => Promise<void>;
  /** Takes the distributions of runs that are used. */
  readonly collector?: CurveCollector;
};

/** What of a bundle is needed to judge its runs; the manifest may grow while a campaign lasts. */
export type JudgedBundle = Pick<Bundle, "directory" | "plan" | "manifest">;

const requestsFile = "requests.csv.gz";
const loadLogFile = "load.log";

export class RunJudge {
  readonly #options: JudgingOptions;
  readonly #references = new Map<string, Reference>();

  constructor(options: JudgingOptions = {}) {
    this.#options = options;
  }

  /** @throws Failure `document` for a bad file of the run */
  async judge(bundle: JudgedBundle, run: BundleRun): Promise<JudgedRun> {
    const { record } = run;
    const { block, position, label, arm } = record;
    const { condition } = record.treatment;
    const identity = { name: run.name, run: record.run, block, position, label, arm, condition };
    if (record.schema === "ztbench/failed-run/1" || !run.files.includes(requestsFile)) {
      return { ...identity, verdict: "INVALID", gates: judgeBrokenRun(record) };
    }
    const bySecond = condition === "cold-start" ? new SecondLatency() : undefined;
    const { latency, shape, bad } = await this.#latencyOf(bundle, run, record, bySecond);
    const { samples, input } = await this.#inputOf(bundle, run, record, latency, shape);
    const gates = judgeRun(input);
    const verdict = verdictOf(gates);
    this.#options.collector?.settle(label, verdict, latency);
    const seconds = bySecond?.finish();
    const settings = coldStartOf(bundle.plan);
    const rotation = rotationOf(input, bad);
    return {
      ...identity,
      verdict,
      gates,
      latency,
      resources: input.resources,
      wire: input.wire,
      connections: input.connections,
      matrix: matrixOf(input, bundle.manifest.facts),
      ...(rotation !== undefined && { rotation }),
      ...(seconds !== undefined && {
        coldStart: describeStart({ record, latency, samples, seconds, settings }),
      }),
    };
  }

  async #latencyOf(
    bundle: JudgedBundle,
    run: BundleRun,
    record: RunRecord,
    bySecond: SecondLatency | undefined,
  ): Promise<{ latency: RunLatency; shape: RequestShape; bad: number | undefined }> {
    const { loadPlan, measuredFromNs } = record;
    const { offsetsFile } = loadPlan;
    const { writeIntervalLog, collector } = this.#options;
    const offsetsNs =
      offsetsFile === undefined
        ? undefined
        : await readOffsets(
            runPath(bundle, run, offsetsFile),
            runFileName(run, offsetsFile),
            loadPlan.planned,
          );
    const shape = new ShapeCollector(loadPlan, offsetsNs);
    const { sloMilliseconds } = bundle.plan.rotation ?? {};
    const sloNs = (sloMilliseconds ?? Number.POSITIVE_INFINITY) * 1e6;
    let good = 0;
    const takeRequest: TakeRequest = (dueNs, responseNs, lagNs, latencyNs) => {
      shape.record(dueNs, responseNs, lagNs, latencyNs);
      if (responseNs !== undefined && responseNs <= sloNs) good += 1;
      bySecond?.record(dueNs, responseNs);
    };
    const lines: string[] = [];
    const latency = await measureLatency({
      path: runPath(bundle, run, requestsFile),
      name: runFileName(run, requestsFile),
      loadPlan,
      measuredFromNs,
      takeRequest,
      takeTotals: (totals) => {
        collector?.hold(totals);
      },
      ...(offsetsNs !== undefined && { offsetsNs }),
      ...(writeIntervalLog !== undefined && { writeInterval: (line: string) => lines.push(line) }),
    });
    await writeIntervalLog?.(run.name, lines.join(""));
    const bad = sloMilliseconds === undefined ? undefined : latency.planned - good;
    return { latency, shape: shape.finish(), bad };
  }

  async #inputOf(
    bundle: JudgedBundle,
    run: BundleRun,
    record: RunRecord,
    latency: RunLatency,
    shape: RequestShape,
  ): Promise<{ samples: HostSamples; input: GateInput }> {
    const samples = await samplesOf(bundle, run, latency.startNs);
    const hosts = await hostsOf(bundle, run, record, samples, latency.startNs);
    const texts = await wireTextsOf(bundle, run, record);
    const readbacks = bundle.manifest.readbacks ?? [];
    const input: GateInput = {
      record,
      plan: bundle.plan,
      latency,
      shape,
      resources: measureResources(record, latency, samples),
      connections: await connectionsOf(bundle, run, record, samples),
      reference: this.#referenceOf(record, hosts),
      wire: wireFactsOf(record, texts),
      proxies: proxyFactsOf(
        record.deployment.admin.map(({ unit }) => unit),
        texts,
      ),
      hosts,
      pausesNs: await pausesOf(bundle, run),
      connect: await connectOf(bundle, run),
      tuningAfter: readbacks.find(({ block }) => block === record.block)?.tuning,
    };
    return { samples, input };
  }

  /** Tuning and hosts are compared with the campaign's first run, a digest with the treatment's. */
  #referenceOf(record: RunRecord, hosts: Reference["hosts"]): Reference {
    const [campaign] = this.#references.values();
    const own = this.#references.get(record.label) ?? {
      tuning: campaign?.tuning ?? record.tuning,
      hosts: campaign?.hosts ?? hosts,
      configurationDigest: record.deployment.configurationDigest,
      cluster: record.deployment.cluster,
    };
    this.#references.set(record.label, own);
    return own;
  }
}

async function samplesOf(
  bundle: JudgedBundle,
  run: BundleRun,
  originNs: string,
): Promise<HostSamples> {
  const hosts = new Map<string, readonly Sample[]>();
  for (const file of run.files) {
    const host = /^samples\/([^/]+)\.txt$/.exec(file)?.[1];
    if (host === undefined) continue;
    hosts.set(host, await readSamples(bundle, run, file, originNs));
  }
  return hosts;
}

/** None of a file that the run does not have. */
async function readSamples(
  bundle: JudgedBundle,
  run: BundleRun,
  file: string,
  originNs: string,
): Promise<readonly Sample[]> {
  if (!run.files.includes(file)) return [];
  const text = await readRunText(bundle, run, file);
  return parseSamples(text, runFileName(run, file), originNs);
}

async function hostsOf(
  bundle: JudgedBundle,
  run: BundleRun,
  { loadPlan }: RunRecord,
  samples: HostSamples,
  originNs: string,
): Promise<ReadonlyMap<string, HostEvidence>> {
  const planNs = loadPlan.intervalNs * loadPlan.planned;
  const found = new Map<string, HostEvidence>();
  for (const [host, own] of samples) {
    const state = (when: string) => readSamples(bundle, run, `state/${host}-${when}.txt`, originNs);
    found.set(host, hostEvidenceOf(own, planNs, await state("before"), await state("after")));
  }
  return found;
}

/** What the kernel of the load host said of its connections, if it was asked. */
async function connectionsOf(
  bundle: JudgedBundle,
  run: BundleRun,
  record: RunRecord,
  samples: HostSamples,
): Promise<LoadConnections> {
  const file = connectionsFile(record);
  const text = run.files.includes(file) ? await readRunText(bundle, run, file) : undefined;
  const { intervalNs, planned } = record.loadPlan;
  const own = samples.get(record.deployment.entry.host) ?? [];
  return readConnections(text, own, intervalNs * planned);
}

/** What proxies and services printed of themselves, as far as it was asked for. */
async function wireTextsOf(
  bundle: JudgedBundle,
  run: BundleRun,
  record: RunRecord,
): Promise<WireTexts> {
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

/**
 * Times in which Go stopped all its threads, from the lines that GODEBUG=gctrace=1 prints:
 * `gc 1 @0.012s 1%: 0.012+0.30+0.004 ms clock, ...`, of which the first and the last are pauses.
 */
async function pausesOf(
  bundle: JudgedBundle,
  run: BundleRun,
): Promise<readonly number[] | undefined> {
  if (!run.files.includes(loadLogFile)) return undefined;
  const text = await readRunText(bundle, run, loadLogFile);
  const line = /^gc \d+ @[\d.]+s \d+%: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock/gm;
  return [...text.matchAll(line)].map(([, a, b]) => Math.max(Number(a), Number(b)) * 1e6);
}

async function connectOf(bundle: JudgedBundle, run: BundleRun): Promise<ConnectSeries | undefined> {
  if (!run.files.includes(connectFile)) return undefined;
  return readConnect(await readRunText(bundle, run, connectFile), runFileName(run, connectFile));
}
