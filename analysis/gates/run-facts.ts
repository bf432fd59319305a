/** What several gates ask of a record. */
import type { RunRecord } from "../../contracts/record.ts";

export function isCold({ treatment }: Pick<RunRecord, "treatment">): boolean {
  return treatment.condition === "cold-start";
}

/** Whether sidecars close connections after so many requests, so that they open and greet anew. */
export function closesConnections({ deployment }: Pick<RunRecord, "deployment">): boolean {
  return Number(deployment.parameters["requestsPerConnection"] ?? 0) > 0;
}

/** Seconds in which requests were due. */
export function planSeconds({ loadPlan }: Pick<RunRecord, "loadPlan">): number {
  return (loadPlan.intervalNs * loadPlan.planned) / 1e9;
}

/** Keys whose values differ, as `where.key`. */
export function differences(wanted: object, found: object, where: string): string[] {
  const [a, b] = [wanted, found] as [Record<string, unknown>, Record<string, unknown>];
  return Object.keys({ ...a, ...b })
    .filter((key) => canonical(a[key]) !== canonical(b[key]))
    .map((key) => `${where}.${key}`);
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) {
    return value === undefined ? "absent" : JSON.stringify(value);
  }
  const entries = Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${key}:${canonical(inner)}`).join(",")}}`;
}

/** What must not run beside a measurement: it slows what it looks at. */
export const profilerNames: readonly string[] = [
  ...["perf", "strace", "ltrace", "gdb", "bpftrace", "trace-cmd", "sysdig", "valgrind"],
  ...["tcpdump", "tshark", "dumpcap", "ngrep"],
  ...["top", "htop", "atop", "iotop", "sar", "node_exporter", "telegraf", "collectd", "netdata"],
];

/** Units that come and go with sessions and housekeeping that touches no path. */
export const transientUnits = new RegExp(
  "^(ztbench-|run-|session-|user@|user-runtime-dir@|ssh@|sshd@|systemd-tmpfiles-clean\\.|dbus|" +
    "systemd-(hostnamed|logind|timedated))",
);
