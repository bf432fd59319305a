/** The deployment document of a topology in a cluster: as planned, and as it came out. Pure. */
import {
  type Deployment,
  deploymentSchema,
  type Pod,
  podSchema,
} from "../../contracts/deployment.ts";
import { Failure } from "../../contracts/failure.ts";
import { hostOf } from "../../contracts/testbed.ts";
import { plannedDeployment } from "../deployment.ts";
import { unitNameOf } from "../endpoints.ts";
import { nodesOfKind, type TopologyNode } from "../model.ts";
import { istioAlpn, type MeshAlpn, meshAlpn } from "../wire.ts";
import { controlPod, type HostFacts, type PodStatus } from "./facts.ts";
import { podImpostorDirectoryOf } from "./impostors.ts";
import { shutOutBy } from "./network-policy.ts";
import {
  clusterOf,
  containerUnitOf,
  loadPod,
  namespaceOf,
  type PodContext,
  podEndpointOf,
  type PodPlace,
  usesHostNetwork,
} from "./place.ts";
import type { PlacedContainer, Workload } from "./workloads.ts";

/** What Envoys of the cluster offer each other: Istio's own on k3s, others in a lab. */
function alpnOf(context: PodContext): MeshAlpn {
  return clusterOf(context.testbed).kind === "k3s" ? istioAlpn : meshAlpn;
}

function unitOfNode(node: TopologyNode): string {
  return node.kind === "issuer" ? unitNameOf(node) : containerUnitOf(node);
}

/** The deployment document as far as it is known before anything is deployed. */
export function podDeployment(
  context: PodContext,
  workloads: readonly Workload[],
  native: Deployment["units"],
  configurationDigest: string,
): Deployment {
  const { topology, parameters, testbed } = context;
  return plannedDeployment(topology, {
    runtime: "k3s",
    testbed,
    parameters,
    networkNamespace: usesHostNetwork(context) ? undefined : namespaceOf(topology, loadPod),
    endpointOf: (id) => podEndpointOf(context, id),
    unitNameOf: unitOfNode,
    alpn: alpnOf(context),
    certificates: podImpostorDirectoryOf(context),
    shutOut: shutOutBy(clusterOf(testbed).kind),
    units: [...native, ...controlUnits(context), ...unitsOf(workloads)],
    admin: endpointsOf(workloads, ({ adminUrl }) => adminUrl),
    statistics: endpointsOf(workloads, ({ statisticsUrl }) => statisticsUrl),
    // Kubernetes gives no pod another scheduling class.
    scheduling: "other",
    configurationDigest,
  });
}

function controlUnits({ topology, testbed }: PodContext): Deployment["units"] {
  return nodesOfKind(topology, "control").map((node) => ({
    name: containerUnitOf(node),
    host: hostOf(testbed, node.role).name,
    kind: "control",
    program: "pilot-discovery",
    cpus: "",
    dataPlane: false,
  }));
}

function unitsOf(workloads: readonly Workload[]): Deployment["units"] {
  return workloads.flatMap(({ host, containers }) =>
    containers.flatMap(({ unit }) =>
      unit === undefined ? [] : [{ ...unit, host: host.name, cpus: "" }],
    ),
  );
}

function endpointsOf(
  workloads: readonly Workload[],
  urlOf: (container: Workload["containers"][number]) => string | undefined,
): Deployment["admin"] {
  return workloads.flatMap(({ host, containers, networkNamespace }) =>
    containers.flatMap((container) => {
      const url = urlOf(container);
      if (container.unit === undefined || url === undefined) return [];
      const place = networkNamespace === undefined ? {} : { networkNamespace };
      return [{ unit: container.unit.name, host: host.name, url, ...place }];
    }),
  );
}

export type Readback = {
  readonly pods: readonly PodStatus[];
  readonly hosts: HostFacts;
  readonly kind: "k3s" | "kubernetes";
  /** See `cgroupRootOf`. */
  readonly cgroupRoot: string;
  /** What the pods were rendered with. */
  readonly place: Pick<PodPlace, "images" | "controlAddress">;
  /** Of the cluster's own parts. */
  readonly versions: Readonly<Record<string, string>>;
};

/**
 * Adds what was read back of the pods.
 *
 * @throws Failure `testbed` if a pod is not there, not Guaranteed or without its sidecar
 */
export function completeDeployment(
  deployment: Deployment,
  workloads: readonly Workload[],
  readback: Readback,
): Deployment {
  const pods = workloads.map((workload) => completePod(workload, readback));
  const control = readback.hosts.containers.find(({ pod }) => pod === controlPod);
  const found = new Map([
    ...pods.flatMap(({ groups }) => groups),
    ...deployment.units
      .filter(({ kind }) => kind === "control")
      .flatMap(({ name }) => (control === undefined ? [] : [[name, control] as const])),
  ]);
  return deploymentSchema.parse({
    ...deployment,
    units: deployment.units.map((unit) => {
      const facts = found.get(unit.name);
      return facts === undefined ? unit : { ...unit, cpus: facts.cpuset, cgroup: facts.cgroup };
    }),
    cluster: {
      kind: readback.kind,
      cgroupRoot: readback.cgroupRoot,
      images: readback.place.images,
      ...(readback.place.controlAddress === undefined
        ? {}
        : { controlAddress: readback.place.controlAddress }),
      versions: { ...readback.versions, ...readback.hosts.versions },
      pods: pods.map(({ pod }) => pod),
    },
  } satisfies Deployment);
}

function completePod(workload: Workload, { pods, hosts }: Readback) {
  const { name, host, containers } = workload;
  const status = pods.find((pod) => pod.name === name);
  if (status === undefined) throw refused(name, "not in the cluster", "pulumi up --refresh");
  if (status.qosClass !== "Guaranteed") {
    const hint = "requests and limits must be equal in every container, the sidecar's too";
    throw refused(name, `is ${status.qosClass}, Guaranteed expected`, hint);
  }
  const read = containers.map((plan) => completeContainer(name, plan, status, hosts));
  return {
    pod: podSchema.parse({
      name,
      host: host.name,
      qosClass: status.qosClass,
      sysctls: hosts.sysctls[name] ?? {},
      containers: read.map(({ container }) => container),
    } satisfies Pod),
    groups: read.map(({ container, facts }) => [container.unit, facts] as const),
  };
}

function completeContainer(
  pod: string,
  plan: PlacedContainer,
  status: PodStatus,
  hosts: HostFacts,
) {
  const seen = status.containers.find(({ name }) => name === plan.name);
  const facts = hosts.containers.find((one) => one.pod === pod && one.container === plan.name);
  if (seen === undefined || facts === undefined) {
    throw refused(pod, `has no container ${plan.name}`, "is Istio's injector ready?");
  }
  return {
    facts,
    container: {
      name: plan.name,
      unit: plan.unit?.name ?? `${pod}.container`,
      image: seen.image,
      imageDigest: seen.imageId,
      ...(plan.image === undefined ? {} : { plannedImage: plan.image }),
      cpuset: facts.cpuset,
      exclusiveCpus: facts.exclusiveCpus,
      plannedCpus: plan.exclusiveCpus,
    },
  };
}

function refused(pod: string, problem: string, hint: string): Failure {
  return new Failure("testbed", `pod ${pod}: ${problem}`, { hint });
}
