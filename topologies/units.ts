/** Text of systemd units, with CPUs and scheduling class as the testbed says. Pure. */

export type UnitSpec = {
  readonly description: string;
  /** Program and arguments; quoted here. */
  readonly argv: readonly [string, ...string[]];
  readonly environment?: Readonly<Record<string, string>>;
  /** Root if absent. */
  readonly user?: string;
  readonly workingDirectory?: string;
  /** `notify`: the program tells when it is ready; `exec`: it cannot. */
  readonly type: "notify" | "exec";
  /** Kernel CPU list; empty means all CPUs. */
  readonly cpus: string;
  /** Slice of the service manager; that of all services if absent. */
  readonly slice?: string;
  readonly scheduling: "rr" | "other";
  /** Bound of the start, seconds. */
  readonly startSeconds: number;
};

/** Above the default of everything else on the host, below the kernel's own threads. */
const realtimePriority = 10;

/** Sockets for any load that a testbed can carry. */
const openFiles = 1_048_576;

/**
 * A unit that runs one program until it is stopped. It is never restarted: a program that dies
 * during a run must be seen. Hardening leaves out whatever adds work to each system call (seccomp
 * filters), since that would be measured as a cost of the topology.
 */
export function renderUnit(spec: UnitSpec): string {
  const environment = Object.entries(spec.environment ?? {}).map(
    ([name, value]) => `Environment=${quoteArgument(`${name}=${value}`)}`,
  );
  const realtime = ["CPUSchedulingPolicy=rr", `CPUSchedulingPriority=${realtimePriority}`];
  return [
    "[Unit]",
    `Description=${spec.description}`,
    "",
    "[Service]",
    `Type=${spec.type}`,
    `ExecStart=${spec.argv.map(quoteArgument).join(" ")}`,
    ...environment,
    ...(spec.user === undefined ? [] : [`User=${spec.user}`]),
    ...(spec.workingDirectory === undefined ? [] : [`WorkingDirectory=${spec.workingDirectory}`]),
    ...(spec.cpus === "" ? [] : [`CPUAffinity=${spec.cpus}`]),
    ...(spec.slice === undefined ? [] : [`Slice=${spec.slice}`]),
    ...(spec.scheduling === "rr" ? realtime : []),
    "CPUAccounting=yes",
    "MemoryAccounting=yes",
    `LimitNOFILE=${openFiles}`,
    `TimeoutStartSec=${spec.startSeconds}`,
    "TimeoutStopSec=5",
    "Restart=no",
    "UMask=0077",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "",
  ].join("\n");
}

/** One argument as systemd reads it: `%` and `$` are doubled, other odd text is quoted. */
export function quoteArgument(text: string): string {
  if (/[\n\0]/.test(text)) throw new Error("a unit cannot hold a line break in an argument");
  const plain = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[^\s"'\\;]+$/.test(plain)) return plain;
  return `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
