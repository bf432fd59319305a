/** What a campaign tells while it runs, as data; whoever listens decides how it looks. */
import type { LoadSettings, Plan } from "../contracts/plan.ts";
import type { PlannedRun } from "./order.ts";

export const phases = [
  "deploy",
  "probe before",
  "start",
  "warm-up",
  "load",
  "collect",
  "probe after",
  "clear",
  "destroy",
] as const;
export type Phase = (typeof phases)[number];

export type CampaignEvent =
  /** Once, before the first run. */
  | { readonly kind: "estimate"; readonly runs: number; readonly seconds: number }
  | {
      readonly kind: "run";
      readonly run: PlannedRun;
      /** Runs of the campaign as far as known: repeats of failed runs add to it. */
      readonly of: number;
      readonly secondsLeft: number;
    }
  | { readonly kind: "phase"; readonly run: PlannedRun; readonly phase: Phase }
  | {
      readonly kind: "finished";
      readonly run: PlannedRun;
      readonly failure: string | undefined;
      /** Whole run, deploy and destroy included. */
      readonly seconds: number;
      readonly secondsLeft: number;
    }
  /** Something a reader of the result must know, or that was put in order on the hosts. */
  | { readonly kind: "notice"; readonly text: string };

export type CampaignProgress = (event: CampaignEvent) => void;

/** Taken for all but pre-warming, warm-up and load until a run has shown what it takes. */
const assumedOverheadSeconds = 10;

/** Seconds that one run takes by the plan alone. */
export function plannedRunSeconds(load: LoadSettings): number {
  return load.prewarm.seconds + load.warmupSeconds + load.durationSeconds + assumedOverheadSeconds;
}

/** Learns from finished runs how long the next ones take. */
export class Estimate {
  readonly #planned: number;
  #total = 0;
  #count = 0;

  constructor(plan: Plan) {
    this.#planned = plannedRunSeconds(plan.load);
  }

  /** @param seconds of a run that did not break off: the others say little about the next */
  learn(seconds: number): void {
    this.#total += seconds;
    this.#count += 1;
  }

  /** Seconds for a number of runs to come. */
  secondsFor(runs: number): number {
    return runs * (this.#count === 0 ? this.#planned : this.#total / this.#count);
  }
}
