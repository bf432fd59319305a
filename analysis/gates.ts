/**
 * Judges runs before any number of theirs is used: each gate compares a measured value with a
 * declared threshold. An invalid run is shown with its reason and never averaged.
 */
import { loadOf, type Plan } from "../contracts/plan.ts";
import type { RunDocument, RunRecord } from "../contracts/record.ts";
import { type Cell, numberOf } from "./cell.ts";
import type { LoadConnections } from "./connections.ts";
import type { RunLatency } from "./latency.ts";
import type { RunResources } from "./resources.ts";
import { type LegFacts, wireProblems } from "./wire.ts";

export type RunVerdict = "VALID" | "WARN" | "INVALID";

export type GateResult = {
  readonly id: GateId;
  /** `unavailable`: its source does not exist here; it does not pass, it says nothing. */
  readonly outcome: "pass" | "warn" | "invalid" | "unavailable";
  readonly measured: string;
  readonly threshold: string;
};

/** What the runs of a campaign must share, from its first run (of the treatment, for digests). */
export type Reference = {
  readonly tuning: RunRecord["tuning"];
  readonly configurationDigest: string;
};

export type GateInput = {
  readonly record: RunRecord;
  readonly plan: Plan;
  readonly latency: RunLatency;
  readonly resources: RunResources;
  readonly connections: LoadConnections;
  readonly reference: Reference;
  readonly wire: readonly LegFacts[];
};

type Severity = "warn" | "invalid";
type Class = RunRecord["deployment"]["testbedClass"];

/** Thresholds by testbed class; a lab shares its CPUs, so what it cannot hold only warns. */
export const thresholds = {
  sentShareMin: 0.995,
  okShareMin: 0.999,
  lagP99Ns: {
    lab: { "vegeta-paced": 250_000, vegeta: 1_200_000 },
    metal: { "vegeta-paced": 100_000, vegeta: 1_200_000 },
  },
  /** On metal a lag may also be this share of the response p99. */
  lagShareOfResponse: 0.1,
  lagSeverity: { lab: "warn", metal: "invalid" },
  earlyNs: 1_000_000,
  generatorShareMax: 0.7,
  generatorSeverity: { lab: "warn", metal: "invalid" },
} as const;

const gates = {
  completed: ({ record }) =>
    check(record.failure === undefined, record.failure ?? "to its end", "to its end"),
  plan: ({ record, plan }) => {
    const planned = plan.treatments.find(({ label }) => label === record.label);
    const load = planned === undefined ? plan.load : loadOf(plan, planned);
    const differing = [
      ...differences(planned ?? {}, record.treatment, "treatment"),
      ...differences(load, record.load, "load"),
      ...(record.loadPlan.rateQps === load.rateQps ? [] : ["loadPlan.rateQps"]),
      ...(record.loadPlan.driver === planned?.driver ? [] : ["loadPlan.driver"]),
      ...(record.loadPlan.arrival === planned?.arrival ? [] : ["loadPlan.arrival"]),
    ];
    return check(differing.length === 0, differing.join(", ") || "as planned", "as planned");
  },
  sent: ({ latency }) => atLeast(latency.sent, latency.planned, thresholds.sentShareMin),
  goodput: ({ latency }) => atLeast(latency.ok, latency.sent, thresholds.okShareMin),
  rows: ({ latency }) => {
    const expected = latency.seqMax + 1;
    return check(latency.sent === expected, `${latency.sent} rows`, `${expected} rows, one each`);
  },
  overflow: ({ latency }) => check(latency.overflow === 0, String(latency.overflow), "0"),
  lag: ({ record, latency }) => judgeLag(record, latency),
  clock: ({ latency }) =>
    check(
      latency.lagMinNs >= -thresholds.earlyNs,
      `${milliseconds(latency.lagMinNs)} at least`,
      `no request more than ${milliseconds(thresholds.earlyNs)} early`,
    ),
  probes: ({ record }) => {
    const { before, after } = record.probes;
    const expected = record.deployment.probes.map(({ id }) => id);
    // Before a cold start only those are asked that show the path.
    const asked = record.deployment.probes
      .filter(({ kind }) => kind === "positive" || !isCold(record))
      .map(({ id }) => id);
    const failed = [
      ...failedProbes(asked, before.results).map((id) => `${id} before`),
      ...failedProbes(expected, after.results).map((id) => `${id} after`),
    ];
    const total = `${asked.length} before, ${expected.length} after`;
    return check(failed.length === 0, failed.join(", ") || total, "all pass, before and after");
  },
  wire: ({ wire }) => {
    const limit = "every leg as the topology says";
    if (wire.length === 0) {
      return unavailable({ kind: "none", reason: "nothing has seen the legs" }, limit);
    }
    const problems = wireProblems(wire);
    return check(problems.length === 0, problems.join("; ") || "as it says", limit);
  },
  connections: ({ record, connections }) => judgeConnections(record, connections),
  tuning: ({ record, reference }) => {
    const changed = Object.keys({ ...reference.tuning, ...record.tuning }).flatMap((host) =>
      differences(reference.tuning[host] ?? {}, record.tuning[host] ?? {}, host),
    );
    return check(changed.length === 0, changed.join(", ") || "as at first", "as at first");
  },
  generator: ({ record, resources }) => {
    const limit = `< ${percent(thresholds.generatorShareMax)} of CPUs ${record.generator.cpus}`;
    const share = numberOf(resources.generatorShare);
    if (share === undefined) return unavailable(resources.generatorShare, limit);
    const severity = thresholds.generatorSeverity[classOf(record)];
    return check(share < thresholds.generatorShareMax, percent(share), limit, severity);
  },
  restarts: ({ resources }) => {
    const deployed = resources.units.filter(({ kind }) => kind !== "generator");
    const restarted = deployed.filter(({ restarts }) => (numberOf(restarts) ?? 0) > 0);
    const unknown = deployed.find(({ restarts }) => restarts.kind === "none");
    const limit = "no unit changes its process";
    if (restarted.length === 0 && unknown !== undefined) {
      return unavailable(unknown.restarts, limit);
    }
    return check(
      restarted.length === 0,
      restarted.map(({ unit }) => unit).join(", ") || "none did",
      limit,
    );
  },
  digest: ({ record, reference }) =>
    check(
      record.deployment.configurationDigest === reference.configurationDigest,
      record.deployment.configurationDigest.slice(0, 12),
      `${reference.configurationDigest.slice(0, 12)}, as at first`,
    ),
} as const satisfies Record<string, (input: GateInput) => Omit<GateResult, "id">>;

export type GateId = keyof typeof gates;
export const gateIds = Object.keys(gates) as readonly GateId[];

/**
 * What a cold start does to requests is its result: were it to make starts invalid, those that
 * storm would be missing from the count of storms.
 */
const resultsOfColdStart: readonly GateId[] = ["sent", "goodput", "overflow", "lag", "generator"];

/** Applies every gate to a run, in a fixed order. */
export function judgeRun(input: GateInput): readonly GateResult[] {
  return gateIds.map((id) => {
    const result = { id, ...gates[id](input) };
    const spared = isCold(input.record) && resultsOfColdStart.includes(id);
    return spared && result.outcome === "invalid" ? { ...result, outcome: "warn" } : result;
  });
}

/** The one gate that a run without measurement fails. */
export function judgeBrokenRun(record: RunDocument): readonly GateResult[] {
  return [{ id: "completed", ...check(false, record.failure ?? "no rows", "to its end") }];
}

/** The worst outcome decides. */
export function verdictOf(results: readonly GateResult[]): RunVerdict {
  if (results.some(({ outcome }) => outcome === "invalid")) return "INVALID";
  return results.some(({ outcome }) => outcome === "warn") ? "WARN" : "VALID";
}

/** One line for people: what was measured and what was wanted. */
export function describeGate({ id, measured, threshold }: GateResult): string {
  return `${id}: ${measured}, wanted ${threshold}`;
}

function check(
  passed: boolean,
  measured: string,
  threshold: string,
  severity: Severity = "invalid",
): Omit<GateResult, "id"> {
  return { outcome: passed ? "pass" : severity, measured, threshold };
}

function unavailable(cell: Cell, threshold: string): Omit<GateResult, "id"> {
  const reason = cell.kind === "none" ? cell.reason : "not measured";
  return { outcome: "unavailable", measured: `not available here: ${reason}`, threshold };
}

function atLeast(part: number, whole: number, least: number): Omit<GateResult, "id"> {
  const share = whole === 0 ? 0 : part / whole;
  const measured = `${part} of ${whole} (${percent(share)})`;
  return check(share >= least, measured, `>= ${percent(least)}`);
}

function judgeLag(record: RunRecord, latency: RunLatency): Omit<GateResult, "id"> {
  const testbedClass = classOf(record);
  const { driver } = record.loadPlan;
  const declaredNs = thresholds.lagP99Ns[testbedClass][driver];
  const responseNs = numberOf(latency.response.quantiles.p99) ?? 0;
  const shareNs = testbedClass === "metal" ? thresholds.lagShareOfResponse * responseNs : 0;
  const limitNs = Math.max(declaredNs, shareNs);
  const limit = `p99 <= ${milliseconds(limitNs)} with ${driver}`;
  const lagNs = numberOf(latency.lag.quantiles.p99);
  if (lagNs === undefined) return unavailable(latency.lag.quantiles.p99, limit);
  const severity = thresholds.lagSeverity[testbedClass];
  return check(lagNs <= limitNs, `p99 ${milliseconds(lagNs)}`, limit, severity);
}

/**
 * Before a steady run the driver's connections stand, over HTTP/2 exactly as many as declared if
 * the driver is ours (the command line has one); before a cold start there is none.
 */
function judgeConnections(
  { treatment, load, deployment }: RunRecord,
  { established, opened }: LoadConnections,
): Omit<GateResult, "id"> {
  const exact = deployment.entry.http === "2" && treatment.driver === "vegeta-paced";
  const [least, most] =
    treatment.condition === "cold-start"
      ? [0, 0]
      : [exact ? load.connections : 1, load.connections];
  const limit = least === most ? `${most} established` : `${least} to ${most} established`;
  const count = numberOf(established);
  if (count === undefined) return unavailable(established, limit);
  const meanwhile = numberOf(opened);
  const more = meanwhile === undefined ? "" : `, ${meanwhile} opened by its host while measured`;
  return check(count >= least && count <= most, `${count} established${more}`, limit);
}

function isCold({ treatment }: RunRecord): boolean {
  return treatment.condition === "cold-start";
}

function classOf(record: RunRecord): Class {
  return record.deployment.testbedClass;
}

type ProbeOutcome = RunRecord["probes"]["before"]["results"][number];

/** Probes that failed or were not asked at all. */
function failedProbes(expected: readonly string[], results: readonly ProbeOutcome[]): string[] {
  const passed = new Set(results.filter((r) => r.passed).map(({ id }) => id));
  const failed = results.filter((r) => !r.passed).map(({ id }) => id);
  return [...new Set([...expected.filter((id) => !passed.has(id)), ...failed])];
}

/** Keys whose values differ, as `where.key`. */
function differences(wanted: object, found: object, where: string): string[] {
  const [a, b] = [wanted, found] as [Record<string, unknown>, Record<string, unknown>];
  return Object.keys({ ...a, ...b })
    .filter((key) => canonical(a[key]) !== canonical(b[key]))
    .map((key) => `${where}.${key}`);
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null)
    return value === undefined ? "absent" : JSON.stringify(value);
  const entries = Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${key}:${canonical(inner)}`).join(",")}}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.99 && share < 1 ? 2 : 1)} %`;
}

function milliseconds(ns: number): string {
  return `${(ns / 1e6).toFixed(3)} ms`;
}
