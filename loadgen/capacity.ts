/**
 * Capacity searches of a campaign: deploys a treatment once, tries rate after rate on it and keeps
 * every probe with its raw files. Which rate comes next is told by search.ts.
 */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CapacityProbe, CapacitySearch } from "../contracts/capacity-search.ts";
import { type CapacitySettings, ceilingLabel, type ProbePurpose } from "../contracts/capacity.ts";
import type { Deployment } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import {
  capacityLabelOf,
  loadOf,
  type LoadSettings,
  type Plan,
  type Treatment,
} from "../contracts/plan.ts";
import type { Campaign, JudgeProbe } from "./options.ts";
import { seededDraw, shuffled } from "./random.ts";
import { clearRun, type Findings, measureRun } from "./run.ts";
import { ladderRates, nextStep, probesMax, type Tried } from "./search.ts";

/** A planned search. */
export type PlannedSearch = {
  readonly block: number;
  readonly position: number;
  readonly label: string;
};

/** Bound for clearing a host and for one destroy. */
const cleanupSeconds = 300;

/** Probes are numbered apart from runs, whose numbers name units on the hosts as well. */
const firstProbe = 100_000;

/** No name of a unit comes twice in a campaign, since the hosts' journals keep old ones. */
function probeNumber({ block, position }: PlannedSearch, number: number): number {
  return firstProbe + 1000 * (1000 * block + position) + number;
}

/** So many probes in a row that broke off end a search: something is wrong beside the rate. */
const brokenInRowMax = 3;

/**
 * The searches of a plan: in each block every steady treatment and the ceiling, in seeded random
 * order; treatments that differ in their rate only share one. The seed differs from that of the
 * runs' order, so that neither tells of the other.
 */
export function orderSearches(plan: Plan): PlannedSearch[] {
  const { capacity } = plan;
  if (capacity === undefined) return [];
  const draw = seededDraw(plan.seed + 1_000_003);
  const searched = plan.treatments.filter(
    (treatment) =>
      treatment.condition === "steady" && capacityLabelOf(plan, treatment) === treatment.label,
  );
  const own = searched.map(({ label }) => label);
  const labels = capacity.ceiling ? [...own, ceilingLabel] : own;
  return Array.from({ length: capacity.blocks }, (_, index) =>
    shuffled(labels, draw).map((label, place) => ({
      block: index + 1,
      position: place + 1,
      label,
    })),
  ).flat();
}

/** Name of a search's directory. */
export function searchName({ block, label }: PlannedSearch): string {
  return `b${block}-${label}`;
}

/**
 * Makes all searches that the bundle does not hold yet.
 *
 * @throws Failure `interrupted` on abort, the search in progress being dropped; `testbed` if a
 *   topology could not be deployed or destroyed
 */
export async function measureCapacities(campaign: Campaign): Promise<void> {
  const { options, bundle } = campaign;
  const { capacity } = options.plan;
  if (capacity === undefined) return;
  if (options.judgeProbe === undefined) throw new Error("campaign: nobody judges its probes");
  const judge = options.judgeProbe;
  const order = orderSearches(options.plan);
  for (const [index, search] of order.entries()) {
    if (bundle.searches.includes(searchName(search))) continue;
    options.signal.throwIfAborted();
    const text = `capacity ${index + 1} of ${order.length}: ${search.label}, block ${search.block}`;
    options.progress({ kind: "notice", text });
    await executeSearch(campaign, capacity, search, judge);
  }
}

async function executeSearch(
  campaign: Campaign,
  settings: CapacitySettings,
  search: PlannedSearch,
  judge: JudgeProbe,
): Promise<void> {
  const { options, bundle } = campaign;
  const treatment = treatmentOf(options.plan, search.label);
  const load = loadOf(options.plan, treatment);
  const directory = await bundle.beginSearch(searchName(search));
  const startedAt = new Date().toISOString();
  try {
    const deployment = await options.deployer.deploy(treatment, load, options.signal);
    const setting = { settings, search, treatment, load, deployment, directory, judge };
    const rates = new Rates(campaign, setting);
    const ended = await rates.search();
    if (ended === "confirmed" || ended === "at most") await rates.climb();
    await bundle.finishSearch(searchName(search), {
      schema: "ztbench/capacity-search/1",
      ...search,
      treatment,
      deployment,
      startedAt,
      finishedAt: new Date().toISOString(),
      ended,
      probes: rates.probes,
    });
  } catch (error) {
    await bundle.dropSearch(searchName(search));
    // What an abort broke is no failure of its own.
    options.signal.throwIfAborted();
    throw error;
  } finally {
    const bound = AbortSignal.timeout(cleanupSeconds * 1000);
    await options.deployer.destroy(treatment.topology, bound);
    await options.deployer.proveAbsent(treatment.topology, bound);
  }
}

/** The null server is driven as the baseline is, on the hosts' own network. */
function treatmentOf(plan: Plan, label: string): Treatment {
  const wanted = label === ceilingLabel ? plan.baseline : label;
  const treatment = plan.treatments.find((candidate) => candidate.label === wanted);
  if (treatment === undefined) throw new Error(`plan has no treatment ${wanted}`);
  if (label !== ceilingLabel) return treatment;
  const { driver, arrival } = treatment;
  return {
    label,
    topology: "null",
    runtime: "native",
    parameters: {},
    driver,
    arrival,
    condition: "steady",
    connectionLimit: "bounded",
  };
}

type Setting = {
  readonly settings: CapacitySettings;
  readonly search: PlannedSearch;
  readonly treatment: Treatment;
  readonly load: LoadSettings;
  readonly deployment: Deployment;
  readonly directory: string;
  readonly judge: JudgeProbe;
};

/** The rates of one search, one after another on one deployment. */
class Rates {
  readonly probes: CapacityProbe[] = [];
  readonly #campaign: Campaign;
  readonly #setting: Setting;

  constructor(campaign: Campaign, setting: Setting) {
    this.#campaign = campaign;
    this.#setting = setting;
  }

  /** @returns how it ended */
  async search(): Promise<CapacitySearch["ended"]> {
    const tried: Tried[] = [];
    const { settings } = this.#setting;
    while (tried.length < probesMax) {
      const step = nextStep(settings, tried);
      if (step.next === "done") return step.because;
      const seconds = step.next === "confirm" ? settings.confirmSeconds : settings.probeSeconds;
      const passed = await this.#probe(step.next, step.rateQps, seconds);
      tried.push({ purpose: step.next, rateQps: step.rateQps, passed });
      const last = this.probes.slice(-brokenInRowMax);
      const isBroken = last.every(({ measured }) => measured === undefined);
      if (last.length === brokenInRowMax && isBroken) return "broke off";
    }
    return "broke off";
  }

  /** Drives the ladder up and down around what was confirmed. */
  async climb(): Promise<void> {
    const { ladder } = this.#setting.settings;
    const confirmed = this.probes.findLast(({ purpose }) => purpose === "confirm");
    if (ladder === undefined || confirmed === undefined) return;
    const rates = ladderRates(confirmed.rateQps, ladder);
    for (const rate of rates) await this.#probe("up", rate, ladder.secondsPerStep);
    for (const rate of rates.toReversed()) await this.#probe("down", rate, ladder.secondsPerStep);
  }

  async #probe(purpose: ProbePurpose, rateQps: number, seconds: number): Promise<boolean> {
    const { transport, options, token } = this.#campaign;
    const { settings, treatment, deployment, search } = this.#setting;
    if (this.probes.length > 0) {
      await delay(settings.cooldownSeconds * 1000, undefined, { signal: options.signal });
    }
    const number = this.probes.length + 1;
    const name = `${String(number).padStart(3, "0")}-${purpose}-${rateQps}`;
    const directory = path.join(this.#setting.directory, name);
    await mkdir(directory);
    const load = probeLoad(this.#setting.load, settings, rateQps, seconds);
    const key = { token, run: probeNumber(search, number) };
    const { testbed, plan } = options;
    const seed = plan.seed + number;
    const setting = { key, testbed, treatment, load, deployment, seed, directory };
    const findings: Findings = {};
    let failure: string | undefined;
    try {
      await measureRun(transport, setting, findings, () => undefined, options.signal);
    } catch (error) {
      if (options.signal.aborted || !(error instanceof Failure)) throw error;
      failure = error.message;
    } finally {
      // After an interruption as well: sampler and load would go on, and nobody would fetch them.
      await clearRun(transport, testbed, key, AbortSignal.timeout(cleanupSeconds * 1000));
    }
    const { measured } = findings;
    const begun = { directory: name, purpose, rateQps, load };
    const verdict =
      failure !== undefined || measured === undefined
        ? { passed: false, reasons: [`broke off: ${failure ?? "no result"}`] }
        : await this.#setting.judge(directory, { ...begun, measured }, settings);
    const { passed, reasons } = verdict;
    this.probes.push({ ...begun, ...(measured && { measured }), passed, reasons: [...reasons] });
    const told = passed ? "holds" : `does not hold, ${reasons.join("; ")}`;
    options.progress({ kind: "notice", text: `  ${purpose} ${rateQps}/s: ${told}` });
    return passed;
  }
}

/** Settling is the warm-up of a probe; connections are opened as slowly as before a run. */
function probeLoad(
  load: LoadSettings,
  settings: CapacitySettings,
  rateQps: number,
  durationSeconds: number,
): LoadSettings {
  const { prewarm } = load;
  return {
    ...load,
    rateQps,
    prewarm: { ...prewarm, rateQps: Math.min(prewarm.rateQps, rateQps) },
    warmupSeconds: Math.min(settings.settleSeconds, durationSeconds),
    durationSeconds,
  };
}
