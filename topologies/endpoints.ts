/** Where the nodes of a topology listen on the hosts of a testbed, runtime `native`. */
import { type Host, hostOf, type Testbed } from "../contracts/testbed.ts";
import { nodeOf, type NodeKind, type Topology, type TopologyNode } from "./model.ts";

/** TCP ports by node kind; nodes of one kind never share a host. */
const dataPorts = {
  gateway: 8000,
  sidecar: 8001,
  service: 8080,
  issuer: 8090,
} as const satisfies Record<Exclude<NodeKind, "load">, number>;

/** Loopback ports of what is only asked on the host itself. */
export const adminPorts = { gateway: 9901, sidecar: 9911, service: 9902 } as const;

/** Directory of all files of a topology on its hosts; gone after a reboot, like the units. */
export function rootOf(topology: Topology): string {
  return `/run/ztbench/${topology.name}`;
}

/** Directory of the token files on the issuer's host. */
export function tokenDirectoryOf(topology: Topology): string {
  return `${rootOf(topology)}/tokens`;
}

export function unitNameOf(node: TopologyNode): string {
  return `ztbench-${node.id}.service`;
}

export type Endpoint = { readonly host: Host; readonly address: string; readonly port: number };

/** Where a node listens for requests. */
export function endpointOf(topology: Topology, testbed: Testbed, id: string): Endpoint {
  const node = nodeOf(topology, id);
  if (node.kind === "load") throw new Error(`node ${id} sends load and listens nowhere`);
  const host = hostOf(testbed, node.role);
  return { host, address: host.dataAddress, port: dataPorts[node.kind] };
}

export function listenOf({ address, port }: Endpoint): string {
  return `${address}:${port}`;
}
