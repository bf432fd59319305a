/** Where pods go: names, addresses, images and CPUs of a topology in a cluster. Pure. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import type { ClusterKind, ClusterSettings, CpuLayout, Host } from "../../contracts/testbed.ts";
import { hostOf, type Testbed } from "../../contracts/testbed.ts";
import { addressIn } from "../../hosts/cluster/cluster.ts";
import { dataPortOf, rootOf, type Endpoint } from "../endpoints.ts";
import { nodeOf, nodesOfKind, type Topology, type TopologyNode } from "../model.ts";
import type { Parameters } from "../parameters.ts";

/** Images by what they hold, as pods name them: with their digest. */
export type PodImages = {
  /** Programs of the service under test, in the root directory. */
  readonly service: string;
  /** Envoy, in the search path. */
  readonly envoy: string;
  /** Does nothing but wait: it keeps the network namespace that load is sent from. */
  readonly pause: string;
};

/** What pods are put on. */
export type PodPlace = {
  readonly testbed: Testbed;
  /** Directory of the programs on every host. */
  readonly programs: string;
  readonly images: PodImages;
  /** Where pods find the control plane, for clusters without a name server. */
  readonly controlAddress?: string;
};

export type PodContext = PodPlace & {
  readonly topology: Topology;
  readonly parameters: Parameters;
};

/** Name of the pod that load is sent from. */
export const loadPod = "load";

/** Name of the container that Istio adds to a pod. */
export const sidecarContainer = "istio-proxy";

/** Directory of what hosts know of the pods on them. */
export function podsRootOf(topology: Topology): string {
  return `${rootOf(topology)}.pods`;
}

/** Path on the pod's host that leads to its network namespace as long as it lives. */
export function namespaceOf(topology: Topology, pod: string): string {
  return `${podsRootOf(topology)}/${pod}.net`;
}

/** Path on every host with pods that leads to the cgroup hierarchies of its container runtime. */
export function cgroupRootOf(topology: Topology): string {
  return `${podsRootOf(topology)}/cgroup`;
}

/** What the resources of a node are counted as. */
export function containerUnitOf(node: Pick<TopologyNode, "id">): string {
  return `ztbench-${node.id}.container`;
}

/** Load and service in the network of their hosts: the first rung of the ladder. */
export function usesHostNetwork({ parameters }: Pick<PodContext, "parameters">): boolean {
  return parameters.hostNetwork === 1;
}

/** The cluster of the testbed; the caller has made sure that there is one. */
export function clusterOf(testbed: Testbed): ClusterSettings & { kind: "k3s" | "kubernetes" } {
  const { clusterKind, cluster } = testbed;
  if (cluster === undefined || clusterKind === "none") {
    throw new Error(`testbed ${testbed.name} has no cluster`);
  }
  return { ...cluster, kind: clusterKind };
}

/**
 * Places in the service network. The first sixteen are never given away by the cluster itself, so
 * addresses are known before anything is deployed, and no name server is asked for them.
 */
const servicePlaces = { service: 11, gateway: 12 } as const;

/** Where clients of a node send to. */
export function podEndpointOf(context: PodContext, id: string): Endpoint {
  const { topology, testbed } = context;
  const node = nodeOf(topology, id);
  const host = hostOf(testbed, node.role);
  const port = dataPortOf(node);
  if (node.kind === "issuer" || usesHostNetwork(context)) {
    return { host, address: host.dataAddress, port };
  }
  const place = node.kind === "gateway" ? servicePlaces.gateway : servicePlaces.service;
  return { host, address: addressIn(clusterOf(testbed).serviceNetwork, place), port };
}

/** The sidecar that is in the same pod as a service, if there is one. */
export function sidecarOf(topology: Topology, service: TopologyNode): TopologyNode | undefined {
  const leg = topology.legs.find(({ to }) => to === service.id);
  const before = leg && nodeOf(topology, leg.from);
  return before?.kind === "sidecar" ? before : undefined;
}

/** The sidecar that load is sent through, if there is one. */
export function loadSidecarOf(topology: Topology): TopologyNode | undefined {
  const [first] = topology.legs;
  return nodesOfKind(topology, "sidecar").find(({ id }) => id === first.to);
}

export type CpuShare = {
  /** As Kubernetes writes it. */
  readonly quantity: string;
  /** Threads that do the work. */
  readonly threads: number;
};

/** Enough to count as Guaranteed where containers share CPUs; the rest is never withheld. */
export const sharedQuantity = "250m";

/**
 * CPUs of a container: as many as the testbed reserves for its kind, for itself; a share where the
 * testbed reserves none, or the same ones for another container of the pod.
 */
export function cpuShareOf(
  host: Host,
  set: keyof CpuLayout,
  beside: readonly (keyof CpuLayout)[] = [],
): CpuShare {
  const own = parseCpuList(host.cpus[set]);
  const others = new Set(beside.flatMap((other) => parseCpuList(host.cpus[other])));
  const isAlone = own.length > 0 && !own.some((cpu) => others.has(cpu));
  const threads = Math.max(1, own.length);
  return { quantity: isAlone ? String(own.length) : sharedQuantity, threads };
}

/** Whether a host has CPUs for pods besides those of one kind of container. */
export function hasOtherPodCpus(host: Host, set: "proxy" | "service"): boolean {
  const own = new Set(parseCpuList(host.cpus[set]));
  const forPods = [host.cpus.proxy, host.cpus.service].flatMap((list) => parseCpuList(list));
  return forPods.some((cpu) => !own.has(cpu));
}

/** k3s pulls, or finds what was imported; a lab has no registry to ask. */
export function pullPolicyOf(kind: ClusterKind): "IfNotPresent" | "Never" {
  return kind === "kubernetes" ? "Never" : "IfNotPresent";
}
