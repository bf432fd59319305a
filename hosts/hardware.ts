/** What hardware a host has, on a few lines, from its raw facts: for outputs of a stack. Pure. */
import { parseEthtool } from "./ethtool.ts";
import type { Facts } from "./facts.ts";

/** Where the settings come from, and which of them are told under which name. */
const told: readonly (readonly [string, string, readonly string[]])[] = [
  ["nic", "nic-driver", ["driver", "firmware-version", "bus-info"]],
  ["queues", "nic-channels", ["Combined"]],
  ["rings", "nic-rings", ["RX", "TX"]],
  ["coalescing", "nic-coalescing", ["Adaptive RX", "Adaptive TX", "rx-usecs", "rx-frames"]],
  ["pause", "nic-pause", ["Autonegotiate", "RX", "TX"]],
  ["private-flags", "nic-private", ["rx_cqe_compress", "rx_cqe_moder", "rx_striding_rq"]],
];

/** One line for each part of the hardware; what a host does not have says so. */
export function summariseHardware(facts: Facts): Record<string, string> {
  const nic = told.map(([name, fact, wanted]) => {
    const text = facts[fact] ?? "not available: no such fact";
    if (text.startsWith("not available")) return [name, text];
    const { current } = parseEthtool(text);
    const found = wanted.flatMap((key) => {
      const value = current[key];
      return value === undefined ? [] : [`${key} ${value}`];
    });
    return [name, found.join(", ") || "not available: nothing told"];
  });
  const interrupts = parseInterrupts(facts["irq-map"] ?? "");
  const irq = interrupts.map(({ name, cpus }) => `${name} on ${cpus}`).join(", ");
  return {
    ...(Object.fromEntries(nic) as Record<string, string>),
    interrupts: irq === "" ? (facts["irq-map"] ?? "not available: no such fact") : irq,
    cpu: cpuOf(facts["cpu-summary"] ?? ""),
  };
}

export type Interrupt = { readonly irq: number; readonly cpus: string; readonly name: string };

/** Reads the fact `irq-map`: number, CPUs that really serve it, and name of each interrupt. */
export function parseInterrupts(text: string): Interrupt[] {
  return text.split("\n").flatMap((line) => {
    const match = /^(\d+) (\d[\d,-]*) (\S+)$/.exec(line);
    return match === null
      ? []
      : [{ irq: Number(match[1]), cpus: match[2] ?? "", name: match[3] ?? "" }];
  });
}

/** Of the fact `cpu-summary`, which is lscpu's: the model, and how it is made up. */
function cpuOf(text: string): string {
  const fields = new Map(
    text.split("\n").map((line) => {
      const [name = "", ...rest] = line.split(":");
      return [name.trim(), rest.join(":").trim()] as const;
    }),
  );
  const count = (name: string) => fields.get(name) ?? "?";
  const model = fields.get("Model name");
  if (model === undefined) return "not available: lscpu does not tell";
  return (
    `${model}, ${count("Socket(s)")} × ${count("Core(s) per socket")} cores, ` +
    `${count("Thread(s) per core")} threads each, ${count("NUMA node(s)")} nodes`
  );
}
