/** Proposes the CPU sets of a host from which CPUs it has. Pure. */
import { formatCpuList } from "../contracts/cpu-list.ts";
import { Failure } from "../contracts/failure.ts";
import type { CpuLayout } from "../contracts/testbed.ts";
import type { CpuPlace } from "./lscpu.ts";

/** Sets of what is measured, in the order in which they are laid out. */
const measured = ["irq", "load", "proxy", "service"] as const;
type Measured = (typeof measured)[number];

/** What hosts like those of the articles can spare: `GOMAXPROCS=8`, one CPU for each queue. */
export const articleCounts: Readonly<Record<Measured, number>> = {
  irq: 4,
  load: 6,
  proxy: 4,
  service: 8,
};

const systemCpus = 4;

export type CpuPlan = {
  readonly layout: CpuLayout;
  /** CPUs that no set has: spare cores, and the second threads of all. */
  readonly idle: string;
};

/**
 * One CPU of each core, its second thread idle. Everything measured is on the NIC's node, and the
 * system on another one where there is one. Where there are too few CPUs the sets shrink in
 * proportion, and with fewer than five some share: `layoutWarnings` tells which.
 *
 * @param nicNode NUMA node of the data NIC; -1 if the machine does not tell
 * @param counts CPUs wanted of each set
 * @throws Failure `usage` for a node without CPUs
 */
export function planCpus(
  cpus: readonly CpuPlace[],
  nicNode: number,
  counts: Readonly<Record<Measured, number>> = articleCounts,
): CpuPlan {
  const cores = firstThreads(cpus);
  const near = cores.filter(({ node }) => nicNode === -1 || node === nicNode);
  const far = cores.filter((place) => !near.includes(place));
  if (near.length === 0) {
    const nodes = [...new Set(cores.map(({ node }) => node))].join(", ");
    throw new Failure("usage", `NIC node: it has no CPUs, found ${nicNode}, allowed are ${nodes}`, {
      hint: "cat /sys/class/net/NIC/device/numa_node on the host tells it",
    });
  }
  const layout = layoutOf(near.map(numberOf), far.map(numberOf), counts);
  const used = new Set(Object.values(layout).flat());
  const lists = Object.fromEntries(
    Object.entries(layout).map(([name, list]) => [name, formatCpuList(list)]),
  ) as CpuLayout;
  const idle = cpus.map(numberOf).filter((cpu) => !used.has(cpu));
  return { layout: lists, idle: formatCpuList(idle) };
}

function numberOf({ cpu }: CpuPlace): number {
  return cpu;
}

/** The lowest CPU of each core: the one that stays when second threads are turned off. */
function firstThreads(cpus: readonly CpuPlace[]): CpuPlace[] {
  const first = new Map<string, CpuPlace>();
  for (const place of [...cpus].sort((a, b) => a.cpu - b.cpu)) {
    const core = `${place.node} ${place.socket} ${place.core}`;
    if (!first.has(core)) first.set(core, place);
  }
  return [...first.values()];
}

type Lists = Record<keyof CpuLayout, number[]>;

function layoutOf(
  near: readonly number[],
  far: readonly number[],
  counts: Readonly<Record<Measured, number>>,
): Lists {
  const [first = 0, second = first, third = second, fourth = third] = near;
  if (far.length > 0 && near.length >= measured.length) {
    return { system: far.slice(0, systemCpus), ...share(near, counts) };
  }
  if (near.length > measured.length) {
    const kept = near.length > 12 ? 2 : 1;
    return { system: near.slice(0, kept), ...share(near.slice(kept), counts) };
  }
  // Too few for sets of their own: the service comes last to share, the system first.
  const system = far.length > 0 ? far.slice(0, systemCpus) : [first];
  if (near.length === 4) {
    return { system, irq: [first], load: [second], proxy: [third], service: [fourth] };
  }
  return { system, irq: [first], load: [first], proxy: [second], service: [third] };
}

/** Gives each set a CPU, then the next one to the set that has the smallest part of its count. */
function share(
  cpus: readonly number[],
  counts: Readonly<Record<Measured, number>>,
): Record<Measured, number[]> {
  const sizes: Record<Measured, number> = { irq: 1, load: 1, proxy: 1, service: 1 };
  const total = measured.reduce((sum, name) => sum + counts[name], 0);
  for (let given = measured.length; given < Math.min(cpus.length, total); given++) {
    const poorest = [...measured]
      .filter((name) => sizes[name] < counts[name])
      .reduce((a, b) => (sizes[b] / counts[b] <= sizes[a] / counts[a] ? b : a));
    sizes[poorest] += 1;
  }
  let start = 0;
  const take = (name: Measured) => cpus.slice(start, (start += sizes[name]));
  return { irq: take("irq"), load: take("load"), proxy: take("proxy"), service: take("service") };
}
