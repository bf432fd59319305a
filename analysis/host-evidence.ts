/**
 * What each host of a run said of itself: counters that must stand still while the load lasts, and
 * what must be the same before and after. Read from the sampler's text and from what commands
 * printed; judges nothing.
 */
import { type Cell, none, sumOf, value } from "./cell.ts";
import { fieldOf, growthWithin, pointsOf, type Sample } from "./samples.ts";

/** Readings that cover less than half of the run say too little. */
const coverageMin = 0.5;

export type CoreUse = {
  /** Shares of the time: of all tasks, of interrupts, of the hypervisor. */
  readonly task: number;
  readonly interrupt: number;
  readonly steal: number;
};

export type Thread = {
  readonly unit: string;
  readonly name: string;
  /** CPUs that it may use, as the kernel lists them. */
  readonly allowed: string;
};

/** Texts of one moment by source: `file PATH`, `glob PATTERN`, `command NAME`. */
export type Edge = ReadonlyMap<string, string>;

export type HostEvidence = {
  /** By number of the CPU; empty if it was not sampled. */
  readonly cores: ReadonlyMap<number, CoreUse>;
  readonly softnetDropped: Cell;
  readonly softnetSqueezed: Cell;
  /** Retransmitted segments over sent ones. */
  readonly retransmitShare: Cell;
  readonly listenDrops: Cell;
  readonly tcpTimeouts: Cell;
  /** Most local ports in use at a moment over those there are. */
  readonly portShare: Cell;
  readonly conntrackShare: Cell;
  /** CPU time of the sampler over the time that it ran. */
  readonly samplerShare: Cell;
  /** Mean of what each CPU reported, kilohertz; empty if its kernel tells none. */
  readonly frequencies: ReadonlyMap<number, number>;
  /** Bytes that its links received and sent while requests were due, loopback not counted. */
  readonly networkBytes: Cell;
  readonly threads: readonly Thread[];
  readonly before: Edge;
  readonly after: Edge;
};

/**
 * @param samples of the host, times relative to the start of the load plan
 * @param before what its commands printed before the run, as samples; none if it was not asked
 */
export function hostEvidenceOf(
  samples: readonly Sample[],
  planNs: number,
  before: readonly Sample[],
  after: readonly Sample[],
): HostEvidence {
  const grown = (file: string, read: (content: string) => number | undefined): Cell => {
    const growth = growthWithin(pointsOf(samples, file, read), 0, planNs, coverageMin);
    return typeof growth === "string" ? none(growth) : value(growth.delta, "count");
  };
  const tcp = (name: string): Cell => grown("/proc/net/snmp", (t) => columnOf(t, "Tcp", name));
  const extended = (name: string): Cell =>
    grown("/proc/net/netstat", (t) => columnOf(t, "TcpExt", name));
  const edges = [edgeOf(samples, "first", before), edgeOf(samples, "last", after)] as const;
  return {
    cores: coresOf(samples, planNs),
    softnetDropped: grown("/proc/net/softnet_stat", (text) => softnet(text, 1)),
    softnetSqueezed: grown("/proc/net/softnet_stat", (text) => softnet(text, 2)),
    retransmitShare: shareOf(tcp("RetransSegs"), tcp("OutSegs")),
    listenDrops: sumOf([extended("ListenOverflows"), extended("ListenDrops")]),
    tcpTimeouts: extended("TCPTimeouts"),
    portShare: portShareOf(samples, edges[1]),
    conntrackShare: conntrackOf(edges[1]),
    samplerShare: samplerOf(samples),
    frequencies: frequenciesOf(samples, planNs),
    networkBytes: bytesCell(grown("/proc/net/dev", networkBytes)),
    threads: threadsOf(samples),
    before: edges[0],
    after: edges[1],
  };
}

/** A value of `/proc/net/snmp` or `netstat`: a line of names, then one of numbers. */
export function columnOf(content: string, prefix: string, name: string): number | undefined {
  const [names, values] = content
    .split("\n")
    .filter((line) => line.startsWith(`${prefix}: `))
    .map((line) => line.split(/\s+/));
  const text = values?.[names?.indexOf(name) ?? -1];
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : undefined;
}

/** Sum over all CPUs of a column of `softnet_stat`, which is hexadecimal. */
function softnet(content: string, column: number): number | undefined {
  const values = content.split("\n").map((line) => parseInt(line.split(/\s+/)[column] ?? "", 16));
  return values.every(Number.isFinite) ? values.reduce((sum, x) => sum + x, 0) : undefined;
}

/** Received and sent bytes of all links but loopback. */
function networkBytes(content: string): number | undefined {
  const links = content.split("\n").flatMap((line) => {
    const [, name, rest] = /^\s*([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    const fields = rest?.split(/\s+/).map(Number);
    return name === undefined || name === "lo" || fields === undefined
      ? []
      : [(fields[0] ?? Number.NaN) + (fields[8] ?? Number.NaN)];
  });
  const total = links.reduce((sum, x) => sum + x, 0);
  return links.length > 0 && Number.isFinite(total) ? total : undefined;
}

function bytesCell(cell: Cell): Cell {
  return cell.kind === "none" ? cell : value(cell.value, "bytes");
}

function shareOf(part: Cell, whole: Cell): Cell {
  if (part.kind === "none") return part;
  if (whole.kind === "none") return whole;
  return whole.value > 0 ? value(part.value / whole.value, "share") : none("nothing was sent");
}

const statFields = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"] as const;
type Ticks = Record<(typeof statFields)[number], number>;

/** `cpuN user nice system idle iowait irq softirq steal ...`, ticks since boot. */
function ticksOf(content: string, cpu: number): Ticks | undefined {
  const fields = new RegExp(`^cpu${cpu} (.*)$`, "m").exec(content)?.[1]?.split(" ").map(Number);
  if (fields === undefined || fields.length < statFields.length) return undefined;
  return Object.fromEntries(statFields.map((name, i) => [name, fields[i] ?? 0])) as Ticks;
}

function coresOf(samples: readonly Sample[], planNs: number): ReadonlyMap<number, CoreUse> {
  const inside = samples.filter(
    ({ source, atNs }) => source === "file /proc/stat" && atNs >= 0 && atNs <= planNs,
  );
  const [first, last] = [inside[0], inside.at(-1)];
  if (first === undefined || last === undefined) return new Map();
  if (last.atNs - first.atNs < coverageMin * planNs) return new Map();
  const numbers = [...first.content.matchAll(/^cpu(\d+) /gm)].map((match) => Number(match[1]));
  return new Map(
    numbers.flatMap((cpu) => {
      const [a, b] = [ticksOf(first.content, cpu), ticksOf(last.content, cpu)];
      if (a === undefined || b === undefined) return [];
      const spent = (...names: (keyof Ticks)[]) => names.reduce((t, n) => t + b[n] - a[n], 0);
      const total = spent(...statFields);
      if (total <= 0) return [];
      const use = {
        task: spent("user", "nice", "system") / total,
        interrupt: spent("irq", "softirq") / total,
        steal: spent("steal") / total,
      };
      return [[cpu, use] as const];
    }),
  );
}

/** Texts of the first or last sample, and of the commands of that moment. */
function edgeOf(
  samples: readonly Sample[],
  which: "first" | "last",
  commands: readonly Sample[],
): Edge {
  const found = new Map<string, string>();
  for (const { source, content } of samples) {
    if (!/^(file|glob) /.test(source) || source.endsWith(" error")) continue;
    if (which === "last" || !found.has(source)) found.set(source, content);
  }
  for (const { source, content } of commands) found.set(source, content);
  return found;
}

function portShareOf(samples: readonly Sample[], edge: Edge): Cell {
  const range = edge.get("file /proc/sys/net/ipv4/ip_local_port_range")?.split(/\s+/).map(Number);
  const [low, high] = range ?? [];
  if (low === undefined || high === undefined) return none("range of ports not read");
  const used = pointsOf(samples, "/proc/net/sockstat", (text) => {
    const [, inUse, waiting] = /^TCP: inuse (\d+) .*\btw (\d+)/m.exec(text) ?? [];
    return inUse === undefined ? undefined : Number(inUse) + Number(waiting);
  });
  if (used.length === 0) return none("not sampled");
  return value(Math.max(...used.map((point) => point.value)) / (high - low + 1), "share");
}

function conntrackOf(edge: Edge): Cell {
  const read = (name: string) => edge.get(`file /proc/sys/net/netfilter/nf_conntrack_${name}`);
  const [count, max] = [read("count"), read("max")];
  if (count === undefined || max === undefined) return none("the kernel tracks no connections");
  return value(Number(count) / Number(max), "share");
}

function samplerOf(samples: readonly Sample[]): Cell {
  const cost = samples.find(({ source }) => source === "sampler cost");
  const [first, last] = [samples[0], samples.at(-1)];
  const usedUs = fieldOf(cost?.content ?? "", "cpu_usec");
  if (usedUs === undefined || first === undefined || last === undefined) return none("not told");
  const ranNs = last.atNs - first.atNs;
  return ranNs > 0 ? value((usedUs * 1000) / ranNs, "share") : none("it took one sample");
}

const frequencyGlob = "glob /sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq";

function frequenciesOf(samples: readonly Sample[], planNs: number): ReadonlyMap<number, number> {
  const readings = new Map<number, number[]>();
  for (const { source, atNs, content } of samples) {
    if (source !== frequencyGlob || atNs < 0 || atNs > planNs) continue;
    for (const [, cpu, kilohertz] of content.matchAll(/\/cpu(\d+)\/\S+ (\d+)/g)) {
      const key = Number(cpu);
      readings.set(key, [...(readings.get(key) ?? []), Number(kilohertz)]);
    }
  }
  return new Map(
    [...readings].map(([cpu, all]) => [cpu, all.reduce((sum, x) => sum + x, 0) / all.length]),
  );
}

/** All threads that the first and the last sample saw. */
function threadsOf(samples: readonly Sample[]): readonly Thread[] {
  return samples.flatMap(({ source, content }) => {
    const unit = /^unit (\S+) pid \d+ threads$/.exec(source)?.[1];
    if (unit === undefined) return [];
    return content.split("\n").flatMap((line) => {
      const [, allowed, name] = /^\d+ \S+ (\S+) (.*)$/.exec(line) ?? [];
      return allowed === undefined || name === undefined ? [] : [{ unit, name, allowed }];
    });
  });
}

/** Growth of a counter from the first to the last edge: names to numbers, `NAME: N` lines. */
export function countersGrown(
  { before, after }: Pick<HostEvidence, "before" | "after">,
  source: string,
  wanted: RegExp,
): ReadonlyMap<string, number> | undefined {
  const [a, b] = [before.get(source), after.get(source)];
  if (a === undefined || b === undefined) return undefined;
  const read = (text: string) =>
    new Map(
      text.split("\n").flatMap((line) => {
        const [, name, number] = /^\s*(\S+?):?\s+(\d+)$/.exec(line) ?? [];
        return name !== undefined && wanted.test(name) ? [[name, Number(number)] as const] : [];
      }),
    );
  const was = read(a);
  return new Map([...read(b)].map(([name, number]) => [name, number - (was.get(name) ?? 0)]));
}
