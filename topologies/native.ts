/**
 * The native runtime: a topology on a testbed becomes systemd units, their configuration and the
 * deployment document. Pure.
 */
import type { Deployment, Unit } from "../contracts/deployment.ts";
import { type Host, hostOf, type Testbed } from "../contracts/testbed.ts";
import { digestOf, type HostPayload, payloadIdOf, type PayloadUnit } from "../hosts/payload.ts";
import { plannedDeployment } from "./deployment.ts";
import { endpointOf, rootOf, unitNameOf } from "./endpoints.ts";
import { firewallTable, type PortGuard, renderFirewall } from "./firewall.ts";
import { checksOf, nodeOf, nodesOfKind, type Topology, type TopologyNode } from "./model.ts";
import type { NodeContext, NodeRendering } from "./node-unit.ts";
import { renderNode } from "./nodes.ts";
import type { Parameters } from "./parameters.ts";
import { identityPayload, identityRootOf, impostorDirectoryOf } from "./trust.ts";
import { meshAlpn } from "./wire.ts";

/** What a topology is put on. */
export type Place = {
  readonly testbed: Testbed;
  /** What the hosts really grant, which may be less than the testbed document asks for. */
  readonly scheduling: "rr" | "other";
  /** Directory of the programs on every host. */
  readonly programs: string;
};

export type Rendering = {
  /** What is put on hosts; more than one on a host if the one needs what the other made. */
  readonly hosts: readonly HostPayload[];
  readonly deployment: Deployment;
};

/** Everything that a topology puts on the hosts, and what load needs to know of it. */
export function renderNative(topology: Topology, parameters: Parameters, place: Place): Rendering {
  const context: NodeContext = { topology, parameters, ...place };
  const nodes = topology.nodes
    .filter((node) => node.kind !== "load")
    .map((node) => ({ node, ...renderNode(node, context) }));
  const hosts = place.testbed.hosts
    .filter((host) => nodes.some(({ node }) => placed(node, host, place.testbed)))
    .map((host) => {
      const here = nodes.filter(({ node }) => placed(node, host, place.testbed));
      return payloadOf(topology, host, here, place.testbed);
    });
  const identities = nodesOfKind(topology, "sidecar").map((node) =>
    identityPayload(topology, node, place.testbed, place.programs),
  );
  const all = [...identities, ...hosts];
  return { hosts: all, deployment: deploymentOf(topology, parameters, place, all, nodes) };
}

/** Directories of a topology on its hosts, in the order in which they can be removed. */
export function rootsOf(topology: Topology): string[] {
  return [rootOf(topology), identityRootOf(topology)];
}

/** Whether a node is on a host: the first one that has its role. */
function placed(node: TopologyNode, host: Host, testbed: Testbed): boolean {
  return hostOf(testbed, node.role).name === host.name;
}

function payloadOf(
  topology: Topology,
  host: Host,
  nodes: readonly ({ node: TopologyNode } & NodeRendering)[],
  testbed: Testbed,
): HostPayload {
  const guards = nodes.flatMap(({ node }) => guardsOf(topology, node, testbed));
  // An issuer first: the others on its host may ask it for keys when they start.
  const ordered = [...nodes].sort((a, b) => rank(a.node) - rank(b.node));
  const issuers = nodes
    .flatMap(({ node }) => checksOf(topology, "jwt", node.id))
    .map((check) =>
      payloadIdOf({ host: hostOf(testbed, nodeOf(topology, check.issuer).role).name }),
    );
  const steps = nodes.flatMap((node) => node.steps ?? []);
  const received = nodes.flatMap(({ receives }) => Object.entries(receives ?? {}));
  return {
    host: host.name,
    root: rootOf(topology),
    directories: nodes.flatMap(({ directories }) => directories),
    files: nodes.flatMap(({ files }) => files),
    units: ordered.map(({ unit }) => unit satisfies PayloadUnit),
    ...(guards.length === 0
      ? {}
      : { firewall: { table: firewallTable, text: renderFirewall(guards) } }),
    ...(steps.length === 0 ? {} : { steps }),
    ...(received.length === 0 ? {} : { receives: Object.fromEntries(received) }),
    after: [...new Set(issuers)].filter((id) => id !== payloadIdOf({ host: host.name })),
  };
}

const rank = (node: TopologyNode) => (node.kind === "issuer" ? 0 : 1);

function guardsOf(topology: Topology, node: TopologyNode, testbed: Testbed): PortGuard[] {
  return checksOf(topology, "network", node.id).map((check) => ({
    port: endpointOf(topology, testbed, node.id).port,
    allows: check.allows.map((id) => hostOf(testbed, nodeOf(topology, id).role).dataAddress),
  }));
}

function deploymentOf(
  topology: Topology,
  parameters: Parameters,
  { testbed, scheduling }: Place,
  hosts: readonly HostPayload[],
  nodes: readonly NodeRendering[],
): Deployment {
  return plannedDeployment(topology, {
    runtime: "native",
    testbed,
    parameters,
    networkNamespace: undefined,
    endpointOf: (id) => endpointOf(topology, testbed, id),
    unitNameOf,
    alpn: meshAlpn,
    certificates: impostorDirectoryOf(topology),
    shutOut: { outcome: "refused" },
    units: nodes.map(({ deployed }): Unit => deployed),
    admin: nodes.flatMap(({ deployed, adminUrl }) =>
      adminUrl === undefined ? [] : [{ unit: deployed.name, host: deployed.host, url: adminUrl }],
    ),
    statistics: nodes.flatMap(({ deployed, statisticsUrl }) =>
      statisticsUrl === undefined
        ? []
        : [{ unit: deployed.name, host: deployed.host, url: statisticsUrl }],
    ),
    scheduling,
    configurationDigest: digestOf(hosts),
  });
}
