/** Kernel CPU lists, as testbed documents hold them: reading, writing, and thread counts. */
import { Failure } from "./failure.ts";

/** Higher numbers than any machine has are typing errors, and must not fill the memory. */
export const highestCpu = 4095;

/**
 * Reads a kernel CPU list such as `0,4-7`; empty text is the empty set.
 *
 * @returns ascending numbers, each once
 * @throws Failure `document` for a list that is malformed, runs backwards or is out of range
 */
export function parseCpuList(text: string): number[] {
  if (text === "") return [];
  const cpus = new Set<number>();
  for (const range of text.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(range);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || last < first || last > highestCpu) {
      throw new Failure(
        "document",
        `CPU list: not usable, found "${range}" in "${text}", ` +
          `allowed are numbers and ascending ranges from 0 to ${highestCpu}`,
      );
    }
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}

/** Writes numbers as the shortest kernel CPU list; also what systemd's `CPUAffinity=` takes. */
export function formatCpuList(cpus: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const cpu of [...new Set(cpus)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range?.[1] === cpu - 1) range[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(",");
}

/**
 * Threads for a program on a set: `GOMAXPROCS` of Go, `--concurrency` of Envoy. `undefined` for a
 * set that is not reserved, where the program decides itself.
 */
export function threadsOf(list: string): number | undefined {
  const count = parseCpuList(list).length;
  return count === 0 ? undefined : count;
}
