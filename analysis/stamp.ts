/** What must stand beside every number: on what it was measured, with which versions, how often. */
import type { Manifest } from "../contracts/manifest.ts";
import { type Condition, loadOf, type Plan, type Publication } from "../contracts/plan.ts";
import type { Testbed } from "../contracts/testbed.ts";
import { publicationOf } from "./publication.ts";

export type Stamp = {
  readonly plan: string;
  readonly purpose: string;
  readonly testbed: string;
  readonly testbedClass: "lab" | "metal";
  /** What may be published of it at most. */
  readonly publishes: Publication;
  readonly banner?: string;
  readonly baseline: string;
  readonly versionSet: string;
  /** Versions really used, with the articles' where they differ. */
  readonly versions: readonly string[];
  /** Programs of our own that ran in place of upstream's, which was not exercised. */
  readonly standIns: readonly string[];
  readonly drivers: readonly string[];
  readonly arrivals: readonly string[];
  readonly scheduling: "rr" | "other";
  /** How the hosts were tuned; absent where an old bundle does not tell. */
  readonly tuningProfile?: Testbed["tuningProfile"];
  readonly blocks: number;
  /** Of treatments without a rate of their own. */
  readonly rateQps: number;
  /** All rates, ascending, where treatments differ in it. */
  readonly ratesQps?: readonly number[];
  readonly conditions: readonly Condition[];
  /** Of steady runs; cold starts have neither. */
  readonly prewarm: { readonly rateQps: number; readonly seconds: number };
  readonly warmupSeconds: number;
  readonly durationSeconds: number;
  readonly connections: number;
  readonly seed: number;
  readonly equivalenceMargin: number;
  readonly date: string;
  readonly commit: string;
  readonly dirty: boolean;
  readonly planSha256: string;
  readonly warnings: readonly string[];
};

/**
 * Everything of plan and manifest that a table carries.
 *
 * @param granted scheduling classes that the runs really had
 */
export function stampOf(
  plan: Plan,
  manifest: Manifest,
  granted: ReadonlySet<"rr" | "other">,
): Stamp {
  const { testbed } = manifest;
  const { level, banner } = publicationOf(plan, manifest);
  const { stopped } = manifest;
  const isRefused = testbed.scheduling === "rr" && granted.has("other");
  const rates = [...new Set(plan.treatments.map((t) => loadOf(plan, t).rateQps))];
  return {
    plan: plan.name,
    purpose: plan.purpose,
    testbed: testbed.name,
    testbedClass: testbed.class,
    publishes: level,
    ...(banner !== undefined && { banner }),
    baseline: plan.baseline,
    versionSet: manifest.versionSet,
    versions: manifest.programs.flatMap(describe),
    standIns: manifest.programs
      .filter(({ provenance }) => provenance.startsWith("stand-in"))
      .map(({ name }) => name),
    drivers: [...new Set(plan.treatments.map(({ driver }) => driver))],
    arrivals: [...new Set(plan.treatments.map(({ arrival }) => arrival))],
    scheduling: isRefused ? "other" : testbed.scheduling,
    ...(testbed.tuningProfile !== undefined && { tuningProfile: testbed.tuningProfile }),
    blocks: plan.blocks,
    rateQps: plan.load.rateQps,
    ...(rates.length > 1 && { ratesQps: rates.sort((a, b) => a - b) }),
    conditions: [...new Set(plan.treatments.map(({ condition }) => condition))],
    prewarm: plan.load.prewarm,
    warmupSeconds: plan.load.warmupSeconds,
    durationSeconds: plan.load.durationSeconds,
    connections: plan.load.connections,
    seed: plan.seed,
    equivalenceMargin: plan.equivalenceMargin,
    date: manifest.createdAt.slice(0, 10),
    commit: manifest.commit,
    dirty: manifest.dirty,
    planSha256: manifest.planSha256,
    warnings: [
      ...manifest.warnings,
      ...(stopped === undefined
        ? []
        : [`stopped by the plan's rule after block ${stopped.afterBlock}: ${stopped.because}`]),
      ...(isRefused ? ["SCHED_RR was asked for and refused: tails hold scheduling delay"] : []),
    ],
  };
}

/** Only programs that are measured or measure; the others change no number. */
function describe({ name, version, articles }: Manifest["programs"][number]): string[] {
  if (articles === undefined) return [];
  const day = /^0\.0\.0-(\d{4})(\d{2})(\d{2})\d{6}-/.exec(version);
  const spelt = day === null ? version : `build of ${day.slice(1).join("-")}`;
  const shown = `${name === "envoy" ? "Envoy" : name} ${spelt}`;
  return [version === articles ? shown : `${shown} (articles: ${articles})`];
}

/** What goes before the measured part, for people. */
export function describeWarming({ conditions, prewarm, warmupSeconds }: Stamp): string {
  const cold = "cold starts from the first request";
  const warm =
    (prewarm.seconds === 0 ? "" : `${prewarm.seconds} s at ${prewarm.rateQps}/s and `) +
    `${warmupSeconds} s warm-up`;
  if (!conditions.includes("steady")) return cold;
  return conditions.includes("cold-start") ? `after ${warm}, ${cold}` : `after ${warm}`;
}
