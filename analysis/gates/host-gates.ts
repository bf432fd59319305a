/** Gates of the hosts: throttling, dropped packets, clocks, placement, and what else ran there. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { type Cell, none, numberOf } from "../cell.ts";
import { countersGrown, type HostEvidence } from "../host-evidence.ts";
import {
  absent,
  byClass,
  byRuntime,
  checked,
  everywhere,
  type Finding,
  type Gate,
} from "./gate.ts";
import {
  fromCell,
  invalid,
  type Limit,
  measuredAs,
  missing,
  oneMachine,
  percent,
  warn,
} from "./gate.ts";
import type { GateInput } from "./input.ts";
import { planSeconds, profilerNames, transientUnits } from "./run-facts.ts";

const noQuota = "systemd units have no CPU quota here";
const podNetworks = "pods have network namespaces of their own, which are not read";

/** CPUs that a lab's hosts share hold packets up long enough for TCP to send them again. */
function ownNetwork(lab: Limit, metal: Limit): Gate["limits"] {
  return { ...byRuntime(metal, absent(podNetworks)), "lab native": lab };
}

/** The worst of some cells and where it is; if none has a number, the first one's reason. */
function worstOf(
  cells: readonly { readonly where: string; readonly cell: Cell }[],
  show: (value: number) => string,
  without: string,
): Finding {
  const found = cells.flatMap(({ where, cell }) => {
    const number = numberOf(cell);
    return number === undefined ? [] : [{ where, number }];
  });
  if (found.length === 0) return fromCell(cells[0]?.cell ?? none(without), show);
  const worst = found.reduce((a, b) => (b.number > a.number ? b : a));
  return measuredAs(worst.number, `${show(worst.number)} ${worst.where}`);
}

function worstHost(
  { hosts }: GateInput,
  read: (host: HostEvidence) => Cell,
  show: (value: number) => string,
): Finding {
  const cells = [...hosts].map(([host, evidence]) => ({
    where: `on host ${host}`,
    cell: read(evidence),
  }));
  return worstOf(cells, show, "no host was sampled");
}

function counterGate(
  id: Gate["id"],
  shows: string,
  limits: Gate["limits"],
  read: (host: HostEvidence) => Cell,
): Gate {
  const wanted = (limit: number) => (limit === 0 ? "0" : `<= ${limit}`);
  const judge = (input: GateInput) => worstHost(input, read, String);
  return { id, shows, limits, wanted, compare: "at most", judge };
}

function shareGate(
  id: Gate["id"],
  shows: string,
  limits: Gate["limits"],
  read: (host: HostEvidence) => Cell,
  places = 1,
): Gate {
  const show = (share: number) => `${(share * 100).toFixed(places)} %`;
  const wanted = (limit: number) => `< ${show(limit)}`;
  const judge = (input: GateInput) => worstHost(input, read, show);
  return { id, shows, limits, wanted, compare: "less than", judge };
}

/** Of the units under test. */
function worstUnit(
  { resources }: GateInput,
  read: (unit: GateInput["resources"]["units"][number]) => Cell,
  show: (value: number) => string,
): Finding {
  const deployed = resources.units.filter(({ kind }) => kind !== "generator");
  const cells = deployed.map((unit) => ({ where: `in ${unit.unit}`, cell: read(unit) }));
  return worstOf(cells, show, "no unit was sampled");
}

const throttling: Gate = {
  id: "throttling",
  shows: "periods in which the kernel held a unit back by its quota",
  limits: byRuntime(absent(noQuota), invalid(0)),
  wanted: () => "0",
  compare: "at most",
  judge: (input) => worstUnit(input, ({ throttled }) => throttled, String),
};

const outOfMemory: Gate = {
  id: "out-of-memory",
  shows: "processes of a unit that the kernel killed for want of memory",
  limits: everywhere("invalid"),
  wanted: () => "0",
  compare: "at most",
  judge: (input) => worstUnit(input, ({ memoryKills }) => memoryKills, String),
};

/** Below this a unit's first allocations look like growth. */
const growthSecondsMin = 60;

const memoryGrowth: Gate = {
  id: "memory-growth",
  shows: "growth of a unit's memory, a minute",
  limits: everywhere("invalid", 0.05),
  wanted: (limit) => `<= ${percent(limit)} a minute`,
  compare: "at most",
  judge: (input) => {
    const seconds = planSeconds(input.record);
    if (seconds < growthSecondsMin) {
      return missing(`run too short, ${seconds.toFixed(0)} s of ${growthSecondsMin} s`);
    }
    return worstUnit(input, ({ memoryGrowth: growth }) => growth, percent);
  },
};

const nicCounters =
  /out_of_buffer|discards|drop|queue_stopped|(rx|tx)_pause|prio\d_pause|aff_change|carrier/;

const nic: Gate = {
  id: "nic",
  shows: "drops, pauses and lost links that network cards counted",
  limits: byClass(absent("virtual links have no such counters"), invalid(0)),
  wanted: () => "none",
  judge: ({ hosts }) => {
    const grown: string[] = [];
    let asked = false;
    for (const [host, evidence] of hosts) {
      for (const source of ["command nic", "glob /sys/class/net/*/carrier_changes"]) {
        const counters = countersGrown(evidence, source, nicCounters);
        if (counters === undefined) continue;
        asked = true;
        for (const [name, by] of counters) if (by > 0) grown.push(`${host} ${name} ${by}`);
      }
    }
    return asked ? checked(grown.length === 0, grown.join(", ") || "none") : missing("not asked");
  },
};

/** CPUs of the units under test on a host; in a lab the hosts are one machine. */
function foreignShare(input: GateInput): Finding {
  const { record, resources, hosts } = input;
  const { deployment, generator } = record;
  const lab = deployment.testbedClass === "lab";
  const cpusOf = new Map(deployment.units.map(({ name, cpus }) => [name, cpus]));
  cpusOf.set(generator.unit, generator.cpus);
  const findings = [...hosts].flatMap(([host, { cores }]) => {
    const tested = deployment.units.filter((unit) => unit.host === host && unit.dataPlane);
    const cpus = new Set(tested.flatMap((unit) => parseCpuList(unit.cpus)));
    const uses = [...cpus].flatMap((cpu) => cores.get(cpu) ?? []);
    if (cpus.size === 0 || uses.length < cpus.size) return [];
    const busy = uses.reduce((sum, use) => sum + use.task, 0);
    const own = resources.units
      .filter((unit) => lab || unit.host === host)
      .filter(({ unit }) => parseCpuList(cpusOf.get(unit) ?? "").some((cpu) => cpus.has(cpu)))
      .reduce((sum, unit) => sum + (numberOf(unit.cores) ?? 0), 0);
    return [{ host, share: Math.max(0, busy - own) / cpus.size }];
  });
  if (findings.length === 0) return missing("CPUs of the units were not sampled, or are not fixed");
  const worst = findings.reduce((a, b) => (b.share > a.share ? b : a));
  return measuredAs(worst.share, `${percent(worst.share)} on host ${worst.host}`);
}

const foreignLoad: Gate = {
  id: "foreign-load",
  shows: "CPU time of others on the CPUs of the units under test",
  limits: byClass(warn(0.25), invalid(0.01)),
  wanted: (limit) => `< ${percent(limit)}`,
  compare: "less than",
  judge: foreignShare,
};

const placement: Gate = {
  id: "placement",
  shows: "CPUs that threads of the units under test may use, against those they were given",
  limits: everywhere("invalid"),
  wanted: () => "no thread may leave its CPUs",
  judge: ({ record, hosts }) => {
    const given = new Map(record.deployment.units.map(({ name, cpus }) => [name, cpus]));
    given.set(record.generator.unit, record.generator.cpus);
    const threads = [...hosts.values()].flatMap((host) => host.threads);
    const fixed = threads.filter(({ unit }) => (given.get(unit) ?? "") !== "");
    if (fixed.length === 0) return missing("threads were not read, or no unit has CPUs of its own");
    const strays = fixed.filter(({ unit, allowed }) => {
      const own = new Set(parseCpuList(given.get(unit) ?? ""));
      return parseCpuList(allowed).some((cpu) => !own.has(cpu));
    });
    const shown = strays.map(({ unit, name, allowed }) => `${unit} ${name} on ${allowed}`);
    const unique = [...new Set(shown)];
    return checked(unique.length === 0, unique.slice(0, 3).join(", ") || `${fixed.length} threads`);
  },
};

/** New lines of a command's output, host by host. */
function added(
  { hosts }: GateInput,
  source: string,
  keep: (line: string) => string | undefined,
): readonly string[] | undefined {
  const found: string[] = [];
  let asked = false;
  for (const [host, { before, after }] of hosts) {
    const [a, b] = [before.get(source), after.get(source)];
    if (a === undefined || b === undefined || /^exit code \d+$/m.test(b)) continue;
    asked = true;
    const known = new Set(a.split("\n").map(keep));
    for (const line of b.split("\n")) {
      const kept = keep(line);
      if (kept !== undefined && !known.has(kept)) found.push(`${host} ${kept}`);
    }
  }
  return asked ? found : undefined;
}

const services: Gate = {
  id: "services",
  shows: "services and timers that began while the run lasted",
  limits: byClass(warn(), invalid()),
  wanted: () => "none",
  judge: (input) => {
    const found = added(input, "command services", (line) => {
      const unit = line.trim().split(/\s+/)[0] ?? "";
      return unit === "" || transientUnits.test(unit) ? undefined : unit;
    });
    if (found === undefined) return missing("units were not listed");
    return checked(found.length === 0, found.slice(0, 5).join(", ") || "none");
  },
};

const kernelLog: Gate = {
  id: "kernel-log",
  shows: "warnings and errors that the kernel logged while the run lasted",
  limits: byClass(absent(oneMachine), invalid()),
  wanted: () => "none",
  judge: (input) => {
    const found = added(input, "command kernel-log", (line) => (line === "" ? undefined : line));
    if (found === undefined) return missing("the kernel's log may not be read");
    return checked(found.length === 0, found.slice(0, 2).join("; ").slice(0, 200) || "none");
  },
};

const profilers: Gate = {
  id: "profilers",
  shows: "programs that look at others while these are measured",
  limits: everywhere("invalid"),
  wanted: () => "none",
  judge: ({ hosts }) => {
    const lists = [...hosts].flatMap(([host, { before, after }]) =>
      [before, after].flatMap((edge) => {
        const text = edge.get("command processes");
        return text === undefined ? [] : [{ host, names: text.split("\n") }];
      }),
    );
    if (lists.length === 0) return missing("processes were not listed");
    const found = lists.flatMap(({ host, names }) =>
      names.filter((name) => profilerNames.includes(name.trim())).map((name) => `${host} ${name}`),
    );
    return checked(found.length === 0, [...new Set(found)].join(", ") || "none");
  },
};

export const hostGates: readonly Gate[] = [
  throttling,
  outOfMemory,
  memoryGrowth,
  nic,
  counterGate(
    "softnet-drops",
    "packets that the kernel dropped for a full backlog",
    byClass(warn(0), invalid(0)),
    (host) => host.softnetDropped,
  ),
  counterGate(
    "softnet-squeezes",
    "times that the kernel left packets for later",
    byClass(absent("counted for the whole machine, whatever runs on it"), warn(0)),
    (host) => host.softnetSqueezed,
  ),
  shareGate(
    "retransmits",
    "segments that TCP sent again, of those it sent",
    ownNetwork(warn(0.0001), invalid(0.0001)),
    (host) => host.retransmitShare,
    3,
  ),
  counterGate(
    "listen-drops",
    "connections that a full queue of a listener lost",
    byRuntime(invalid(0), absent(podNetworks)),
    (host) => host.listenDrops,
  ),
  counterGate(
    "tcp-timeouts",
    "times that TCP gave up waiting and sent again",
    ownNetwork(warn(0), invalid(0)),
    (host) => host.tcpTimeouts,
  ),
  shareGate(
    "ports",
    "local ports in use, of those there are",
    byRuntime(invalid(0.6), absent(podNetworks)),
    (host) => host.portShare,
  ),
  shareGate(
    "conntrack",
    "connections that the kernel tracks, of those it can",
    everywhere("invalid", 0.5),
    (host) => host.conntrackShare,
  ),
  placement,
  foreignLoad,
  services,
  kernelLog,
  profilers,
  shareGate(
    "observer",
    "CPU time of the sampler, of one CPU",
    byClass(warn(0.02), invalid(0.02)),
    (host) => host.samplerShare,
  ),
];
