/**
 * What a tuning knob is. Knobs are data; how a kind of knob is read and written (and so applied
 * and reverted) is said once, by `read_KIND` and `write_KIND` in `shell/knobs.sh`.
 */

/** What a value reaches: this decides whether a host that is a container may change it. */
export type KnobScope = "namespace" | "machine" | "device" | "route";

/**
 * - `sysctl`: target is a dotted name below /proc/sys
 * - `choice`: target is a file that shows its choices with the current one in brackets
 * - `file`: target is a file that holds the value
 * - `offload`: target is `NIC FEATURE` of ethtool -k
 * - `route`: target is `CIDR NIC`; the value is the congestion control of that route
 */
export type KnobKind = "sysctl" | "choice" | "file" | "offload" | "route";

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
export type KnobPlace = { readonly nic: string; readonly dataNetwork: string };

/** A sysctl whose id is its own name. */
export function sysctl(
  scope: "namespace" | "machine",
  name: string,
  want: string | number,
  why: string,
): Knob {
  return { id: name, scope, kind: "sysctl", target: name, want: String(want), why };
}
