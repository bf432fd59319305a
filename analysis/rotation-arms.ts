/**
 * Renewals of certificates by treatment over its valid runs, each beside the treatment that it is
 * compared with: the placebo, whose certificates outlast its runs.
 */
import { baselineOf, type Plan, type Treatment } from "../contracts/plan.ts";
import { isMeasured } from "./blocks.ts";
import { type Cell, none, notMeasured, numberOf, sumOf, value } from "./cell.ts";
import { middle, whyNone } from "./comparison.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { RunLatency } from "./latency.ts";
import type { RunRotation } from "./rotation.ts";
import { meanInterval, proportionDifference, wilsonInterval } from "./statistics.ts";

/** Median over valid runs with least and greatest; of renewals, over proxies and valid runs. */
export type RotationFigures = Readonly<
  Record<
    "renewals" | "opened" | "fullHandshakes" | "resumedHandshakes" | "worstSecond" | "bad",
    Cell
  >
>;

/** Requests an event; the interval is at 95 %. */
export type BadPerEvent =
  | {
      readonly kind: "estimate";
      readonly mean: number;
      readonly low: number;
      readonly high: number;
      readonly pairs: number;
    }
  | { readonly kind: "none"; readonly reason: string };

export type RotationArm = {
  readonly label: string;
  /** What it is compared with; absent of what others are compared with. */
  readonly placebo?: string;
  readonly certificateSeconds: Cell;
  /** Certificates of all proxies in all valid runs together. */
  readonly events: Cell;
  readonly figures: RotationFigures;
  /** Bad requests that one renewal brings over those of the placebo; absent of a placebo. */
  readonly badPerEvent?: BadPerEvent;
};

export type Rotations = {
  readonly arms: readonly RotationArm[];
  /** The plan's objective, by which requests are bad; absent if it has none. */
  readonly sloMilliseconds?: number;
};

/** Undefined if no treatment of the plan says how long certificates last. */
export function summariseRotations(plan: Plan, runs: readonly JudgedRun[]): Rotations | undefined {
  const declared = plan.treatments.some(({ parameters }) => "certificateSeconds" in parameters);
  if (!declared) return undefined;
  return {
    ...(plan.rotation !== undefined && { sloMilliseconds: plan.rotation.sloMilliseconds }),
    arms: plan.treatments.flatMap((treatment) => {
      const own = runs.filter(({ label }) => label === treatment.label);
      const used = own.filter(isMeasured);
      const rotations = used.flatMap(({ rotation }) => rotation ?? []);
      // Topologies without certificates are no part of this.
      const declares = "certificateSeconds" in treatment.parameters;
      if (!declares && own.every(({ rotation }) => rotation === undefined)) return [];
      const arm = armOf(plan, treatment, rotations, own);
      if (arm.placebo === undefined) return [arm];
      return [{ ...arm, badPerEvent: badPerEventOf(plan, treatment, arm.placebo, runs) }];
    }),
  };
}

function armOf(
  plan: Plan,
  treatment: Plan["treatments"][number],
  rotations: readonly RunRotation[],
  own: readonly JudgedRun[],
): RotationArm {
  const { label } = treatment;
  const baseline = baselineOf(plan, treatment);
  const missing = none(whyNone(own));
  const counted = own.filter(isCounted);
  const over = (read: (rotation: RunRotation) => Cell): Cell =>
    middle(rotations.map(read), missing);
  const renewals = rotations.flatMap(({ renewals: of }) => countsOf(of));
  return {
    label,
    ...(baseline === label ? {} : { placebo: baseline }),
    certificateSeconds: over(({ certificateSeconds }) => value(certificateSeconds, "count")),
    events: renewals.length === 0 ? missing : sumOf(renewals),
    figures: {
      renewals: middle(renewals, missing),
      opened: over(({ opened }) => opened),
      fullHandshakes: over(({ fullHandshakes }) => fullHandshakes),
      resumedHandshakes: over(({ resumedHandshakes }) => resumedHandshakes),
      worstSecond: over(({ worstSecond }) => worstSecond),
      // Also of runs that failed requests have made invalid.
      bad: middle(
        counted.flatMap(({ rotation }) => rotation?.bad ?? []),
        missing,
      ),
    },
  };
}

/**
 * Mean over blocks of (bad requests of the arm - those of its placebo) / renewals of the arm. Its
 * interval reaches over two: Student's over blocks, which sees that bad requests come together,
 * and that of the difference of two shares, which is not empty where none was bad.
 */
function badPerEventOf(
  plan: Plan,
  treatment: Treatment,
  placebo: string,
  runs: readonly JudgedRun[],
): BadPerEvent {
  if (plan.rotation === undefined) return none("the plan has no objective for them");
  const other = plan.treatments.find(({ label }) => label === placebo);
  if (other?.condition !== treatment.condition) {
    return none(`${placebo} does not start as it does: one of them is cold`);
  }
  const arms = [treatment.label, placebo].map((label) => runs.filter((r) => r.label === label));
  const [own = [], placebos = []] = arms.map((arm) => arm.filter(isCounted));
  if (placebos.length > 0 && placebos.every(({ rotation }) => rotation === undefined)) {
    return none(`${placebo} has no certificates`);
  }
  if (placebos.some((run) => eventsOf(run) > 0)) return none(`${placebo} renews certificates, too`);
  if (own.length > 0 && own.every((run) => eventsOf(run) === 0)) return none("nothing was renewed");
  const blocks = Array.from({ length: plan.blocks }, (_, index) => index + 1).flatMap((block) => {
    const here = (run: JudgedRun) => run.block === block;
    const counts = [countBad(own.filter(here)), countBad(placebos.filter(here))] as const;
    const [arm, baseline] = counts;
    if (arm === undefined || baseline === undefined || arm.events === 0) return [];
    return [
      {
        arm,
        baseline,
        perEvent: (arm.bad - (baseline.bad / baseline.runs) * arm.runs) / arm.events,
      },
    ];
  });
  return blocks.length < 2
    ? none("two blocks are needed in which it renews and both were measured")
    : perEventOver(blocks);
}

type BadBlock = { readonly arm: BadCount; readonly baseline: BadCount; readonly perEvent: number };

function perEventOver(blocks: readonly BadBlock[]): BadPerEvent {
  const { mean, low, high, n } = meanInterval(blocks.map(({ perEvent }) => perEvent));
  const total = (read: (block: BadBlock) => number) =>
    blocks.reduce((sum, block) => sum + read(block), 0);
  const planned = total(({ arm }) => arm.planned);
  const bad = total(({ arm }) => arm.bad);
  const badOthers = total(({ baseline }) => baseline.bad);
  const others = total(({ baseline }) => baseline.planned);
  const shares = proportionDifference(
    wilsonInterval(bad, planned),
    wilsonInterval(badOthers, others),
  );
  const requests = planned / total(({ arm }) => arm.events);
  return {
    kind: "estimate",
    mean,
    low: Math.min(low, shares.low * requests),
    high: Math.max(high, shares.high * requests),
    pairs: n,
  };
}

/** Gates that a rotation fails by what it does to requests, which is what is counted here. */
const ofRequests: ReadonlySet<string> = new Set(["sent", "goodput", "overflow", "proxy-errors"]);

type CountedRun = JudgedRun & { readonly latency: RunLatency };

/** Were runs left out that failed requests have made invalid, a breach could not be seen. */
function isCounted(run: JudgedRun): run is CountedRun {
  const isSound = run.gates.every(({ id, outcome }) => outcome !== "invalid" || ofRequests.has(id));
  return isSound && run.latency !== undefined;
}

const eventsOf = ({ rotation }: JudgedRun): number =>
  Object.values(rotation?.renewals ?? {}).reduce((sum, count) => sum + count, 0);

type BadCount = {
  readonly bad: number;
  readonly planned: number;
  readonly events: number;
  readonly runs: number;
};

/** Undefined without runs, or with one whose bad requests were not counted. */
function countBad(runs: readonly CountedRun[]): BadCount | undefined {
  let [bad, planned, events] = [0, 0, 0];
  for (const run of runs) {
    const found = run.rotation && numberOf(run.rotation.bad);
    if (found === undefined) return undefined;
    bad += found;
    planned += run.latency.planned;
    events += eventsOf(run);
  }
  return runs.length === 0 ? undefined : { bad, planned, events, runs: runs.length };
}

/** Of every proxy of a run; of one whose proxies count none, the reason. */
function countsOf(renewals: RunRotation["renewals"]): readonly Cell[] {
  const counts = Object.values(renewals).map((count) => value(count, "count"));
  return counts.length === 0 ? [notMeasured] : counts;
}
