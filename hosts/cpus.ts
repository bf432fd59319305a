/** What follows from the CPU layout of a host: which sets disturb each other. */
import { formatCpuList, parseCpuList } from "../contracts/cpu-list.ts";
import type { CpuLayout, Host } from "../contracts/testbed.ts";

export type CpuSetName = keyof CpuLayout;

/** The CPUs that are in both lists, ascending. */
export function sharedCpus(a: string, b: string): number[] {
  const other = new Set(parseCpuList(b));
  return parseCpuList(a).filter((cpu) => other.has(cpu));
}

export type LayoutWarning = {
  readonly host: string;
  readonly sets: readonly [CpuSetName, CpuSetName];
  readonly cpus: string;
  readonly message: string;
};

/** Pairs that disturb each other when they share a CPU, the worst first. */
const rivals: readonly (readonly [CpuSetName, CpuSetName])[] = [
  ["load", "proxy"],
  ["load", "service"],
  ["proxy", "service"],
  ["irq", "load"],
  ["irq", "proxy"],
  ["irq", "service"],
  ["system", "load"],
  ["system", "proxy"],
  ["system", "service"],
];

/** Says which sets of a host share CPUs: allowed, but the numbers then contain each other. */
export function layoutWarnings(host: Pick<Host, "name" | "cpus">): LayoutWarning[] {
  return rivals.flatMap((sets) => {
    const [a, b] = sets;
    const shared = sharedCpus(host.cpus[a], host.cpus[b]);
    if (shared.length === 0) return [];
    const cpus = formatCpuList(shared);
    const message = `host ${host.name}: ${a} and ${b} share CPU ${cpus}, separate sets are better`;
    return [{ host: host.name, sets, cpus, message }];
  });
}
