/** One planned run from deploy to destroy; whatever happens, hosts and bundle are left in order. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "../contracts/failure.ts";
import type { Deployment } from "../contracts/deployment.ts";
import { loadOf, type Treatment } from "../contracts/plan.ts";
import type { Draft } from "./bundle.ts";
import type { Campaign, Tuning } from "./options.ts";
import type { PlannedRun } from "./order.ts";
import type { Phase } from "./progress.ts";
import { clearRun, type Findings, measureRun } from "./run.ts";

export type Executed = {
  /** Why it broke off, if it did. */
  readonly failure: string | undefined;
  readonly seconds: number;
};

/** Bound for clearing a host after a run that broke off, and for one destroy. */
const cleanupSeconds = 300;

/**
 * Executes one run. A run that broke off is kept with its reason and is no error here.
 *
 * @throws Failure `interrupted` on abort, the run in progress being dropped; `testbed` if the
 *   topology could not be destroyed; any other error is a bug and passes through, hosts cleared
 */
export async function executeRun(
  campaign: Campaign,
  run: PlannedRun,
  tuning: Tuning,
): Promise<Executed> {
  const { options, bundle } = campaign;
  const { deployer, progress, signal } = options;
  const treatment = treatmentOf(campaign, run);
  const clock = new PhaseClock((phase) => {
    progress({ kind: "phase", run, phase });
  });
  let failure: string | undefined;
  try {
    const draft = await measure(campaign, run, treatment, tuning, clock);
    failure = draft.failure;
    await bundle.finishRun(run, draft);
  } catch (error) {
    await bundle.dropRun(run);
    await putInOrder(campaign, run, treatment.topology, error);
    // What an abort broke is no failure of its own.
    signal.throwIfAborted();
    throw error;
  }
  clock.enter("destroy");
  // Not ended by the signal: a half destroyed topology is worse than a few seconds.
  const bound = AbortSignal.timeout(cleanupSeconds * 1000);
  await deployer.destroy(treatment.topology, bound);
  await deployer.proveAbsent(treatment.topology, bound);
  signal.throwIfAborted();
  return { failure, seconds: clock.totalSeconds() };
}

/** Deploys and measures; returns the record, of a run that broke off as well. */
async function measure(
  campaign: Campaign,
  run: PlannedRun,
  treatment: Treatment,
  tuning: Tuning,
  clock: PhaseClock,
): Promise<Draft> {
  const { options, bundle, transport, token } = campaign;
  const { plan, testbed, signal } = options;
  const startedAt = new Date().toISOString();
  const findings: Findings = {};
  const key = { token, run: run.run };
  const load = loadOf(plan, treatment);
  const directory = await bundle.beginRun(run);
  let deployment: Deployment | undefined;
  let failure: string | undefined;
  try {
    clock.enter("deploy");
    deployment = await options.deployer.deploy(treatment, load, signal);
    await keepConfiguration(directory, options.deployer.configuration(deployment));
    const seed = plan.seed + run.block;
    const setting = { key, testbed, treatment, load, deployment, seed, directory };
    await measureRun(transport, setting, findings, clock.enter, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof Failure)) throw error;
    failure = error.message;
  }
  clock.enter("clear");
  await clearRun(transport, testbed, key, AbortSignal.timeout(cleanupSeconds * 1000));
  const common = {
    ...run,
    treatment,
    load,
    startedAt,
    finishedAt: new Date().toISOString(),
    phaseSeconds: clock.seconds(),
  };
  const { before, measured } = findings;
  if (deployment === undefined || measured === undefined) {
    return {
      schema: "ztbench/failed-run/1",
      ...common,
      failure: failure ?? "it ended without a result",
      ...(before === undefined ? {} : { probes: { before } }),
    };
  }
  return {
    schema: "ztbench/record/1",
    ...common,
    deployment,
    ...measured,
    tuning,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** Beside the records, so that a reader sees what ran without our renderers. */
async function keepConfiguration(
  directory: string,
  configuration: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(configuration)) {
    const file = path.join(directory, "configuration", name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

/** After an abort or a bug: everything is tried, and what could not be done is named. */
async function putInOrder(
  campaign: Campaign,
  run: PlannedRun,
  topology: string,
  cause: unknown,
): Promise<void> {
  const { transport, options, token } = campaign;
  const bound = AbortSignal.timeout(cleanupSeconds * 1000);
  const results = await Promise.allSettled([
    clearRun(transport, options.testbed, { token, run: run.run }, bound),
    options.deployer
      .destroy(topology, bound)
      .then(() => options.deployer.proveAbsent(topology, bound)),
  ]);
  const problems = results.flatMap((result) =>
    result.status === "rejected" ? [describe(result.reason)] : [],
  );
  if (problems.length > 0) {
    throw new Failure("testbed", `hosts were not left clean: ${problems.join("; ")}`, {
      cause,
      hint: `pulumi destroy -s ${topology}`,
    });
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function treatmentOf(campaign: Campaign, run: PlannedRun): Treatment {
  const { treatments } = campaign.options.plan;
  const treatment = treatments.find(({ label }) => label === run.label);
  if (treatment === undefined) throw new Error(`plan has no treatment ${run.label}`);
  return treatment;
}

/** Seconds that each phase took; entering one ends the one before. */
class PhaseClock {
  readonly #begin = performance.now();
  readonly #seconds = new Map<Phase, number>();
  readonly #told: (phase: Phase) => void;
  #current: { readonly phase: Phase; readonly since: number } | undefined;

  constructor(told: (phase: Phase) => void) {
    this.#told = told;
  }

  readonly enter = (phase: Phase): void => {
    this.#close();
    this.#current = { phase, since: performance.now() };
    this.#told(phase);
  };

  /** So far; the current phase is ended by asking. */
  seconds(): Record<string, number> {
    this.#close();
    const rounded = [...this.#seconds].map(([phase, s]) => [phase, Math.round(s * 1000) / 1000]);
    return Object.fromEntries(rounded) as Record<string, number>;
  }

  totalSeconds(): number {
    return (performance.now() - this.#begin) / 1000;
  }

  #close(): void {
    if (this.#current === undefined) return;
    const { phase, since } = this.#current;
    const passed = (performance.now() - since) / 1000;
    this.#seconds.set(phase, (this.#seconds.get(phase) ?? 0) + passed);
    this.#current = undefined;
  }
}
