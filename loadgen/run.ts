/** One run: probes, sampler, load, counters, probes again; its files end in a local directory. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { threadsOf } from "../contracts/cpu-list.ts";
import type { Deployment, ProbeResults } from "../contracts/deployment.ts";
import { parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import type { LoadSettings, Treatment } from "../contracts/plan.ts";
import {
  instantNsSchema,
  type LoadPlan,
  loadPlanSchema,
  type RunRecord,
} from "../contracts/record.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import {
  clearScript,
  collectScript,
  loadFiles,
  loadScript,
  type RunKey,
  type Sampling,
  scrapeScript,
  startScript,
} from "./host-scripts.ts";
import { askProbes, requirePassed } from "./probes.ts";
import type { Phase } from "./progress.ts";
import { type Output, runChecked, type Transport } from "./ssh.ts";
import { loadUnitName } from "./unit.ts";
import { type Attack } from "./vegeta.ts";
import { diedUnits } from "./unit-state.ts";

export type RunSetting = {
  readonly key: RunKey;
  readonly testbed: Testbed;
  readonly treatment: Treatment;
  readonly load: LoadSettings;
  readonly deployment: Deployment;
  /** Of arrivals that are not uniform. */
  readonly seed: number;
  /** Where its files go. */
  readonly directory: string;
};

/** What a run found, as far as it got; filled while it goes on, so that a failure keeps it. */
export type Findings = {
  before?: ProbeResults;
  measured?: Measured;
};

export type Measured = Pick<
  RunRecord,
  "generator" | "loadPlan" | "measuredFromNs" | "measuredToNs" | "probes"
>;

/** Marks the begin of each phase. */
export type EnterPhase = (phase: Phase) => void;

/** Connections and counters are read this long before warm-up ends, when connections are open. */
const scrapeLeadSeconds = 1;
const sampleSecondsMax = 1;
const sampleSecondsMin = 0.25;
const samplesMin = 10;

const splitSummarySchema = z.strictObject({
  rows: z.int().positive(),
  warmupRows: z.int().nonnegative(),
  fromNs: instantNsSchema,
  toNs: instantNsSchema,
});

/**
 * Measures a topology that is deployed.
 *
 * @throws Failure `load` if the run broke off: a probe, the load driver or a unit failed; then
 *   `findings` holds what there was until then
 */
export async function measureRun(
  transport: Transport,
  setting: RunSetting,
  findings: Findings,
  enter: EnterPhase,
  signal: AbortSignal,
): Promise<void> {
  const { deployment } = setting;
  enter("probe before");
  const asked = probedBefore(setting);
  const before = await askProbes(transport, asked, "before", signal);
  findings.before = before;
  requirePassed(asked, before, "before");
  enter("start");
  const sampling = samplingOf(setting);
  await eachHost(setting, (host) =>
    runChecked(transport, host.name, startScript(setting.key, host, deployment, sampling), signal),
  );
  // A cold start has no warm-up in which the counters could be read.
  if (isCold(setting)) await scrape(transport, setting, signal);
  const summary = await sendLoad(transport, setting, enter, signal).catch(
    async (failure: unknown) => {
      // Samples and the driver's log may say why; if they cannot be had, the failure still can.
      if (!signal.aborted) await collect(transport, setting, signal).catch(() => undefined);
      throw failure;
    },
  );
  enter("collect");
  await collect(transport, setting, signal);
  const loadPlan = await readLoadPlan(setting);
  enter("probe after");
  const after = await askProbes(transport, deployment, "after", signal);
  findings.measured = {
    generator: generatorOf(setting),
    loadPlan,
    measuredFromNs: summary.fromNs,
    measuredToNs: summary.toNs,
    probes: { before, after },
  };
  // First the cause: whatever else is wrong then follows from it.
  await requireAlive(setting);
  requirePassed(deployment, after, "after");
}

function isCold({ treatment }: RunSetting): boolean {
  return treatment.condition === "cold-start";
}

/**
 * Every request opens connections and fills caches: before a cold start only those are sent that
 * show that the path is there. What must be refused is asked for afterwards.
 */
function probedBefore(setting: RunSetting): Deployment {
  const { deployment } = setting;
  const probes = deployment.probes.filter(({ kind }) => kind === "positive" || !isCold(setting));
  return { ...deployment, probes };
}

/** A cold start is over in seconds, so it is watched closely, proxies included. */
function samplingOf(setting: RunSetting): Sampling {
  const even = setting.load.durationSeconds / samplesMin;
  return isCold(setting)
    ? { intervalSeconds: sampleSecondsMin, proxies: true }
    : {
        intervalSeconds: Math.max(sampleSecondsMin, Math.min(sampleSecondsMax, even)),
        proxies: false,
      };
}

async function scrape(
  transport: Transport,
  setting: RunSetting,
  signal: AbortSignal,
): Promise<void> {
  await eachHost(setting, async (host) => {
    const script = scrapeScript(setting.key, host, setting.deployment);
    if (script !== undefined) await runChecked(transport, host.name, script, signal);
  });
}

async function collect(
  transport: Transport,
  setting: RunSetting,
  signal: AbortSignal,
): Promise<void> {
  await eachHost(setting, (host) => {
    const script = collectScript(setting.key, host, setting.deployment);
    return transport.fetch(host.name, script, setting.directory, signal);
  });
}

/** Stops and removes on all hosts what a run may have left; tries all before it complains. */
export async function clearRun(
  transport: Transport,
  testbed: Testbed,
  key: RunKey,
  signal: AbortSignal,
): Promise<void> {
  const results = await Promise.allSettled(
    testbed.hosts.map((host) => runChecked(transport, host.name, clearScript(key), signal)),
  );
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

type SplitSummary = z.infer<typeof splitSummarySchema>;

/**
 * Sends pre-warming, warm-up and measured load as one attack. Nothing is asked of any host while
 * the measured part lasts: the counters before it are read near the end of the warm-up, of a cold
 * start before it begins.
 */
async function sendLoad(
  transport: Transport,
  setting: RunSetting,
  enter: EnterPhase,
  signal: AbortSignal,
): Promise<SplitSummary> {
  const host = hostOfDeployment(setting.testbed, setting.deployment.entry.host);
  const script = loadScript(
    setting.key,
    host,
    attackOf(setting, host),
    setting.deployment.scheduling === "rr",
  );
  enter(isCold(setting) ? "load" : "warm-up");
  const ended = new AbortController();
  const side = besideLoad(transport, setting, enter, AbortSignal.any([signal, ended.signal]));
  const [output, beside] = await Promise.allSettled([
    transport.run(host.name, script, signal).finally(() => {
      ended.abort();
    }),
    side,
  ]);
  if (output.status === "rejected") throw output.reason;
  if (output.value.code !== 0) throw loadFailure(host, output.value);
  if (beside.status === "rejected") throw beside.reason;
  return parseDocument(splitSummarySchema, output.value.stdout, `load of host ${host.name}`);
}

async function besideLoad(
  transport: Transport,
  setting: RunSetting,
  enter: EnterPhase,
  signal: AbortSignal,
): Promise<void> {
  if (isCold(setting)) return;
  const warmSeconds = setting.load.prewarm.seconds + setting.load.warmupSeconds;
  const begin = performance.now();
  const until = async (seconds: number): Promise<boolean> => {
    const left = seconds * 1000 - (performance.now() - begin);
    if (left > 0) await delay(left, undefined, { signal }).catch(() => undefined);
    return !signal.aborted;
  };
  if (!(await until(warmSeconds - scrapeLeadSeconds))) return;
  await scrape(transport, setting, signal);
  if (await until(warmSeconds)) enter("load");
}

function loadFailure(host: Host, output: Output): Failure {
  const lines = output.stderr.trim().split("\n").slice(-3).join("; ") || "no message";
  return new Failure(
    "load",
    `load driver on host ${host.name}: ended with exit code ${output.code}, ${lines}`,
  );
}

function attackOf(setting: RunSetting, host: Host): Attack {
  return {
    treatment: setting.treatment,
    load: setting.load,
    entry: setting.deployment.entry,
    files: loadFiles(setting.key),
    cpuCount: threadsOf(host.cpus.load),
    seed: setting.seed,
  };
}

function generatorOf(setting: RunSetting): RunRecord["generator"] {
  const host = hostOfDeployment(setting.testbed, setting.deployment.entry.host);
  const unit = loadUnitName(setting.key.token, setting.key.run);
  return { unit, host: host.name, cpus: host.cpus.load };
}

async function readLoadPlan(setting: RunSetting): Promise<LoadPlan> {
  const path = join(setting.directory, "load-plan.json");
  return parseDocument(loadPlanSchema, await readFile(path, "utf8"), "load-plan.json");
}

async function requireAlive(setting: RunSetting): Promise<void> {
  const read = (host: Host, when: string) =>
    readFile(join(setting.directory, "units", `${host.name}-${when}.txt`), "utf8").catch(() => "");
  const died: string[] = [];
  for (const host of setting.testbed.hosts) {
    const names = diedUnits(await read(host, "before"), await read(host, "after"));
    died.push(...names.map((name) => `${name} on host ${host.name}`));
  }
  if (died.length > 0) {
    throw new Failure("load", `units that did not live through the run: ${died.join(", ")}`);
  }
}

/** Hosts side by side; all are waited for, so that nothing goes on behind a failure. */
async function eachHost(
  setting: RunSetting,
  work: (host: Host) => Promise<unknown>,
): Promise<void> {
  const results = await Promise.allSettled(setting.testbed.hosts.map(work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

function hostOfDeployment(testbed: Testbed, name: string): Host {
  const host = testbed.hosts.find((candidate) => candidate.name === name);
  if (host === undefined) {
    throw new Failure("testbed", `deployment: host ${name} is not in testbed ${testbed.name}`);
  }
  return host;
}
