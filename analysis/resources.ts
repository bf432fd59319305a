/**
 * What the units of a topology and the generator used during a run: CPU time per request, cores,
 * memory, time spent runnable without a CPU. From the kernel's own counters, sampled on the hosts.
 */
import type { Manifest } from "../contracts/manifest.ts";
import type { RunRecord } from "../contracts/record.ts";
import type { Unit as DeployedUnit } from "../contracts/deployment.ts";
import { type Cell, none, numberOf, sumOf, value } from "./cell.ts";
import type { RunLatency } from "./latency.ts";
import {
  fieldOf,
  growthWithin,
  type Point,
  pointsOf,
  type Sample,
  samplesOfUnit,
} from "./samples.ts";

/** Less of the plan than this between first and last sample says too little about the whole. */
const coverageMin = 0.5;

export type UnitUse = {
  readonly unit: string;
  readonly host: string;
  readonly kind: DeployedUnit["kind"] | "generator";
  readonly dataPlane: boolean;
  readonly cpuPerRequest: Cell;
  readonly cores: Cell;
  readonly memory: Cell;
  /** Time its threads were runnable but waited for a CPU, summed, over time passed. */
  readonly runQueueWait: Cell;
  /** How often its processes were others than at the sample before. */
  readonly restarts: Cell;
  /** Most files that each of its processes had open, summed. */
  readonly openFiles: Cell;
  /** Relative growth of its memory, a minute. */
  readonly memoryGrowth: Cell;
  /** Processes that the kernel killed for want of memory. */
  readonly memoryKills: Cell;
  /** Periods in which it was held back by its quota. */
  readonly throttled: Cell;
};

export type RunResources = {
  readonly units: readonly UnitUse[];
  /** All data-plane units together. */
  readonly cpuPerRequest: Cell;
  readonly cores: Cell;
  /** Data-plane units by kind: proxies apart from services. */
  readonly cpuPerRequestByKind: Readonly<Record<string, Cell>>;
  readonly generatorCpuPerRequest: Cell;
  /** Of the generator's own CPU set. */
  readonly generatorShare: Cell;
};

/** Samples by host, with times relative to the start of the load plan. */
export type HostSamples = ReadonlyMap<string, readonly Sample[]>;

/** The steady part of a run: while requests were due, relative to the start of the plan. */
type Window = {
  readonly toNs: number;
  /** Requests really sent, per nanosecond. */
  readonly requestsPerNs: number;
};

/**
 * Counts the resources of a run. A figure whose counter was not sampled says so.
 *
 * CPU per request = growth of `usage_usec` / (time passed * requests sent per time).
 */
export function measureResources(
  record: RunRecord,
  latency: Pick<RunLatency, "sent" | "planned">,
  samples: HostSamples,
): RunResources {
  const { intervalNs, planned } = record.loadPlan;
  const toNs = intervalNs * planned;
  const window: Window = { toNs, requestsPerNs: latency.sent / toNs };
  const units = record.deployment.units.map(({ name, host, kind, dataPlane }) =>
    useOf({ unit: name, host, kind, dataPlane }, samples.get(host) ?? [], window),
  );
  const { unit, host, cpus } = record.generator;
  const generator = useOf(
    { unit, host, kind: "generator", dataPlane: false },
    samples.get(host) ?? [],
    window,
  );
  const counted = units.filter(({ dataPlane }) => dataPlane);
  const kinds = [...new Set(counted.map(({ kind }) => kind))];
  const generatorCores = numberOf(generator.cores);
  return {
    units: [...units, generator],
    cpuPerRequest: sumOf(counted.map((use) => use.cpuPerRequest)),
    cores: sumOf(counted.map((use) => use.cores)),
    cpuPerRequestByKind: Object.fromEntries(
      kinds.map((kind) => [
        kind,
        sumOf(counted.filter((use) => use.kind === kind).map((use) => use.cpuPerRequest)),
      ]),
    ),
    generatorCpuPerRequest: generator.cpuPerRequest,
    generatorShare: shareOf(generatorCores, cpus, generator.cores),
  };
}

export type SoftirqAccounting = "apart" | "tasks" | "unknown" | "differs";

/** Where kernels charge the time of interrupts, by their configuration among the facts. */
export function softirqAccounting(facts: Manifest["facts"]): SoftirqAccounting {
  const kernels = new Set(
    Object.values(facts).map((host) => {
      const text = Object.values(host).join("\n");
      const option = /^(# )?CONFIG_IRQ_TIME_ACCOUNTING(?:=y| is not set)$/m.exec(text);
      if (option === null) return "unknown";
      return option[1] === undefined ? "apart" : "tasks";
    }),
  );
  const [only = "unknown", ...others] = kernels;
  return others.length > 0 ? "differs" : only;
}

/** Where the time of interrupts is: apart, or in the units' own CPU time, as the kernels say. */
export function describeSoftirq(facts: Manifest["facts"]): string {
  switch (softirqAccounting(facts)) {
    case "differs":
      return "hosts differ in where they charge interrupt time: do not compare";
    case "apart":
      return "interrupt time is counted apart and not in these figures";
    case "tasks":
      return "interrupt time is charged to tasks and so in these figures";
    case "unknown":
      return "the kernel does not tell where interrupt time is charged";
  }
}

/** Number of CPUs in a kernel list such as `0-3,8`; undefined for an empty one. */
export function countCpus(list: string): number | undefined {
  const ranges = list.split(",").flatMap((range) => {
    const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(range.trim()) ?? [];
    return from === undefined ? [] : [Number(to ?? from) - Number(from) + 1];
  });
  return ranges.length === 0 ? undefined : ranges.reduce((total, count) => total + count, 0);
}

function useOf(
  identity: Pick<UnitUse, "unit" | "host" | "kind" | "dataPlane">,
  samples: readonly Sample[],
  window: Window,
): UnitUse {
  const own = samplesOfUnit(samples, identity.unit);
  const usage = usagePoints(own);
  const growth = growthWithin(usage, 0, window.toNs, coverageMin);
  return {
    ...identity,
    cpuPerRequest:
      typeof growth === "string"
        ? none(growth)
        : perRequest(growth.delta, growth.toNs - growth.fromNs, window),
    cores:
      typeof growth === "string"
        ? none(growth)
        : value((growth.delta * 1000) / (growth.toNs - growth.fromNs), "cores"),
    memory: greatest(memoryPoints(own), window),
    runQueueWait: waitShare(own, window),
    restarts: countRestarts(own),
    openFiles: filesOf(own, window),
    memoryGrowth: growthPerMinute(memoryPoints(own), window),
    memoryKills: countOf(own, "memory.events", "oom_kill", window),
    throttled: countOf(own, "cpu.stat", "nr_throttled", window),
  };
}

/** Growth of a counter of the group's, which its kernel may not have. */
function countOf(own: readonly Sample[], file: string, key: string, window: Window): Cell {
  const points = pointsOf(own, file, (text) => fieldOf(text, key));
  if (points.length === 0) return none("the kernel does not count it");
  const growth = growthWithin(points, 0, window.toNs, coverageMin);
  return typeof growth === "string" ? none(growth) : value(growth.delta, "count");
}

/** Each process at its own most, so no less than all of them had open at any moment. */
function filesOf(own: readonly Sample[], window: Window): Cell {
  const byProcess = new Map<string, number>();
  for (const { source, atNs, content } of own) {
    const pid = /^unit \S+ pid (\d+) fds$/.exec(source)?.[1];
    if (pid === undefined || atNs < 0 || atNs > window.toNs) continue;
    const count = Number(content);
    if (Number.isFinite(count)) byProcess.set(pid, Math.max(count, byProcess.get(pid) ?? 0));
  }
  if (byProcess.size === 0) return none("not sampled");
  return value(
    [...byProcess.values()].reduce((sum, count) => sum + count, 0),
    "count",
  );
}

/** From the first to the last reading within the run, over the first. */
function growthPerMinute(points: readonly Point[], window: Window): Cell {
  const inside = points.filter(({ atNs }) => atNs >= 0 && atNs <= window.toNs);
  const [first, last] = [inside[0], inside.at(-1)];
  if (first === undefined || last === undefined || last.atNs <= first.atNs) {
    return none("not sampled");
  }
  if (first.value === 0) return none("no memory at first");
  const minutes = (last.atNs - first.atNs) / 60e9;
  return value((last.value / first.value - 1) / minutes, "share");
}

function perRequest(deltaUs: number, overNs: number, window: Window): Cell {
  const requests = overNs * window.requestsPerNs;
  return requests > 0 ? value(deltaUs / requests, "us") : none("no requests");
}

/** Microseconds; the older hierarchies tell nanoseconds, in a file of their own. */
function usagePoints(own: readonly Sample[]): readonly Point[] {
  const points = pointsOf(own, "cpu.stat", (text) => fieldOf(text, "usage_usec"));
  if (points.length > 0) return points;
  return pointsOf(own, "cpuacct.usage", (text) =>
    /^\d+$/.test(text) ? Number(text) / 1000 : undefined,
  );
}

/** Resident memory of the cgroup, or of the main process where the kernel does not count it. */
function memoryPoints(own: readonly Sample[]): readonly Point[] {
  const whole = pointsOf(own, "memory.current", (text) =>
    /^\d+$/.test(text) ? Number(text) : undefined,
  );
  if (whole.length > 0) return whole;
  return pointsOf(own, "status", (text) => {
    const kibibytes = fieldOf(text, "VmRSS");
    return kibibytes === undefined ? undefined : kibibytes * 1024;
  });
}

function greatest(points: readonly Point[], window: Window): Cell {
  const inside = points.filter(({ atNs }) => atNs >= 0 && atNs <= window.toNs);
  if (inside.length === 0) return none("not sampled");
  return value(Math.max(...inside.map((point) => point.value)), "bytes");
}

/** Each thread has a line `TID run-ns wait-ns slices`; the waits of all threads are added up. */
function waitShare(own: readonly Sample[], window: Window): Cell {
  const points = pointsOf(own, "tasks", (text) => {
    const waits = text.split("\n").map((line) => Number(line.split(" ")[2]));
    const totalNs = waits.reduce((total, waitedNs) => total + waitedNs, 0);
    return Number.isFinite(totalNs) ? totalNs : undefined;
  });
  const growth = growthWithin(points, 0, window.toNs, coverageMin);
  if (typeof growth === "string") return none(growth);
  return value(growth.delta / (growth.toNs - growth.fromNs), "share");
}

/** Changes of the group's processes from sample to sample, its absence taken for a change. */
function countRestarts(own: readonly Sample[]): Cell {
  const states = own.flatMap(({ source, content }) => {
    if (source.endsWith(" cgroup.procs")) return [content.split("\n").sort().join(" ")];
    return source.endsWith(" absent") ? ["absent"] : [];
  });
  if (states.length === 0) return none("not sampled");
  const changes = states.filter((state, index) => index > 0 && state !== states[index - 1]);
  return value(changes.length, "count");
}

function shareOf(cores: number | undefined, cpus: string, cell: Cell): Cell {
  if (cores === undefined) return cell;
  const count = countCpus(cpus);
  return count === undefined ? none("it has no CPU set of its own") : value(cores / count, "share");
}
