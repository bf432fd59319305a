/** Names and addresses of one lab, derived from its name and network number alone. */
import { createHash } from "node:crypto";
import { Failure } from "../../contracts/failure.ts";
import { type ClusterSettings, roles, type Role } from "../../contracts/testbed.ts";
import { clusterNetworks, type LabProfile } from "./profile.ts";

/** Where the hosts keep what must outlive their reboot. */
export const persistentPath = "/var/lib/ztbench";

/** Labs with different numbers can be up on one machine at the same time. */
export const highestNetwork = 15;

export const dataPrefixLength = 24;
const nativeDataPrefix = "198.18.0";
const firstManagementOctet = 16;
const hostOctets: Readonly<Record<Role, number>> = { client: 10, gateway: 20, server: 30 };

/** IFNAMSIZ is 16 including the terminating zero. */
const longestLinkName = 15;
const longestRole = Math.max(...roles.map((role) => role.length));
export const longestLabName = longestLinkName - longestRole - 1;

export type HostLayout = {
  readonly role: Role;
  /** Name of the nspawn machine, its network namespace and its systemd unit. */
  readonly machine: string;
  /** End of the management link in the machine's own namespace. */
  readonly link: string;
  readonly dataAddress: string;
  readonly dataMac: string;
  readonly managementAddress: string;
  readonly uuid: string;
};

export type LabLayout = {
  readonly name: string;
  readonly network: number;
  readonly profile: LabProfile;
  /** CIDR of the data addresses. */
  readonly dataNetwork: string;
  /** There if the hosts are to be nodes of a cluster. */
  readonly cluster: ClusterSettings | undefined;
  /** Prefix of namespaces, units and machines; also the cgroup and the nft table. */
  readonly prefix: string;
  /** Namespace that holds nothing but the data bridge. */
  readonly switchNamespace: string;
  readonly managementSubnet: string;
  /** Address of the machine on every management link. */
  readonly machineAddress: string;
  /** Text that marks the lab's links in the machine's namespace. */
  readonly linkAlias: string;
  readonly hosts: readonly HostLayout[];
};

/** Address of a role on the data network, the same in every lab without a cluster. */
export function dataAddressOf(role: Role, dataPrefix = nativeDataPrefix): string {
  return `${dataPrefix}.${hostOctets[role]}`;
}

/**
 * Derives every name and address of a lab.
 * @throws Failure `usage` when the name or the number cannot be used
 */
export function layLab(name: string, network: number, profile: LabProfile = "native"): LabLayout {
  checkName(name);
  checkNetwork(network);
  const { dataPrefix, ...cluster } =
    profile === "kubernetes" ? clusterNetworks(network) : { dataPrefix: nativeDataPrefix };
  const prefix = `ztlab-${name}`;
  const management = `198.18.${firstManagementOctet + network}`;
  return {
    name,
    network,
    profile,
    dataNetwork: `${dataPrefix}.0/${dataPrefixLength}`,
    cluster: "apiPort" in cluster ? cluster : undefined,
    prefix,
    switchNamespace: `${prefix}-switch`,
    managementSubnet: `${management}.0/24`,
    machineAddress: `${management}.1`,
    linkAlias: `ztbench lab ${name}`,
    hosts: roles.map((role) => ({
      role,
      machine: `${prefix}-${role}`,
      link: `${name}-${role}`,
      dataAddress: dataAddressOf(role, dataPrefix),
      dataMac: macOf(`${prefix}-${role}`),
      managementAddress: `${management}.${hostOctets[role]}`,
      uuid: uuidOf(`${prefix}-${role}`),
    })),
  };
}

/** All network namespaces of a lab, the switch last. */
export function namespacesOf(layout: LabLayout): string[] {
  return [...layout.hosts.map((host) => host.machine), layout.switchNamespace];
}

function checkName(name: string): void {
  const shown = JSON.stringify(name.length > 40 ? `${name.slice(0, 37)}...` : name);
  const hint = "./ztbench lab --help";
  if (!/^[a-z][a-z0-9]*$/.test(name)) {
    throw new Failure(
      "usage",
      `lab name: not usable, ${shown}, allowed are lower case letters and digits, letter first`,
      { hint },
    );
  }
  if (name.length > longestLabName) {
    throw new Failure(
      "usage",
      `lab name: too long for an interface name, ${name.length} characters in ${shown}, ` +
        `at most ${longestLabName} allowed`,
      { hint: `choose a shorter name: links are called NAME-ROLE, ${longestLinkName} characters` },
    );
  }
}

function checkNetwork(network: number): void {
  const fits = Number.isInteger(network) && network >= 0 && network <= highestNetwork;
  if (!fits) refuseNetwork(String(network));
}

/** @throws Failure `usage` with what was given instead of a network number */
export function refuseNetwork(given: string): never {
  throw new Failure(
    "usage",
    `lab network: out of range, ${given}, allowed are whole numbers 0 to ${highestNetwork}`,
    { hint: "./ztbench lab --help" },
  );
}

/** A locally administered unicast address, so that it stays the same over every boot. */
function macOf(seed: string): string {
  const digest = createHash("sha256").update(seed).digest();
  const tail = [...digest.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, "0"));
  return ["02", ...tail].join(":");
}

/** A version 4 shaped UUID; it becomes the machine id of the host. */
function uuidOf(seed: string): string {
  const hex = createHash("sha256").update(`${seed}/uuid`).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(12, 15)}`,
    `8${hex.slice(15, 18)}`,
    hex.slice(18, 30),
  ];
  return parts.join("-");
}
