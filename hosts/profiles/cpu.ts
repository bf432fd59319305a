/** Knobs of CPUs in profile `repro`: their speed, their sleep, and who may run on which. */
import { formatCpuList, parseCpuList } from "../../contracts/cpu-list.ts";
import { benchSlice } from "../../contracts/testbed.ts";
import { cpuMask, type Knob, type KnobKind, type KnobPlace } from "../knobs.ts";

const cpu = "/sys/devices/system/cpu";

function machine(id: string, kind: KnobKind, target: string, want: string, why: string): Knob {
  return { id, scope: "machine", kind, target, want, why };
}

/** First of all knobs, since it decides which CPUs there are. */
export function smtKnobs({ smt }: KnobPlace): readonly Knob[] {
  if (smt === "on") return [];
  const why = "how much a second thread takes away varies by topology";
  return [machine("smt", "smt", `${cpu}/smt/control`, "off", why)];
}

/** Frequency fixed at the base, and no deep sleep. */
export function speedKnobs(): readonly Knob[] {
  const turbo = "turbo depends on how many CPUs are busy, so on the topology";
  const fixed = "frequency is the largest difference between runs";
  return [
    machine("no-turbo", "file", `${cpu}/intel_pstate/no_turbo`, "1", turbo),
    machine("boost", "file", `${cpu}/cpufreq/boost`, "0", turbo),
    machine("max-perf-pct", "file", `${cpu}/intel_pstate/max_perf_pct`, "100", fixed),
    machine("min-perf-pct", "file", `${cpu}/intel_pstate/min_perf_pct`, "100", fixed),
    // Before the governor, under which the kernel refuses to change it.
    machine(
      "energy-preference",
      "each",
      `${cpu}/cpu*/cpufreq/energy_performance_preference`,
      "performance",
      fixed,
    ),
    machine("governor", "each", `${cpu}/cpu*/cpufreq/scaling_governor`, "performance", fixed),
    machine("energy-bias", "each", `${cpu}/cpu*/power/energy_perf_bias`, "0", fixed),
    machine("cpu-latency", "latency", "/dev/cpu_dma_latency 1", "1", "waking up lands in the tail"),
  ];
}

/** Everything that is not measured stays on the CPUs for the system, where there are such. */
export function placementKnobs(place: KnobPlace): readonly Knob[] {
  const { nic, cpus, clusterKind } = place;
  if (cpus.system === "") return [];
  const system = formatCpuList(parseCpuList(cpus.system));
  const measured = formatCpuList(
    [cpus.load, cpus.proxy, cpus.service].flatMap((list) => parseCpuList(list)),
  );
  const why = "daemons do not run on measured CPUs";
  const confine = (unit: string, want: string): Knob => ({
    id: `cpus-${unit}`,
    scope: "manager",
    kind: "cpuset",
    target: `${unit} AllowedCPUs`,
    want,
    why,
  });
  const workqueues = "/sys/devices/virtual/workqueue";
  const deferred = "deferred work of the kernel does not run on measured CPUs";
  const confined = [
    ...["system.slice", "user.slice", "init.scope"].map((unit) => confine(unit, system)),
    machine("workqueues", "mask", `${workqueues}/cpumask`, cpuMask(system), deferred),
    machine("writeback", "mask", `${workqueues}/writeback/cpumask`, cpuMask(system), deferred),
  ];
  // In a cluster kubelet gives CPUs away, and a partition would take them from it.
  if (clusterKind !== "none" || measured === "") return confined;
  return [
    ...confined,
    confine(benchSlice, measured),
    {
      id: `memory-${benchSlice}`,
      scope: "manager",
      kind: "memory",
      target: `${benchSlice} ${nic}`,
      want: "nic-node",
      why: "memory of another node is farther away",
    },
    {
      id: `partition-${benchSlice}`,
      scope: "manager",
      kind: "partition",
      target: benchSlice,
      // Not `isolated`, which would switch off load balancing within it.
      want: "root",
      why: "measured CPUs belong to what is measured alone",
    },
  ];
}
