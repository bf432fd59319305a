/** Where the nodes of a topology listen on the hosts of a testbed, runtime `native`. */
import { type Host, hostOf, type Testbed } from "../contracts/testbed.ts";
import { legTo, nodeOf, type NodeKind, type Topology, type TopologyNode } from "./model.ts";

/** TCP ports by node kind; nodes of one kind never share a host. */
const dataPorts = {
  gateway: 8000,
  // A sidecar takes what is meant for its service, so it is reached where that is.
  sidecar: 8080,
  service: 8080,
  issuer: 8090,
  control: 15012,
} as const satisfies Record<Exclude<NodeKind, "load">, number>;

/**
 * The address that clients in a mesh send to. No host has it: it exists only so that the client's
 * sidecar takes just this traffic and no other.
 */
export const serviceAddress = "198.18.64.1";

/** Loopback ports of what is only asked on the host itself. */
export const adminPorts = { gateway: 9901, sidecar: 15000, service: 9902 } as const;

/** Directory of all files of a topology on its hosts; gone after a reboot, like the units. */
export function rootOf(topology: Topology): string {
  return `/run/ztbench/${topology.name}`;
}

/** Directory of the token files on the issuer's host. */
export function tokenDirectoryOf(topology: Topology): string {
  return `${rootOf(topology)}/tokens`;
}

/** Port on which a node takes requests. */
export function dataPortOf(node: TopologyNode): number {
  if (node.kind === "load") throw new Error(`node ${node.id} sends load and listens nowhere`);
  return dataPorts[node.kind];
}

export function unitNameOf(node: TopologyNode): string {
  return `ztbench-${node.id}.service`;
}

export type Endpoint = { readonly host: Host; readonly address: string; readonly port: number };

/** Where a node listens for requests. */
export function endpointOf(topology: Topology, testbed: Testbed, id: string): Endpoint {
  const node = nodeOf(topology, id);
  const port = dataPortOf(node);
  const host = hostOf(testbed, node.role);
  const address = isBesideLoad(topology, node) ? serviceAddress : host.dataAddress;
  return { host, address, port };
}

/** Whether it is the sidecar that load is sent through, which is on the load's own host. */
export function isBesideLoad(topology: Topology, node: TopologyNode): boolean {
  const leg = legTo(topology, node.id);
  return node.kind === "sidecar" && leg !== undefined && nodeOf(topology, leg.from).kind === "load";
}

export function listenOf({ address, port }: Endpoint): string {
  return `${address}:${port}`;
}
