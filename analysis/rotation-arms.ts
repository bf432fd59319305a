/**
 * Renewals of certificates by treatment over its valid runs, each beside the treatment that it is
 * compared with: the placebo, whose certificates outlast its runs.
 */
import { baselineOf, type Plan } from "../contracts/plan.ts";
import { isMeasured } from "./blocks.ts";
import { type Cell, none, notMeasured, sumOf, value } from "./cell.ts";
import { middle, whyNone } from "./comparison.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { RunRotation } from "./rotation.ts";

/** Median over valid runs with least and greatest; of renewals, over proxies and valid runs. */
export type RotationFigures = Readonly<
  Record<"renewals" | "opened" | "fullHandshakes" | "resumedHandshakes" | "worstSecond", Cell>
>;

export type RotationArm = {
  readonly label: string;
  /** What it is compared with; absent of what others are compared with. */
  readonly placebo?: string;
  readonly certificateSeconds: Cell;
  /** Certificates of all proxies in all valid runs together. */
  readonly events: Cell;
  readonly figures: RotationFigures;
};

export type Rotations = { readonly arms: readonly RotationArm[] };

/** Undefined if no treatment of the plan says how long certificates last. */
export function summariseRotations(plan: Plan, runs: readonly JudgedRun[]): Rotations | undefined {
  const declared = plan.treatments.some(({ parameters }) => "certificateSeconds" in parameters);
  if (!declared) return undefined;
  return {
    arms: plan.treatments.flatMap((treatment) => {
      const own = runs.filter(({ label }) => label === treatment.label);
      const used = own.filter(isMeasured);
      const rotations = used.flatMap(({ rotation }) => rotation ?? []);
      // Topologies without certificates are no part of this.
      const declares = "certificateSeconds" in treatment.parameters;
      if (!declares && own.every(({ rotation }) => rotation === undefined)) return [];
      return [armOf(plan, treatment, rotations, whyNone(own))];
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
    },
  };
}

/** Of every proxy of a run; of one whose proxies count none, the reason. */
function countsOf(renewals: RunRotation["renewals"]): readonly Cell[] {
  const counts = Object.values(renewals).map((count) => value(count, "count"));
  return counts.length === 0 ? [notMeasured] : counts;
}
