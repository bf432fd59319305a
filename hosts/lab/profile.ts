/** The two kinds of lab, as data: what hosts need beyond the plain ones to be nodes. */
import type { ClusterKind, ClusterSettings } from "../../contracts/testbed.ts";

/** `native`: three systemd hosts. `kubernetes`: the same, able to run containers as well. */
export const labProfiles = ["native", "kubernetes"] as const;
export type LabProfile = (typeof labProfiles)[number];

export const clusterKindOf: Readonly<Record<LabProfile, ClusterKind>> = {
  native: "none",
  kubernetes: "kubernetes",
};

/** Packages of a node, beside those that every host of a lab has. */
export const nodePackages = [
  "conntrack",
  "containerd",
  "containernetworking-plugins",
  "ipset",
  "openssl",
  "runc",
] as const;

/** Units of those packages that would run beside the ones that a cluster brings along. */
export const nodeMaskedUnits = ["containerd.service"] as const;

/** Arguments of systemd-nspawn for a host that runs containers. */
export const nodeNspawnArguments = [
  // The kubelet reads the kernel's log, and the runtime gives each container a keyring.
  "--bind=/dev/kmsg",
  "--capability=CAP_SYSLOG",
  "--system-call-filter=add_key",
  "--system-call-filter=keyctl",
] as const;

/**
 * Networks of a lab with a cluster, all inside 198.18.0.0/15 and different for each number. Also
 * the data network: its addresses are routed on the machine, since the API server answers there.
 */
export function clusterNetworks(
  network: number,
): ClusterSettings & { readonly dataPrefix: string } {
  return {
    dataPrefix: `198.18.${32 + network}`,
    podNetwork: `198.19.${16 * network}.0/22`,
    serviceNetwork: `198.19.${16 * network + 8}.0/24`,
    apiPort: 6443,
    mesh: "istio",
  };
}
