/**
 * What a gate is: a number of the method's list, a declared limit for every setting, and a pure
 * judgement of one finding. The table of all gates is in `table.ts`.
 */
import type { Runtime } from "../../contracts/deployment.ts";
import { type Cell, numberOf } from "../cell.ts";
import type { GateInput } from "./input.ts";

export type RunVerdict = "VALID" | "WARN" | "INVALID";
export type Severity = "warn" | "invalid";

/** Every gate by its id, with its number in the method's list; G0 is not in that list. */
export const gateNumbers = {
  completed: "G0",
  sent: "G1",
  windows: "G1",
  goodput: "G2",
  lag: "G3",
  arrivals: "G4",
  workers: "G5",
  generator: "G6",
  "generator-core": "G6",
  "generator-steal": "G6",
  "generator-wait": "G6",
  "generator-pauses": "G6",
  connections: "G8",
  "new-connections": "G8",
  wire: "G9",
  handshakes: "G9",
  sessions: "G9",
  rotations: "G9",
  "proxy-errors": "G10",
  restarts: "G10",
  digest: "G10",
  images: "G10",
  "proxy-configuration": "G10",
  "proxy-workers": "G11",
  throttling: "G12",
  "out-of-memory": "G12",
  "memory-growth": "G12",
  nic: "G13",
  "softnet-drops": "G13",
  "softnet-squeezes": "G13",
  retransmits: "G14",
  "listen-drops": "G14",
  "tcp-timeouts": "G14",
  ports: "G14",
  conntrack: "G14",
  settled: "G15",
  trend: "G15",
  frequency: "G16",
  "thermal-throttling": "G16",
  temperature: "G16",
  "kernel-log": "G17",
  services: "G17",
  machine: "G17",
  "cluster-versions": "G17",
  tuning: "G18",
  "tuning-after": "G18",
  "pod-sysctls": "G18",
  placement: "G19",
  "foreign-load": "G19",
  "pod-quality": "G19",
  clock: "G20",
  "clock-source": "G20",
  "clock-offset": "G20",
  rows: "G21",
  overflow: "G21",
  intervals: "G21",
  probes: "G22",
  bodies: "G22",
  plan: "G23",
  profilers: "G25",
  observer: "G25",
} as const;

export type GateId = keyof typeof gateNumbers;
export type GateNumber = `G${number}`;

export type GateResult = {
  readonly number: GateNumber;
  readonly id: GateId;
  /** `unavailable`: its source does not exist here; it does not pass, it says nothing. */
  readonly outcome: "pass" | "warn" | "invalid" | "unavailable";
  readonly measured: string;
  readonly threshold: string;
};

/** Where a run took place: thresholds are declared for each of these. */
export const settings = ["lab native", "lab k3s", "metal native", "metal k3s"] as const;
export type Setting = (typeof settings)[number];

/** `value` is in the unit of the gate; what exceeds `worse` is invalid where the rest warns. */
export type Limit = {
  readonly severity: Severity;
  readonly value: number;
  readonly worse?: number;
};
/** Why a setting cannot have the gate. */
export type Absent = { readonly absent: string };
export type Limits = Readonly<Record<Setting, Limit | Absent>>;

/** What a judgement found: a number against the limit, a yes or no, or no source. */
export type Finding =
  | { readonly kind: "checked"; readonly passed: boolean; readonly measured: string }
  | { readonly kind: "missing"; readonly reason: string }
  | { readonly kind: "measured"; readonly value: number; readonly measured: string };

export type Gate = {
  readonly id: GateId;
  /** What it shows, for people. */
  readonly shows: string;
  readonly limits: Limits;
  /** What is wanted, for people; `input` is there when a run is judged. */
  readonly wanted: (limit: number, input?: GateInput) => string;
  /** How a measured value is compared with the limit; of those that only check, unused. */
  readonly compare?: "at most" | "less than" | "at least";
  /** The limit of this very run, where it depends on more than the setting. */
  readonly limitOf?: (limit: number, input: GateInput) => number;
  readonly judge: (input: GateInput) => Finding;
};

/** The same limit everywhere. */
export function everywhere(severity: Severity, value = 0): Limits {
  return byClass({ severity, value }, { severity, value });
}

/** One for labs, whose hosts share CPUs, and one for metal. */
export function byClass(lab: Limit | Absent, metal: Limit | Absent): Limits {
  return { "lab native": lab, "lab k3s": lab, "metal native": metal, "metal k3s": metal };
}

/** One for systemd units and one for pods. */
export function byRuntime(native: Limit | Absent, k3s: Limit | Absent): Limits {
  return { "lab native": native, "metal native": native, "lab k3s": k3s, "metal k3s": k3s };
}

export const warn = (value = 0, worse?: number): Limit =>
  worse === undefined ? { severity: "warn", value } : { severity: "warn", value, worse };
export const invalid = (value = 0): Limit => ({ severity: "invalid", value });
export const absent = (reason: string): Absent => ({ absent: reason });
/** Why a lab has no gate of what belongs to a machine. */
export const oneMachine = "the hosts of a lab are one machine";

export const checked = (passed: boolean, measured: string): Finding => ({
  kind: "checked",
  passed,
  measured,
});
export const missing = (reason: string): Finding => ({ kind: "missing", reason });
export const measuredAs = (value: number, measured: string): Finding => ({
  kind: "measured",
  value,
  measured,
});

/** A cell as a finding; one without a number is a missing source. */
export function fromCell(cell: Cell, show: (value: number) => string): Finding {
  const number = numberOf(cell);
  if (number !== undefined) return measuredAs(number, show(number));
  return missing(cell.kind === "none" ? cell.reason : "not measured");
}

export function settingOf(testbedClass: "lab" | "metal", runtime: Runtime): Setting {
  return `${testbedClass} ${runtime}`;
}

/** The worst outcome decides. */
export function verdictOf(results: readonly Pick<GateResult, "outcome">[]): RunVerdict {
  if (results.some(({ outcome }) => outcome === "invalid")) return "INVALID";
  return results.some(({ outcome }) => outcome === "warn") ? "WARN" : "VALID";
}

/** One line for people: what was measured and what was wanted, by a run or a campaign. */
export function describeGate({
  id,
  measured,
  threshold,
}: Pick<GateResult, "measured" | "threshold"> & { readonly id: string }): string {
  return `${id}: ${measured}, wanted ${threshold}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.99 && share < 1 ? 2 : 1)} %`;
}

export function milliseconds(ns: number): string {
  return `${(ns / 1e6).toFixed(3)} ms`;
}
