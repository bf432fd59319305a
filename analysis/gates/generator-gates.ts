/** Gates of the load driver itself: it must never be what is measured. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { type Cell, none, numberOf, value } from "../cell.ts";
import { absent, byClass, type Gate, invalid, milliseconds, percent, warn } from "./gate.ts";
import { type Finding, fromCell, measuredAs, missing } from "./gate.ts";
import type { GateInput } from "./input.ts";

const sharedCpus = "all hosts share the CPUs of one machine";

const generator: Gate = {
  id: "generator",
  shows: "CPU time of the driver over that of its CPUs",
  limits: byClass(warn(0.7), invalid(0.7)),
  wanted: (limit, input) => {
    const cpus = input === undefined ? "its CPUs" : `CPUs ${input.record.generator.cpus}`;
    return `< ${percent(limit)} of ${cpus}`;
  },
  compare: "less than",
  judge: ({ resources }) => fromCell(resources.generatorShare, percent),
};

/** The greatest share among the CPUs of the driver, by what is read of each. */
function worstCore(
  { record, hosts }: GateInput,
  read: (core: { task: number; interrupt: number; steal: number }) => number,
): Finding {
  const cores = hosts.get(record.generator.host)?.cores;
  const own = parseCpuList(record.generator.cpus);
  if (cores === undefined || cores.size === 0) return missing("CPUs were not sampled");
  if (own.length === 0) return missing("the driver has no CPUs of its own");
  const shares = own.flatMap((cpu) => {
    const core = cores.get(cpu);
    return core === undefined ? [] : [{ cpu, share: read(core) }];
  });
  const [worst] = shares.sort((a, b) => b.share - a.share);
  return worst === undefined
    ? missing(`CPUs ${record.generator.cpus} were not sampled`)
    : measuredAs(worst.share, `${percent(worst.share)} of CPU ${worst.cpu}`);
}

const core: Gate = {
  id: "generator-core",
  shows: "the busiest single CPU of the driver, whatever kept it busy",
  limits: byClass(absent(sharedCpus), invalid(0.7)),
  wanted: (limit) => `< ${percent(limit)} of every one`,
  compare: "less than",
  judge: (input) => worstCore(input, ({ task, interrupt }) => task + interrupt),
};

const steal: Gate = {
  id: "generator-steal",
  shows: "time that a hypervisor took from a CPU of the driver",
  limits: byClass(warn(0.01), invalid(0)),
  wanted: (limit) => `<= ${percent(limit)} of every one`,
  compare: "at most",
  judge: (input) => worstCore(input, (one) => one.steal),
};

function waitOf({ record, resources }: GateInput): Cell {
  const { unit } = record.generator;
  return resources.units.find((use) => use.unit === unit)?.runQueueWait ?? none("not sampled");
}

const wait: Gate = {
  id: "generator-wait",
  shows: "time in which threads of the driver were ready but had no CPU, over the time passed",
  limits: byClass(warn(0.5), invalid(0.05)),
  wanted: (limit) => `<= ${percent(limit)}`,
  compare: "at most",
  judge: (input) => fromCell(waitOf(input), percent),
};

/** p99 of the pauses as a share of the response p99. */
function pauseShare({ pausesNs, latency }: GateInput): { cell: Cell; pauseNs: number } {
  if (pausesNs === undefined || pausesNs.length === 0) {
    return { cell: none("the driver told no garbage collection"), pauseNs: 0 };
  }
  const sorted = [...pausesNs].sort((a, b) => a - b);
  const pauseNs = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
  const responseNs = numberOf(latency.response.quantiles.p99);
  if (responseNs === undefined) return { cell: none("there is no response p99"), pauseNs };
  return { cell: value(pauseNs / responseNs, "share"), pauseNs };
}

const pauses: Gate = {
  id: "generator-pauses",
  shows: "pauses of the driver's garbage collections, p99 over the response p99",
  limits: byClass(warn(0.1), invalid(0.1)),
  wanted: (limit) => `< ${percent(limit)} of the response p99`,
  compare: "less than",
  judge: (input) => {
    const { cell, pauseNs } = pauseShare(input);
    return fromCell(cell, (share) => `${milliseconds(pauseNs)}, ${percent(share)}`);
  },
};

export const generatorGates: readonly Gate[] = [generator, core, steal, wait, pauses];
