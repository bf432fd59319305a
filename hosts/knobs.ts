/**
 * What a tuning knob is. Knobs are data; how a kind of knob is read and written (and so applied
 * and reverted) is said once, by `read_KIND` and `write_KIND` in `shell/knobs*.sh`.
 */
import { parseCpuList } from "../contracts/cpu-list.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";

/**
 * What a value reaches: this decides whether a host that is a container may change it. `manager` is
 * the service manager of the host and its control groups.
 */
export type KnobScope = "namespace" | "machine" | "device" | "route" | "manager";

/**
 * - `sysctl`: target is a dotted name below /proc/sys
 * - `choice`: target is a file that shows its choices with the current one in brackets
 * - `file`: target is a file that holds the value
 * - `each`: target is a glob of files that hold a word each
 * - `mask`: target is a glob of files that hold a CPU mask each; the value is hexadecimal
 * - `route`: target is `CIDR NIC`; the value is the congestion control of that route
 * - `offload`, `ring`, `coalesce`, `channels`, `pause`, `private`: target is `NIC NAME`, as ethtool
 *   prints them with -k, -g, -c, -l, -a and --show-priv-flags
 * - `qdisc`: target is a NIC; the value is the discipline of each of its queues, with its handle if
 *   somebody else chose it
 * - `irq`: target is `NIC QUEUE`; the value is the CPU list of the queue's interrupt
 * - `smt`: target is the file that controls second threads
 * - `latency`: target is `DEVICE MICROSECONDS`, what is asked for by whoever holds it open
 * - `swap`: target is the list of swap areas
 * - `cpuset`: target is `UNIT PROPERTY` of the service manager
 * - `memory`: target is `UNIT NIC`; the value is `nic-node` where the unit has memory of that node
 *   alone
 * - `partition`: target is a slice; the value is how it shares its CPUs
 * - `timers`: target is names of timers; the value is those that may start something
 */
export type KnobKind =
  | "sysctl"
  | "choice"
  | "file"
  | "each"
  | "mask"
  | "route"
  | "offload"
  | "ring"
  | "coalesce"
  | "channels"
  | "pause"
  | "private"
  | "qdisc"
  | "irq"
  | "smt"
  | "latency"
  | "swap"
  | "cpuset"
  | "memory"
  | "partition"
  | "timers";

export type Knob = {
  /** Name in journals, readbacks and records. */
  readonly id: string;
  readonly scope: KnobScope;
  readonly kind: KnobKind;
  readonly target: string;
  /** The value as it reads back, words separated by one space; `none` for an empty one. */
  readonly want: string;
  /** Why it is turned, one clause. */
  readonly why: string;
};

/** What knobs depend on besides the profile. */
export type KnobPlace = Pick<Host, "nic" | "cpus"> &
  Pick<Testbed, "dataNetwork" | "clusterKind"> & { readonly smt: "off" | "on" };

/** A sysctl whose id is its own name. */
export function sysctl(
  scope: "namespace" | "machine",
  name: string,
  want: string | number,
  why: string,
): Knob {
  return { id: name, scope, kind: "sysctl", target: name, want: String(want), why };
}

/** A CPU list as a mask of the kernel: hexadecimal, no leading zeros, `0` for the empty list. */
export function cpuMask(list: string): string {
  return parseCpuList(list)
    .reduce((mask, cpu) => mask | (1n << BigInt(cpu)), 0n)
    .toString(16);
}
