/**
 * The runtime `k3s`: a topology on a testbed with a cluster becomes objects of Kubernetes, what the
 * hosts get besides, and the deployment document. Pure.
 */
import type { Deployment } from "../../contracts/deployment.ts";
import { hostOf } from "../../contracts/testbed.ts";
import { digestOf, type HostPayload } from "../../hosts/payload.ts";
import { dataPortOf, rootOf } from "../endpoints.ts";
import { renderPolicy, serviceHost } from "../istio.ts";
import { meshPolicyOf, portNameOf } from "../mesh.ts";
import { checksOf, isMesh, legTo, nodeOf, nodesOfKind, type Topology } from "../model.ts";
import { renderNode } from "../nodes.ts";
import type { Parameters } from "../parameters.ts";
import { podDeployment } from "./document.ts";
import { networkPolicy } from "./network-policy.ts";
import {
  type KubernetesObject,
  namespaceObject,
  serviceAccountObject,
  serviceObject,
} from "./objects.ts";
import {
  clusterOf,
  type PodContext,
  podEndpointOf,
  type PodPlace,
  podsRootOf,
  usesHostNetwork,
} from "./place.ts";
import { podPayloads } from "./readback.ts";
import { appOf, plainAccount, type Workload, workloadsOf } from "./workloads.ts";

export type PodRendering = {
  /** In the order in which they can be made; pods come after all of them. */
  readonly objects: readonly KubernetesObject[];
  readonly workloads: readonly Workload[];
  /** What hosts get before any pod. */
  readonly before: readonly HostPayload[];
  /** What hosts get once all pods are ready. */
  readonly after: readonly HostPayload[];
  /** As far as it is known before; `completeDeployment` adds what is read back. */
  readonly deployment: Deployment;
};

/** Everything that a topology puts into the cluster and on the hosts. */
export function renderPods(
  topology: Topology,
  parameters: Parameters,
  place: PodPlace,
): PodRendering {
  const context: PodContext = { topology, parameters, ...place };
  const workloads = workloadsOf(context);
  const objects = objectsOf(context, workloads);
  const issuers = nodesOfKind(topology, "issuer").map((node) => ({
    node,
    ...renderNode(node, { ...context, scheduling: "other" }),
  }));
  const before = issuers.map(({ node, files, directories, unit }): HostPayload => ({
    host: hostOf(place.testbed, node.role).name,
    root: rootOf(topology),
    directories,
    files,
    units: [unit],
    after: [],
  }));
  const after = podPayloads(context, workloads);
  const digest = digestOf([objects, workloads.map(({ object }) => object), before, after]);
  const native = issuers.map(({ deployed }) => deployed);
  return {
    objects,
    workloads,
    before,
    after,
    deployment: podDeployment(context, workloads, native, digest),
  };
}

/** Directories of a topology on its hosts, in the order in which they can be removed. */
export function podRootsOf(topology: Topology): string[] {
  return [podsRootOf(topology), rootOf(topology)];
}

function objectsOf(context: PodContext, workloads: readonly Workload[]): KubernetesObject[] {
  const { topology, parameters, testbed } = context;
  const { kind } = clusterOf(testbed);
  const accounts = nodesOfKind(topology, "sidecar").flatMap(({ account }) => account ?? []);
  return [
    namespaceObject(topology.name),
    ...[...new Set([plainAccount, ...accounts])].map((name) => serviceAccountObject(name)),
    ...workloads.flatMap(({ objects }) => objects),
    ...checksOf(topology, "network").map((check) => {
      const node = nodeOf(topology, check.at);
      const allows = check.allows.map((id) => appOf(nodeOf(topology, id)));
      const guard = { name: node.id, app: appOf(node), port: dataPortOf(node), allows };
      return networkPolicy(guard, kind);
    }),
    ...(isMesh(topology) ? renderPolicy(meshPolicyOf(topology, parameters)) : []),
    ...(usesHostNetwork(context) ? [] : servicesOf(context)),
  ];
}

/** Addresses that stay the same whatever pods come and go. */
function servicesOf(context: PodContext): KubernetesObject[] {
  const { topology } = context;
  const [meshName = ""] = serviceHost.split(".");
  return topology.nodes
    .filter(({ kind }) => kind === "service" || kind === "gateway")
    .map((node) => {
      const { address, port } = podEndpointOf(context, node.id);
      return serviceObject({
        name: node.kind === "service" ? meshName : node.id,
        address,
        port,
        portName: portNameOf(topology, legTo(topology, node.id)),
        selector: { app: appOf(node) },
      });
    });
}
