/**
 * What a topology is: who proves identity, over which legs, checked where. Data only; the renderers
 * of a runtime turn it into units, configuration, wire facts and probes.
 */
import type { Runtime } from "../contracts/deployment.ts";
import type { Role } from "../contracts/testbed.ts";
import type { ParameterName } from "./parameters.ts";

export const nodeKinds = ["load", "gateway", "sidecar", "service", "issuer", "control"] as const;
export type NodeKind = (typeof nodeKinds)[number];

export type TopologyNode = {
  /** Unique in its topology; also the stem of its unit's name. */
  readonly id: string;
  readonly kind: NodeKind;
  readonly role: Role;
  /** Service account that a sidecar speaks for; its certificate names it. */
  readonly account?: string;
  /** Of a sidecar: `bytes` are passed on unread; absent: it speaks HTTP on both sides. */
  readonly carries?: "bytes";
  /** Of a service: `nothing` has no identity, counters or checks; absent: it tells who called. */
  readonly answers?: "nothing";
};

export type HttpVersion = "1.1" | "2";
export type KeyType = "rsa-2048" | "ecdsa-p256";

/** A hop of the request path, from the node that connects to the node that listens. */
export type TopologyLeg = {
  readonly from: string;
  readonly to: string;
  readonly http: HttpVersion;
  readonly tls:
    { readonly mode: "none" } | { readonly mode: "server" | "mutual"; readonly keyType: KeyType };
};

/** What is verified, and by which node. */
export type Check =
  /** A bearer token, by the key set that the issuer node serves. */
  | { readonly kind: "jwt"; readonly at: string; readonly issuer: string }
  /** Identity headers are believed, because only `setBy` can have set them. */
  | { readonly kind: "header"; readonly at: string; readonly setBy: string }
  /** The peer's certificate names the node `identity`. */
  | { readonly kind: "peer"; readonly at: string; readonly identity: string }
  /**
   * Rules are evaluated, in the proxy itself or by a decision service: on who calls, or on what is
   * asked for where nobody has proved who calls.
   */
  | {
      readonly kind: "policy";
      readonly at: string;
      readonly where: "local" | "remote";
      readonly on: "caller" | "request";
    }
  /** Packets reach the node only from the hosts of these nodes. */
  | { readonly kind: "network"; readonly at: string; readonly allows: readonly string[] };

export type Topology = {
  readonly name: string;
  /** One line for people. */
  readonly summary: string;
  readonly runtimes: readonly Runtime[];
  readonly nodes: readonly TopologyNode[];
  /** The request path in order, from the load node to the service. */
  readonly legs: readonly [TopologyLeg, ...TopologyLeg[]];
  readonly checks: readonly Check[];
  readonly parameters: readonly ParameterName[];
};

/** The node of that id; its absence is a mistake in the catalogue. */
export function nodeOf(topology: Topology, id: string): TopologyNode {
  const node = topology.nodes.find((candidate) => candidate.id === id);
  if (node === undefined) throw new Error(`topology ${topology.name} has no node ${id}`);
  return node;
}

export function nodesOfKind(topology: Topology, kind: NodeKind): TopologyNode[] {
  return topology.nodes.filter((node) => node.kind === kind);
}

/** The checks of one kind, at one node if named. */
export function checksOf<K extends Check["kind"]>(
  topology: Topology,
  kind: K,
  at?: string,
): Extract<Check, { kind: K }>[] {
  return topology.checks.filter(
    (check): check is Extract<Check, { kind: K }> =>
      check.kind === kind && (at === undefined || check.at === at),
  );
}

/** The leg that ends at a node, absent for nodes off the request path. */
export function legTo(topology: Topology, id: string): TopologyLeg | undefined {
  return topology.legs.find((leg) => leg.to === id);
}

/** Whether requests go through sidecars, which a control plane tells what to do. */
export function isMesh(topology: Topology): boolean {
  return nodesOfKind(topology, "control").length > 0;
}

/** The leg that leaves a node, absent for the last service and nodes off the request path. */
export function legFrom(topology: Topology, id: string): TopologyLeg | undefined {
  return topology.legs.find((leg) => leg.from === id);
}
