/** Renders how a host's container is started, with or without systemd as the machine's PID 1. */
import { persistentPath, type HostLayout } from "./layout.ts";
import { type LabProfile, nodeNspawnArguments } from "./profile.ts";

export type NspawnInput = {
  readonly profile: LabProfile;
  readonly host: HostLayout;
  readonly baseDirectory: string;
  readonly keysDirectory: string;
  readonly persistentDirectory: string;
};

/**
 * UNIFIED_HIERARCHY: pure cgroup v2 inside, even on a hybrid machine, so that CPU accounting per
 * unit works. API_VFS_WRITABLE: with a namespace path nspawn would leave /proc/sys/net read-only;
 * vm.*, kernel.* and fs.* stay refused.
 */
export const nspawnEnvironment = {
  SYSTEMD_NSPAWN_API_VFS_WRITABLE: "network",
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: "1",
} as const;

/** The exit code by which nspawn asks to be started again, since its host reboots. */
export const rebootExitCode = 133;

/** Arguments of systemd-nspawn for one host. */
export function nspawnArgv(input: NspawnInput): string[] {
  const { host, keysDirectory: keys } = input;
  const sshKey = "/etc/ssh/ssh_host_ed25519_key";
  return [
    "systemd-nspawn",
    "--quiet",
    "--register=no",
    "--keep-unit",
    machineArgument(host.machine),
    `--hostname=${host.role}`,
    `--directory=${input.baseDirectory}`,
    "--read-only",
    "--volatile=overlay",
    "--boot",
    "--link-journal=no",
    "--console=pipe",
    `--network-namespace-path=/run/netns/${host.machine}`,
    // A namespace path makes nspawn drop it.
    "--capability=CAP_NET_ADMIN",
    "--resolv-conf=off",
    "--timezone=off",
    `--uuid=${host.uuid}`,
    `--bind-ro=${keys}/host_${host.role}:${sshKey}`,
    `--bind-ro=${keys}/host_${host.role}.pub:${sshKey}.pub`,
    `--bind-ro=${keys}/id.pub:/root/.ssh/authorized_keys`,
    persistentArgument(input.persistentDirectory),
    ...(input.profile === "kubernetes"
      ? [...nodeNspawnArguments, `--bind-ro=${keys}/hosts:/etc/hosts`]
      : []),
  ];
}

/** The argument by which a running nspawn is recognised. */
export function machineArgument(machine: string): string {
  return `--machine=${machine}`;
}

/** The argument that tells to which state directory a running nspawn belongs. */
export function persistentArgument(directory: string): string {
  return `--bind=${directory}:${persistentPath}`;
}

/** Second word in the command line of a watcher; the machine name follows. */
export const watchMark = "ztbench-lab-watch";

/**
 * Starts nspawn again when its host reboots. The container gets a cgroup of its own: without one,
 * all hosts would share one tree and see each other's units.
 */
const watchScript = [
  'for d in $ZTBENCH_WATCH_CGROUPS; do echo 0 >"$d/cgroup.procs" || exit 1; done',
  "shift",
  `code=${rebootExitCode}`,
  `while [ "$code" -eq ${rebootExitCode} ]; do`,
  '  ( for d in $ZTBENCH_HOST_CGROUPS; do echo 0 >"$d/cgroup.procs" || exit 1; done; exec "$@" )',
  "  code=$?",
  "done",
  'exit "$code"',
].join("\n");

/** Arguments of the watcher, for a machine whose PID 1 is not systemd. */
export function watchArgv(machine: string, nspawn: readonly string[]): string[] {
  return ["sh", "-c", watchScript, watchMark, machine, ...nspawn];
}

/** Environment of the watcher; cgroup directories hold no spaces. */
export function watchEnvironment(
  watchCgroups: readonly string[],
  hostCgroups: readonly string[],
): Record<string, string> {
  return {
    ...nspawnEnvironment,
    ZTBENCH_WATCH_CGROUPS: watchCgroups.join(" "),
    ZTBENCH_HOST_CGROUPS: hostCgroups.join(" "),
  };
}

/** Systemd unit of a host, where PID 1 is systemd. */
export function unitOf(machine: string): string {
  return `${machine}.service`;
}

/**
 * Arguments that start a host as a service of its own with a delegated cgroup; in the caller's
 * scope it would die with the caller's session.
 */
export function systemdRunArgv(
  machine: string,
  logFile: string,
  nspawn: readonly string[],
): string[] {
  const properties = [
    "Delegate=yes",
    "KillMode=mixed",
    "TasksMax=infinity",
    "TimeoutStopSec=8",
    `RestartForceExitStatus=${rebootExitCode}`,
    `SuccessExitStatus=${rebootExitCode}`,
    "RestartSec=100ms",
    `StandardOutput=append:${logFile}`,
    `StandardError=append:${logFile}`,
  ];
  return [
    "systemd-run",
    "--quiet",
    "--collect",
    `--unit=${unitOf(machine)}`,
    `--description=ztbench lab host ${machine}`,
    ...Object.entries(nspawnEnvironment).map(([key, value]) => `--setenv=${key}=${value}`),
    ...properties.map((property) => `--property=${property}`),
    "--",
    ...nspawn,
  ];
}
