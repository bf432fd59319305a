/** Transient systemd units of the load side: how they are named, pinned and started; pure. */

/** All units of the load side carry it, so that what a killed campaign left is found again. */
export const unitPrefixes = ["ztbench-load-", "ztbench-sample-"] as const;

export type Placement = {
  /** Kernel CPU list; empty means not pinned. */
  readonly cpus: string;
  readonly scheduling: "rr" | "other";
  /** Slice of the service manager; that of all services if absent. */
  readonly slice?: string;
};

export type TransientUnit = Placement & {
  readonly name: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** File on the host for what it prints to standard error. */
  readonly errorFile: string;
  /** Path of a network namespace that it runs in; absent: the host's own. */
  readonly networkNamespace?: string;
  /** `wait` for its end and take over its exit code, or go on once it has said that it is ready. */
  readonly type: "wait" | "notify";
};

/** The unit that sends the load of one run. A name is used once: the journal keeps old ones. */
export function loadUnitName(token: string, run: number): string {
  return `${unitPrefixes[0]}${token}-${run}.service`;
}

/** The unit of the vegeta command line's pre-warming. */
export function prewarmUnitName(token: string, run: number): string {
  return `${unitPrefixes[0]}${token}-${run}-prewarm.service`;
}

/** The unit that samples during one run. */
export function sampleUnitName(token: string, run: number): string {
  return `${unitPrefixes[1]}${token}-${run}.service`;
}

/** The command line of `systemd-run` that starts the unit. */
export function startCommand(unit: TransientUnit): string[] {
  const properties = [
    ...(unit.cpus === "" ? [] : [`CPUAffinity=${unit.cpus}`]),
    ...(unit.slice === undefined ? [] : [`Slice=${unit.slice}`]),
    ...(unit.scheduling === "rr"
      ? ["CPUSchedulingPolicy=rr", "CPUSchedulingPriority=10"]
      : ["CPUSchedulingPolicy=other"]),
    ...(unit.networkNamespace === undefined
      ? []
      : [`NetworkNamespacePath=${unit.networkNamespace}`]),
    "LimitNOFILE=1048576",
    "CPUAccounting=yes",
    `StandardError=file:${unit.errorFile}`,
  ];
  const environment = Object.entries({ NO_PROXY: "*", ...unit.environment });
  return [
    "systemd-run",
    "--quiet",
    "--collect",
    `--unit=${unit.name}`,
    unit.type === "wait" ? "--wait" : "--service-type=notify",
    ...properties.flatMap((property) => ["-p", property]),
    ...environment.flatMap(([name, value]) => ["-E", `${name}=${value}`]),
    "--",
    ...unit.command,
  ];
}
