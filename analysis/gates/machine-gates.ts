/** Gates of the machines themselves: clocks, frequency, heat, and that they are still the same. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { type Edge, type HostEvidence, countersGrown } from "../host-evidence.ts";
import { absent, byClass, checked, everywhere, type Gate, invalid, warn } from "./gate.ts";
import { measuredAs, missing, oneMachine, percent } from "./gate.ts";
import type { GateInput } from "./input.ts";

const borrowedCpus = absent("the CPUs of a lab belong to whoever runs the machine");
const identity = [
  ["boot", "file /proc/sys/kernel/random/boot_id"],
  ["kernel", "file /proc/sys/kernel/osrelease"],
  ["microcode", "file /sys/devices/system/cpu/cpu0/microcode/version"],
] as const;

const machine: Gate = {
  id: "machine",
  shows: "boot, kernel and microcode of every host, before and after, against the first run",
  limits: everywhere("invalid"),
  wanted: () => "as at first",
  judge: ({ hosts, reference }) => {
    const readings = [...hosts].flatMap(([host, { before, after }]) =>
      identity.flatMap(([name, source]) => {
        const first = reference.hosts.get(host)?.before.get(source) ?? before.get(source);
        if (first === undefined) return [];
        const same = [before, after].every((edge) => edge.get(source) === first);
        return [{ name: `${host} ${name}`, same }];
      }),
    );
    if (readings.length === 0) return missing("the sampler told nothing of its kernel");
    const changed = readings.flatMap(({ name, same }) => (same ? [] : [name]));
    return checked(changed.length === 0, changed.join(", ") || "as at first");
  },
};

const clockSource: Gate = {
  id: "clock-source",
  shows: "clock that the kernel of each host reads",
  limits: byClass(absent(oneMachine), warn()),
  wanted: () => "tsc",
  judge: ({ hosts }) => {
    const source = "file /sys/devices/system/clocksource/clocksource0/current_clocksource";
    const found = [...hosts].flatMap(([host, { after }]) => {
      const name = after.get(source);
      return name === undefined ? [] : [{ host, name }];
    });
    if (found.length === 0) return missing("not read");
    const others = found.filter(({ name }) => name !== "tsc");
    return checked(
      others.length === 0,
      others.map((o) => `${o.host} ${o.name}`).join(", ") || "tsc",
    );
  },
};

/** Field of `chronyc -c tracking` that is the offset from true time, seconds. */
const chronyOffset = 4;

const clockOffset: Gate = {
  id: "clock-offset",
  shows: "offset of each host's clock, which aligns series; no latency crosses hosts",
  limits: byClass(absent(oneMachine), warn(0.001)),
  wanted: (limit) => `< ${limit * 1000} ms`,
  compare: "less than",
  judge: ({ hosts }) => {
    const offsets = [...hosts.values()].flatMap(({ after }) => {
      const text = after.get("command chrony")?.split(",")[chronyOffset];
      const seconds = Math.abs(Number(text));
      return text === undefined || !Number.isFinite(seconds) ? [] : [seconds];
    });
    if (offsets.length < hosts.size || offsets.length === 0)
      return missing("no chrony on every host");
    const most = Math.max(...offsets);
    return measuredAs(most, `${(most * 1000).toFixed(3)} ms`);
  },
};

/** CPUs of everything that is measured or measures, by host. */
function measuredCpus({ record }: GateInput): ReadonlyMap<string, ReadonlySet<number>> {
  const { deployment, generator } = record;
  const found = new Map<string, Set<number>>();
  for (const { host, cpus } of [...deployment.units, generator]) {
    const own = found.get(host) ?? new Set<number>();
    parseCpuList(cpus).forEach((cpu) => own.add(cpu));
    found.set(host, own);
  }
  return found;
}

const baseGlob = "glob /sys/devices/system/cpu/cpu*/cpufreq/base_frequency";

function baseFrequencies(edge: Edge): ReadonlyMap<number, number> {
  const text = edge.get(baseGlob) ?? "";
  return new Map(
    [...text.matchAll(/\/cpu(\d+)\/\S+ (\d+)/g)].map(([, cpu, khz]) => [Number(cpu), Number(khz)]),
  );
}

const frequency: Gate = {
  id: "frequency",
  shows:
    "frequency of each CPU in use, off its base frequency; the kernel takes it from APERF/MPERF",
  limits: byClass(borrowedCpus, invalid(0.01)),
  wanted: (limit) => `<= ${percent(limit)}`,
  compare: "at most",
  judge: (input) => {
    const cpus = measuredCpus(input);
    const offs = [...input.hosts].flatMap(([host, { frequencies, before }]) => {
      const bases = baseFrequencies(before);
      return [...(cpus.get(host) ?? [])].flatMap((cpu) => {
        const [mean, base] = [frequencies.get(cpu), bases.get(cpu)];
        return mean === undefined || base === undefined
          ? []
          : [{ host, cpu, off: Math.abs(mean / base - 1) }];
      });
    });
    if (offs.length === 0) return missing("the kernel tells no frequencies");
    const worst = offs.reduce((a, b) => (b.off > a.off ? b : a));
    return measuredAs(
      worst.off,
      `${percent(worst.off)} off on host ${worst.host} CPU ${worst.cpu}`,
    );
  },
};

const throttleGlob = "glob /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count";

const thermalThrottling: Gate = {
  id: "thermal-throttling",
  shows: "times that a CPU was slowed down for heat",
  limits: byClass(borrowedCpus, invalid(0)),
  wanted: () => "0",
  compare: "at most",
  judge: ({ hosts }) => {
    const grown = [...hosts.values()].flatMap((evidence) => {
      const counters = countersGrown(evidence, throttleGlob, /throttle_count/);
      return counters === undefined ? [] : [...counters.values()];
    });
    if (grown.length === 0) return missing("the kernel counts none");
    const total = grown.reduce((sum, by) => sum + by, 0);
    return measuredAs(total, String(total));
  },
};

/** Highest of a host's thermal zones, degrees Celsius; undefined if there is none. */
function temperatureOf(edge: Edge): number | undefined {
  const text = edge.get("glob /sys/class/thermal/thermal_zone*/temp") ?? "";
  const millis = [...text.matchAll(/ (-?\d+)$/gm)].map(([, number]) => Number(number));
  return millis.length === 0 ? undefined : Math.max(...millis) / 1000;
}

const temperature: Gate = {
  id: "temperature",
  shows: "how much warmer or colder a host is when the run begins than when the first one did",
  limits: byClass(borrowedCpus, invalid(3)),
  wanted: (limit) => `<= ${limit} K`,
  compare: "at most",
  judge: ({ hosts, reference }) => {
    const steps = [...hosts].flatMap(([host, evidence]: [string, HostEvidence]) => {
      const first = temperatureOf((reference.hosts.get(host) ?? evidence).before);
      const now = temperatureOf(evidence.before);
      return first === undefined || now === undefined ? [] : [Math.abs(now - first)];
    });
    if (steps.length === 0) return missing("the kernel tells no temperatures");
    const most = Math.max(...steps);
    return measuredAs(most, `${most.toFixed(1)} K`);
  },
};

export const machineGates: readonly Gate[] = [
  frequency,
  thermalThrottling,
  temperature,
  machine,
  clockSource,
  clockOffset,
];
