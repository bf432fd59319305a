/** A campaign: deploys, measures and destroys what the plan says, run by run, into a bundle. */
import { randomBytes } from "node:crypto";
import { Failure } from "../contracts/failure.ts";
import { openBundle } from "./campaign-bundle.ts";
import type { Bundle } from "./bundle.ts";
import { measureCapacities } from "./capacity.ts";
import { nextRun, type PlannedRun, runsLeft } from "./order.ts";
import { judgeEarlier, judgeLast, orderOf, stopIfEnough } from "./watching.ts";
import { Estimate } from "./progress.ts";
import { executeRun } from "./execution.ts";
import { sweepScript } from "./host-scripts.ts";
import type { Campaign, CampaignOptions, Tuning } from "./options.ts";
import { openTransport, runChecked, type Transport } from "./ssh.ts";
import { tuningChanges } from "./tuning-change.ts";

export type CampaignResult = {
  readonly bundleDir: string;
  /** Runs in the bundle, and how many of them broke off or are invalid. */
  readonly runs: number;
  readonly failed: number;
};

/** With more failures than this in a row, something is wrong that will not go away. */
const failuresInRowMax = 3;

/** Bound for putting things in order after an interruption or a failure. */
const cleanupSeconds = 300;

/**
 * Runs a campaign to its end.
 *
 * @throws Failure `interrupted` after the signal; `load` if too many runs in a row broke off;
 *   `usage`, `comparison` or `document` if the bundle is not fit to write to; `testbed` if a host
 *   is not reached or not left clean. The bundle is whole after each of them
 */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const transport = await openTransport(options.testbed);
  try {
    return await runCampaignOver(transport, options);
  } finally {
    await transport.close();
  }
}

/** The same over a connection that the caller opened and closes. */
export async function runCampaignOver(
  transport: Transport,
  options: CampaignOptions,
): Promise<CampaignResult> {
  const { lease } = options.hooks;
  await lease.take(options.signal);
  const release = () => lease.release(AbortSignal.timeout(cleanupSeconds * 1000));
  let result: CampaignResult;
  try {
    result = await executePlan(transport, options);
  } catch (error) {
    await release().catch((problem: unknown) => {
      // The first error matters more, but a lease that is left must be known.
      const text = `lease: not released, ${problem instanceof Error ? problem.message : "unknown"}`;
      options.progress({ kind: "notice", text });
    });
    throw error;
  }
  await release();
  return result;
}

async function executePlan(
  transport: Transport,
  options: CampaignOptions,
): Promise<CampaignResult> {
  let bundle: Bundle | undefined;
  try {
    await sweepHosts(transport, options);
    bundle = await openBundle(options);
    const token = randomBytes(4).toString("hex");
    const campaign: Campaign = { options, transport, bundle, token };
    await executeAll(campaign);
    await measureCapacities(campaign);
    const { attempts, directory } = bundle;
    const failed = attempts.filter((attempt) => attempt.failed).length;
    return { bundleDir: directory, runs: attempts.length, failed };
  } catch (error) {
    if (options.signal.aborted) throw interruption(bundle, error);
    throw error;
  }
}

/** Runs block by block; the tuning is read back before and after each. */
async function executeAll(campaign: Campaign): Promise<void> {
  const { options, bundle } = campaign;
  await judgeEarlier(campaign);
  const most = 2 * bundle.manifest.order.length;
  const estimate = new Estimate(options.plan);
  const left = () => runsLeft(orderOf(bundle), bundle.attempts);
  options.progress({ kind: "estimate", runs: left(), seconds: estimate.secondsFor(left()) });
  let block: { readonly number: number; readonly tuning: Tuning } | undefined;
  let failuresInRow = 0;
  // Two tries a planned run at most: the bound holds whatever `nextRun` says.
  for (let step = 0; step <= most; step++) {
    let run = nextRun(orderOf(bundle), bundle.attempts);
    if (block !== undefined && block.number !== run?.block) {
      await closeBlock(campaign, block);
      await stopIfEnough(campaign, block.number);
      run = nextRun(orderOf(bundle), bundle.attempts);
    }
    if (run === undefined) return;
    if (block?.number !== run.block) {
      block = { number: run.block, tuning: await options.hooks.readback(options.signal) };
    }
    options.signal.throwIfAborted();
    const of = bundle.attempts.length + left();
    options.progress({ kind: "run", run, of, secondsLeft: estimate.secondsFor(left()) });
    const { failure, seconds } = await executeRun(campaign, run, block.tuning);
    if (failure === undefined) estimate.learn(seconds);
    failuresInRow = failure === undefined ? 0 : failuresInRow + 1;
    if (failure === undefined) await judgeLast(campaign, run);
    const secondsLeft = estimate.secondsFor(left());
    options.progress({ kind: "finished", run, failure, seconds, secondsLeft });
    if (failuresInRow > failuresInRowMax) throw tooManyFailures(bundle, run, failure);
  }
  throw new Error("campaign: more runs than planned");
}

async function closeBlock(
  campaign: Campaign,
  block: { readonly number: number; readonly tuning: Tuning },
): Promise<void> {
  const { hooks, signal, progress } = campaign.options;
  const later = await hooks.readback(signal);
  await campaign.bundle.keepReadback(block.number, later);
  const changes = tuningChanges(block.tuning, later);
  const warnings = changes.map((change) => `block ${block.number}: tuning changed, ${change}`);
  for (const text of warnings) progress({ kind: "notice", text });
  await campaign.bundle.warn(warnings);
}

/** A campaign that was killed cannot clear what it started; the next one does, and says so. */
async function sweepHosts(transport: Transport, options: CampaignOptions): Promise<void> {
  await Promise.all(
    options.testbed.hosts.map(async ({ name }) => {
      const printed = await runChecked(transport, name, sweepScript(), options.signal);
      const units = printed.split("\n").filter((line) => line !== "");
      if (units.length === 0) return;
      const text = `host ${name}: cleared what an earlier campaign left, ${units.join(", ")}`;
      options.progress({ kind: "notice", text });
    }),
  );
}

function tooManyFailures(bundle: Bundle, run: PlannedRun, failure: string | undefined): Failure {
  return new Failure(
    "load",
    `campaign ${bundle.manifest.campaign}: stopped in block ${run.block}, ` +
      `${failuresInRowMax + 1} runs in a row broke off, the last because: ${failure ?? "unknown"}`,
    { hint: "mend the cause, then go on with --resume; failed runs are kept in the bundle" },
  );
}

function interruption(bundle: Bundle | undefined, cause: unknown): Failure {
  // Hosts that were not left clean matter more than the wish to stop.
  if (cause instanceof Failure && cause.code === "testbed") return cause;
  if (bundle === undefined) {
    return new Failure("interrupted", "campaign: interrupted before its first run", { cause });
  }
  const { attempts, manifest, directory } = bundle;
  return new Failure(
    "interrupted",
    `campaign ${manifest.campaign}: interrupted, ${attempts.length} runs are kept in ${directory}`,
    { cause, hint: "go on with the same command and --resume" },
  );
}
