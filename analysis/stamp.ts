/** What must stand beside every number: on what it was measured, with which versions, how often. */
import type { Manifest } from "../contracts/manifest.ts";
import { type Condition, loadOf, type Plan } from "../contracts/plan.ts";

/** Programs that are measured or measure, with the version the articles used. */
const articleVersions: Readonly<Record<string, string>> = {
  envoy: "1.28.0",
  istio: "1.20.2",
  "istio-proxy": "1.28.1-dev",
  k3s: "v1.28.5+k3s1",
  vegeta: "12.11.0",
};

export type Stamp = {
  readonly plan: string;
  readonly purpose: string;
  readonly testbed: string;
  readonly testbedClass: "lab" | "metal";
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

/** Everything of plan and manifest that a table carries. */
export function stampOf(plan: Plan, manifest: Manifest): Stamp {
  const { testbed } = manifest;
  const rates = [...new Set(plan.treatments.map((t) => loadOf(plan, t).rateQps))];
  return {
    plan: plan.name,
    purpose: plan.purpose,
    testbed: testbed.name,
    testbedClass: testbed.class,
    ...(testbed.class === "lab" && { banner: "lab: not comparable to bare metal" }),
    baseline: plan.baseline,
    versionSet: manifest.versionSet,
    versions: manifest.programs.filter(({ name }) => name in articleVersions).map(describe),
    standIns: manifest.programs
      .filter(({ provenance }) => provenance.startsWith("stand-in"))
      .map(({ name }) => name),
    drivers: [...new Set(plan.treatments.map(({ driver }) => driver))],
    arrivals: [...new Set(plan.treatments.map(({ arrival }) => arrival))],
    scheduling: testbed.scheduling,
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
    warnings: manifest.warnings,
  };
}

function describe({ name, version }: Manifest["programs"][number]): string {
  const article = articleVersions[name] ?? version;
  const shown = name === "envoy" ? "Envoy" : name;
  return version === article ? `${shown} ${version}` : `${shown} ${version} (articles: ${article})`;
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
