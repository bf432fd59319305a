/** All that is computed from a bundle; the renderers show it, nothing else may. */
import type { Attribution } from "./attribution.ts";
import type { Capacities } from "./capacity.ts";
import type { ColdStarts } from "./cold-start.ts";
import type { Comparison } from "./comparison.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { TreatmentCurves } from "./curve.ts";
import type { CampaignGateResult } from "./gates/campaign-gates.ts";
import type { Rotations } from "./rotation-arms.ts";
import type { Stamp } from "./stamp.ts";

export type Analysis = {
  readonly schema: "ztbench/analysis/1";
  readonly stamp: Stamp;
  readonly softirq: string;
  /** All runs in order of execution, invalid ones too. */
  readonly runs: readonly JudgedRun[];
  /** Planned runs that the bundle does not hold. */
  readonly notRun: readonly string[];
  readonly comparison: Comparison;
  /** Gates of the campaign as a whole. */
  readonly campaignGates: readonly CampaignGateResult[];
  /** Highest rates under the plan's objective, where the plan searches them. */
  readonly capacities?: Capacities;
  /** What each layer costs, where the plan has a ladder. */
  readonly attribution?: Attribution;
  /** Cold starts by treatment, where the plan has any. */
  readonly coldStarts?: ColdStarts;
  /** Renewals of certificates by treatment, where the plan says how long they last. */
  readonly rotations?: Rotations;
  /** Distribution of each treatment over its valid runs, in the order of the plan. */
  readonly curves: readonly TreatmentCurves[];
};
