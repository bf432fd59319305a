/**
 * Renders the lab's networks: a data bridge in a namespace of its own, and one management link per
 * host into the machine's namespace. There is no forwarding, no translation and no default route.
 */
import type { Role } from "../../contracts/testbed.ts";
import { dataPrefixLength, type HostLayout, type LabLayout } from "./layout.ts";

/** Names inside the hosts, the same for all of them. */
export const dataInterface = "data0";
export const managementInterface = "mgmt0";
const bridge = "data";

/** `ip -batch` text for the switch namespace; the hosts' namespaces exist already. */
export function switchBatch(layout: LabLayout): string {
  const ports = layout.hosts.flatMap((host) => [
    `link add ${host.role} type veth peer name ${dataInterface} netns ${host.machine} ` +
      `address ${host.dataMac}`,
    `link set ${host.role} master ${bridge} up`,
  ]);
  return batch([
    "link set lo up",
    `link add ${bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`,
    `link set ${bridge} up`,
    ...ports,
  ]);
}

/** `ip -batch` text for the machine's namespace. */
export function machineBatch(layout: LabLayout): string {
  return batch(
    layout.hosts.flatMap((host) => [
      `link add ${host.link} type veth peer name ${managementInterface} netns ${host.machine}`,
      `link set ${host.link} alias "${layout.linkAlias}"`,
    ]),
  );
}

/**
 * `ip -batch` text that gives the machine its end of the management links.
 * A plain /32 with a route: a `peer` address is never answered for under arp_ignore=1.
 */
export function machineAddressBatch(layout: LabLayout): string {
  return batch(
    layout.hosts.flatMap((host) => [
      `addr add ${layout.machineAddress}/32 dev ${host.link}`,
      `link set ${host.link} up`,
      `route add ${host.managementAddress}/32 dev ${host.link} src ${layout.machineAddress}`,
      ...(isApiHost(layout, host)
        ? [
            `route add ${host.dataAddress}/32 via ${host.managementAddress} dev ${host.link} ` +
              `src ${layout.machineAddress}`,
          ]
        : []),
    ]),
  );
}

/** The API server of a cluster is the second door, at the data address of this host alone. */
const apiRole: Role = "gateway";

function isApiHost(layout: LabLayout, host: HostLayout): boolean {
  return layout.cluster !== undefined && host.role === apiRole;
}

/** `ip -batch` text for the namespace of one host. */
export function hostBatch(layout: LabLayout, host: HostLayout): string {
  return batch([
    "link set lo up",
    `addr add ${host.dataAddress}/${dataPrefixLength} dev ${dataInterface}`,
    `link set ${dataInterface} up`,
    `addr add ${host.managementAddress}/32 dev ${managementInterface}`,
    `link set ${managementInterface} up`,
    `route add ${layout.machineAddress}/32 dev ${managementInterface} ` +
      `src ${host.managementAddress}`,
  ]);
}

/** Settings of a host's namespace, as `key=value`. */
export const hostSysctls = [
  "net.ipv6.conf.all.disable_ipv6=1",
  "net.ipv6.conf.default.disable_ipv6=1",
  "net.ipv4.ip_forward=0",
  "net.ipv4.conf.all.rp_filter=1",
  "net.ipv4.conf.all.arp_ignore=1",
] as const;

/** Settings of the switch namespace; the bridge part is missing where bridges are not filtered. */
export const switchSysctls = [
  "net.ipv6.conf.all.disable_ipv6=1",
  "net.ipv6.conf.default.disable_ipv6=1",
  "net.bridge.bridge-nf-call-iptables=0",
  "net.bridge.bridge-nf-call-ip6tables=0",
  "net.bridge.bridge-nf-call-arptables=0",
] as const;

/** Settings of the machine's ends of the links; they vanish with the links. */
export function linkSysctls(layout: LabLayout): string[] {
  return layout.hosts.map((host) => `net.ipv6.conf.${host.link}.disable_ipv6=1`);
}

/**
 * nft text: a host may answer SSH, one of them an API client, and never open anything towards the
 * machine. The hook is bound to the lab's own links; no connection tracking, nothing global.
 */
export function guardRules(layout: LabLayout): string {
  const answers = layout.hosts.map(
    (host) =>
      `    iifname "${host.link}" ip saddr ${host.managementAddress} ` +
      `ip daddr ${layout.machineAddress} jump answers`,
  );
  const doors = layout.hosts
    .filter((host) => isApiHost(layout, host))
    .map(
      (host) =>
        `    iifname "${host.link}" ip saddr ${host.dataAddress} ` +
        `ip daddr ${layout.machineAddress} tcp sport ${layout.cluster?.apiPort ?? 0} ` +
        "tcp flags & (fin | syn | rst | ack) != syn accept",
    );
  return [
    `table netdev ${layout.prefix} {`,
    "  chain answers {",
    "    tcp sport 22 tcp flags & (fin | syn | rst | ack) != syn accept",
    "    icmp type echo-reply accept",
    "  }",
    "  chain guard {",
    `    type filter hook ingress devices = { ${layout.hosts.map((h) => h.link).join(", ")} } ` +
      "priority 0; policy drop;",
    "    ether type arp accept",
    ...answers,
    ...doors,
    "  }",
    "}",
    "",
  ].join("\n");
}

function batch(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}
