/**
 * Renewals of certificates by treatment over its valid runs, each beside the treatment that it is
 * compared with: the placebo, whose certificates outlast its runs.
 */
import { baselineOf, type Plan } from "../contracts/plan.ts";
import { isMeasured } from "./blocks.ts";
import { type Cell, none, notMeasured, numberOf, sumOf, value } from "./cell.ts";
import { middle, whyNone } from "./comparison.ts";
import type { JudgedRun } from "./judged-run.ts";
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
      const arm = armOf(plan, treatment, rotations, whyNone(own));
      if (arm.placebo === undefined) return [arm];
      return [{ ...arm, badPerEvent: badPerEventOf(plan, treatment.label, arm.placebo, runs) }];
    }),
  };
}

function armOf(
  plan: Plan,
  treatment: Plan["treatments"][number],
  rotations: readonly RunRotation[],
  reason: string,
): RotationArm {
  const { label } = treatment;
  const baseline = baselineOf(plan, treatment);
  const missing = none(reason);
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
      bad: over(({ bad }) => bad),
    },
  };
}

/**
 * Mean over blocks of (bad requests of the arm - those of its placebo) / renewals of the arm. Its
 * interval is the wider of two: Student's over blocks, which sees that bad requests come together,
 * and that of the difference of two shares, which is not empty where none was bad.
 */
function badPerEventOf(
  plan: Plan,
  label: string,
  placebo: string,
  runs: readonly JudgedRun[],
): BadPerEvent {
  if (plan.rotation === undefined) return none("the plan has no objective for them");
  const blocks = Array.from({ length: plan.blocks }, (_, index) => index + 1).flatMap((block) => {
    const own = runs.filter((run) => run.block === block);
    const [arm, other] = [countBad(own, label), countBad(own, placebo)];
    if (arm === undefined || other === undefined || arm.events === 0) return [];
    return [{ arm, other, perEvent: (arm.bad - other.bad / other.runs) / arm.events }];
  });
  if (blocks.length < 2) return none("two blocks in which both are valid and renew are needed");
  const { mean, low, high, n } = meanInterval(blocks.map(({ perEvent }) => perEvent));
  const total = (read: (block: (typeof blocks)[number]) => number) =>
    blocks.reduce((sum, block) => sum + read(block), 0);
  const planned = total(({ arm }) => arm.planned);
  const shares = proportionDifference(
    wilsonInterval(
      total(({ arm }) => arm.bad),
      planned,
    ),
    wilsonInterval(
      total(({ other }) => other.bad),
      total(({ other }) => other.planned),
    ),
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

type BadCount = {
  readonly bad: number;
  readonly planned: number;
  readonly events: number;
  readonly runs: number;
};

/** Over the valid runs of a treatment; undefined if it has none, or one that is not counted. */
function countBad(runs: readonly JudgedRun[], label: string): BadCount | undefined {
  const own = runs.filter((run) => run.label === label).filter(isMeasured);
  let [bad, planned, events] = [0, 0, 0];
  for (const { rotation, latency } of own) {
    const found = rotation && numberOf(rotation.bad);
    if (rotation === undefined || found === undefined) return undefined;
    bad += found;
    planned += latency.planned;
    events += Object.values(rotation.renewals).reduce((sum, count) => sum + count, 0);
  }
  return own.length === 0 ? undefined : { bad, planned, events, runs: own.length };
}

/** Of every proxy of a run; of one whose proxies count none, the reason. */
function countsOf(renewals: RunRotation["renewals"]): readonly Cell[] {
  const counts = Object.values(renewals).map((count) => value(count, "count"));
  return counts.length === 0 ? [notMeasured] : counts;
}
