/**
 * What happens when full load meets fresh processes: connections opened, handshakes, requests that
 * took too long, and how long it took; over many starts, how often that was a storm. Cold starts
 * are told here only; nothing steady is made of them.
 */
import { type ColdStartSettings, coldStartOf, loadOf, type Plan } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import { type Cell, none, numberOf, value } from "./cell.ts";
import { describeGate, type GateResult, type RunVerdict } from "./gates/gate.ts";
import type { RunLatency } from "./latency.ts";
import {
  activeOpens,
  type CountName,
  greatestGrowth,
  proxyTimelines,
  type ProxyTimelines,
  valueAt,
} from "./proxy-counters.ts";
import type { HostSamples } from "./resources.ts";
import { fieldOf, type Point, pointsOf, samplesOfUnit } from "./samples.ts";
import { quantileOf, recoveryOf } from "./second-latency.ts";
import { type Proportion, wilsonInterval } from "./statistics.ts";

/** One second of a start, counted from the first request. */
export type ColdSecond = {
  readonly second: number;
  /** Within this second, on the leg that has most. */
  readonly opened: Cell;
  readonly handshakes: Cell;
  /** At its end. */
  readonly active: Cell;
  readonly cores: Readonly<Record<"proxy" | "service" | "generator", Cell>>;
  /** Of the requests that were due in it. */
  readonly p50: Cell;
  readonly p99: Cell;
};

export type ColdStart = {
  /** Ever opened before the first request: readiness and the probe came along the same path. */
  readonly before: Readonly<Record<"opened" | "handshakes", Cell>>;
  /** From the first request on, on the leg that has most. */
  readonly opened: Cell;
  readonly handshakes: Cell;
  /** Those of the handshakes that resumed a session. */
  readonly resumed: Cell;
  /** Requests above the SLO, failed and unsent ones among them. */
  readonly overSlo: Cell;
  /** Until the median is back within twice its last value, to a second. */
  readonly recovery: Cell;
  /** Absent where connections were not counted. */
  readonly storm?: boolean;
  readonly seconds: readonly ColdSecond[];
  /** CPU time of the sampler that watched, as share of one CPU on the host that gave most. */
  readonly observer: Cell;
};

export type ColdTreatment = {
  readonly label: string;
  readonly topology: string;
  readonly connectionLimit: "bounded" | "driver-default";
  readonly declaredConnections: number;
  readonly rateQps: number;
  readonly starts: readonly { readonly name: string; readonly start: ColdStart }[];
  /** Starts that say nothing about storms, with the reason. */
  readonly notCounted: readonly { readonly name: string; readonly reason: string }[];
  /** Storms among the starts, with 95 % interval; absent without a start. */
  readonly storms?: Proportion;
};

export type ColdStarts = {
  readonly settings: ColdStartSettings;
  readonly treatments: readonly ColdTreatment[];
};

export type ColdStartInput = {
  readonly record: RunRecord;
  readonly latency: Pick<RunLatency, "planned">;
  readonly samples: HostSamples;
  /** Sorted responses of each second, as `SecondLatency` collects them. */
  readonly seconds: readonly (readonly number[])[];
  readonly settings: ColdStartSettings;
};

/** Describes one start; times count from when its first request was due. */
export function describeStart(input: ColdStartInput): ColdStart {
  const { record, latency, samples, settings, seconds } = input;
  const count = counterOf(record, samples);
  const sloNs = settings.sloMilliseconds * 1e6;
  const within = seconds.flat().filter((ns) => ns <= sloNs).length;
  const medians = seconds.map((second) => quantileOf(second, 0.5, "p50"));
  const opened = count("opened", 0, Number.POSITIVE_INFINITY);
  const openedNumber = numberOf(opened);
  return {
    before: {
      opened: count("opened", undefined, 0),
      handshakes: count("handshakes", undefined, 0),
    },
    opened,
    handshakes: count("handshakes", 0, Number.POSITIVE_INFINITY),
    resumed: count("resumed", 0, Number.POSITIVE_INFINITY),
    overSlo: value(latency.planned - within, "count"),
    recovery: recoveryOf(medians, sloNs),
    ...(openedNumber !== undefined && {
      storm: openedNumber > settings.stormFactor * record.load.connections,
    }),
    seconds: seconds.map((second, index) => {
      const [fromNs, toNs] = [index * 1e9, (index + 1) * 1e9];
      return {
        second: index,
        opened: count("opened", fromNs, toNs),
        handshakes: count("handshakes", fromNs, toNs),
        active: count("active", undefined, toNs),
        cores: coresOf(record, samples, fromNs, toNs),
        p50: quantileOf(second, 0.5, "p50"),
        p99: quantileOf(second, 0.99, "p99"),
      };
    }),
    observer: observerOf(samples),
  };
}

/** Growth of a count between two moments; without `fromNs`, what it had come to. */
type Counter = (name: CountName, fromNs: number | undefined, toNs: number) => Cell;

/** Proxies tell connections and handshakes; where there is none, the sending host's kernel does. */
function counterOf(record: RunRecord, samples: HostSamples): Counter {
  const timelines = proxyTimelines(samples.values());
  if (timelines.size > 0) return proxyCounter(timelines);
  const own = samples.get(record.deployment.entry.host) ?? [];
  const points = pointsOf(own, "/proc/net/snmp", activeOpens);
  const last = (ns: number) => points.findLast(({ atNs }) => atNs <= ns)?.value;
  return (name, fromNs, toNs) => {
    if (name !== "opened") return none("no proxy counts it");
    if (fromNs === undefined) return none("the kernel does not say where they led");
    return growth(last(fromNs), last(toNs));
  };
}

function proxyCounter(timelines: ProxyTimelines): Counter {
  return (name, fromNs, toNs) => {
    const most = greatestGrowth(timelines, name, fromNs, toNs);
    return most === undefined ? none("not sampled") : value(most, "count");
  };
}

function growth(before: number | undefined, after: number | undefined): Cell {
  if (before === undefined || after === undefined) return none("not sampled");
  return after < before ? none("counter started anew") : value(after - before, "count");
}

function coresOf(
  record: RunRecord,
  samples: HostSamples,
  fromNs: number,
  toNs: number,
): ColdSecond["cores"] {
  const coresOfUnits = (units: readonly { name: string; host: string }[]): Cell => {
    if (units.length === 0) return none("there is none");
    let total = 0;
    for (const { name, host } of units) {
      const points = usagePoints(samples, name, host);
      const [before, after] = [valueAt(points, fromNs), valueAt(points, toNs)];
      if (before === undefined || after === undefined) return none("not sampled");
      total += (after - before) / ((toNs - fromNs) / 1000);
    }
    return value(total, "cores");
  };
  const deployed = record.deployment.units.filter(({ dataPlane }) => dataPlane);
  const { unit, host } = record.generator;
  return {
    proxy: coresOfUnits(deployed.filter(({ kind }) => kind === "proxy")),
    service: coresOfUnits(deployed.filter(({ kind }) => kind === "service")),
    generator: coresOfUnits([{ name: unit, host }]),
  };
}

/** A unit that is started during the samples has used nothing before it was there. */
function usagePoints(samples: HostSamples, unit: string, host: string): readonly Point[] {
  const own = samplesOfUnit(samples.get(host) ?? [], unit);
  const points = pointsOf(own, "cpu.stat", (text) => fieldOf(text, "usage_usec"));
  const [first] = points;
  const absent = own.filter(
    ({ source, atNs }) => source.endsWith(" absent") && atNs < (first?.atNs ?? 0),
  );
  return [...absent.map(({ atNs }) => ({ atNs, value: 0 })), ...points];
}

/** The sampler tells at its end what it took. */
function observerOf(samples: HostSamples): Cell {
  const shares = [...samples.values()].flatMap((host) => {
    const cost = host.find(({ source }) => source === "sampler cost");
    const [first, last] = [host[0], host.at(-1)];
    const usec = cost === undefined ? undefined : fieldOf(cost.content, "cpu_usec");
    if (usec === undefined || first === undefined || last === undefined) return [];
    return last.atNs > first.atNs ? [(usec * 1000) / (last.atNs - first.atNs)] : [];
  });
  return shares.length === 0
    ? none("the sampler did not say")
    : value(Math.max(...shares), "share");
}

/** A judged run as far as starts are concerned; a steady one has none. */
export type StartedRun = {
  readonly name: string;
  readonly label: string;
  readonly verdict: RunVerdict;
  readonly gates: readonly GateResult[];
  readonly coldStart?: ColdStart;
};

/** Puts the starts of each treatment together; undefined if the plan has no cold start. */
export function summariseStarts(plan: Plan, runs: readonly StartedRun[]): ColdStarts | undefined {
  const cold = plan.treatments.filter(({ condition }) => condition === "cold-start");
  if (cold.length === 0) return undefined;
  return {
    settings: coldStartOf(plan),
    treatments: cold.map((treatment) => {
      const own = runs.filter(({ label }) => label === treatment.label);
      const starts = own.flatMap((run) => {
        const { name, coldStart: start } = run;
        return start === undefined || whyNotCounted(run) !== undefined ? [] : [{ name, start }];
      });
      const notCounted = own.flatMap((run) => {
        const reason = whyNotCounted(run);
        return reason === undefined ? [] : [{ name: run.name, reason }];
      });
      const storms = starts.filter(({ start }) => start.storm === true).length;
      return {
        label: treatment.label,
        topology: treatment.topology,
        connectionLimit: treatment.connectionLimit,
        declaredConnections: plan.load.connections,
        rateQps: loadOf(plan, treatment).rateQps,
        starts,
        notCounted,
        ...(starts.length > 0 && { storms: wilsonInterval(storms, starts.length) }),
      };
    }),
  };
}

function whyNotCounted({ verdict, gates, coldStart }: StartedRun): string | undefined {
  if (verdict === "INVALID") {
    return gates
      .filter(({ outcome }) => outcome === "invalid")
      .map(describeGate)
      .join("; ");
  }
  if (coldStart === undefined) return "not measured";
  if (coldStart.storm !== undefined) return undefined;
  const { opened } = coldStart;
  return `connections: ${opened.kind === "none" ? opened.reason : "not counted"}`;
}
