/**
 * The settings under which a campaign measured, as named values: what must be equal before two
 * campaigns may be compared, and what else differs between them and has to be told.
 */
import { threadsOf } from "../contracts/cpu-list.ts";
import { baselineOf, loadOf, type Plan, type Treatment } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import type { Bundle } from "./bundle.ts";

export type Settings = ReadonlyMap<string, string>;

export type CampaignSettings = {
  /** Equal, or nothing is comparable. */
  readonly campaign: Settings;
  /** By label: equal, or that treatment is not comparable. */
  readonly treatments: ReadonlyMap<string, Settings>;
  /** May differ, as it does when someone else repeats a campaign; always told. */
  readonly told: Settings;
};

export type SettingDifference = {
  readonly key: string;
  /** `absent` where one of the two has no such setting. */
  readonly a: string;
  readonly b: string;
};

/** Settings of a bundle, from its plan, its manifest and what its runs recorded. */
export function settingsOf({ plan, manifest, runs, sums }: Bundle): CampaignSettings {
  const records = runs.flatMap(({ record }) =>
    record.schema === "ztbench/record/1" ? [record] : [],
  );
  const { testbed, programs } = manifest;
  const measured = programs.filter(({ articles }) => articles !== undefined);
  const campaign = flatten({
    versionSet: manifest.versionSet,
    "testbed.class": testbed.class,
    "testbed.scheduling": testbed.scheduling,
    versions: Object.fromEntries(measured.map(({ name, version }) => [name, version])),
    tuning: records[0]?.tuning ?? {},
  });
  const told = flatten({
    "testbed.name": testbed.name,
    // Its settings, as read back, are what must be equal.
    "testbed.tuningProfile": testbed.tuningProfile,
    "testbed.instance": testbed.instance,
    date: manifest.createdAt.slice(0, 10),
    commit: `${manifest.commit}${manifest.dirty ? " with local changes" : ""}`,
    plan: manifest.planSha256,
    seed: manifest.seed,
    blocks: plan.blocks,
    equivalenceMargin: plan.equivalenceMargin,
    builds: Object.fromEntries(programs.map(({ name, sha256 }) => [name, sha256.slice(0, 12)])),
    origins: Object.fromEntries(programs.map(({ name, provenance }) => [name, provenance])),
    facts: Object.fromEntries(
      Object.entries(manifest.facts).map(([host, facts]) => [host, machineOf(facts)]),
    ),
    files: sums.size,
  });
  const treatments = plan.treatments.map((treatment) => {
    const own = records.filter(({ label }) => label === treatment.label);
    return [treatment.label, treatmentSettings(plan, treatment, own)] as const;
  });
  return { campaign, treatments: new Map(treatments), told };
}

/** All keys whose values are not the same, in the order of `a`, then of `b`. */
export function settingDifferences(a: Settings, b: Settings): readonly SettingDifference[] {
  const keys = new Set([...a.keys(), ...b.keys()]);
  return [...keys]
    .map((key) => ({ key, a: a.get(key) ?? "absent", b: b.get(key) ?? "absent" }))
    .filter((found) => found.a !== found.b);
}

function treatmentSettings(
  plan: Plan,
  treatment: Treatment,
  records: readonly RunRecord[],
): Settings {
  const { topology, runtime, parameters, driver, arrival, condition, connectionLimit } = treatment;
  const baseline = plan.treatments.find(({ label }) => label === baselineOf(plan, treatment));
  return flatten({
    ...{ topology, runtime, parameters, driver, arrival, condition, connectionLimit },
    load: loadOf(plan, treatment),
    ...(baseline !== undefined && {
      baseline: {
        topology: baseline.topology,
        parameters: baseline.parameters,
        driver: baseline.driver,
        arrival: baseline.arrival,
        condition: baseline.condition,
        load: loadOf(plan, baseline),
      },
    }),
    ...(records[0] !== undefined && deployedSettings(records[0])),
  });
}

/** What plan and testbed made of a treatment: CPUs by unit, protocols and protection by leg. */
function deployedSettings({ deployment, generator }: RunRecord): object {
  const { units, legs, entry, parameters, scheduling } = deployment;
  return {
    deployed: {
      parameters,
      scheduling,
      "entry.http": entry.http,
      legs: legs.map(({ from, to, http, tls }) => `${from} to ${to}: HTTP/${http}, TLS ${tls}`),
      cpus: Object.fromEntries([
        ...units.map(({ name, cpus }) => [name, cpusOf(cpus)] as const),
        ["generator", cpusOf(generator.cpus)],
      ]),
    },
  };
}

/** How many there are; which ones depends on the machine. */
function cpusOf(list: string): number | string {
  return threadsOf(list) ?? "not reserved";
}

function machineOf(facts: Readonly<Record<string, string>>): object {
  const cpu = /^model name\s*:\s*(.+)$/m.exec(facts["cpu-first"] ?? "")?.[1];
  const kernel = /^Linux (\S+)/.exec(facts["kernel"] ?? "")?.[1];
  return { cpu: cpu ?? "not recorded", kernel: kernel ?? "not recorded" };
}

/** Nested values as `a.b`; what is undefined has no key, so that it differs from what is there. */
function flatten(value: object): Settings {
  const found = new Map<string, string>();
  const add = (path: string, inner: unknown): void => {
    if (inner === undefined) return;
    if (typeof inner !== "object" || inner === null) {
      found.set(path, typeof inner === "string" ? inner : JSON.stringify(inner));
      return;
    }
    const sorted = Object.entries(inner).sort(([x], [y]) => (x < y ? -1 : 1));
    for (const [key, leaf] of sorted) add(path === "" ? key : `${path}.${key}`, leaf);
  };
  add("", value);
  return found;
}
