/** Which pods a topology has, and what is in them. Pure. */
import type { Unit } from "../../contracts/deployment.ts";
import { type Host, hostOf } from "../../contracts/testbed.ts";
import { adminPorts, dataPortOf, listenOf } from "../endpoints.ts";
import { renderGateway } from "../envoy.ts";
import { serviceLabels } from "../istio.ts";
import { checksOf, legFrom, legTo, nodesOfKind, type TopologyNode } from "../model.ts";
import { serviceArguments } from "../nodes.ts";
import { configMapObject, type KubernetesObject } from "./objects.ts";
import {
  clusterOf,
  containerUnitOf,
  type CpuShare,
  cpuShareOf,
  hasOtherPodCpus,
  loadPod,
  loadSidecarOf,
  namespaceOf,
  type PodContext,
  podEndpointOf,
  sharedQuantity,
  sidecarContainer,
  sidecarOf,
  usesHostNetwork,
} from "./place.ts";
import { type PodSpec, podObject, type SidecarSpec } from "./workload.ts";

/** A container of a pod, as the deployment document tells of it. */
export type ContainerPlan = {
  readonly name: string;
  /** Absent for what only waits. */
  readonly unit?: Pick<Unit, "name" | "kind" | "program" | "dataPlane">;
  /** Envoy's admin interface, in the pod's network. */
  readonly adminUrl?: string;
  /** A service's own counters, in the pod's network. */
  readonly statisticsUrl?: string;
};

/** The same with what its pod asks for. */
export type PlacedContainer = ContainerPlan & {
  /** CPUs for it alone; 0: it shares. */
  readonly exclusiveCpus: number;
  /** Absent where the mesh says which. */
  readonly image?: string;
};

export type Workload = {
  /** Name of the pod. */
  readonly name: string;
  readonly host: Host;
  readonly object: KubernetesObject;
  /** What it needs first. */
  readonly objects: readonly KubernetesObject[];
  readonly containers: readonly PlacedContainer[];
  /** Path of its network namespace on the host; absent if it is the host's own. */
  readonly networkNamespace?: string;
};

const loopback = "127.0.0.1";
const anyAddress = "0.0.0.0";
const statisticsUrl = `http://${loopback}:${adminPorts.service}/stats`;
const filesDirectory = "/etc/ztbench";
const gatewayFile = "gateway.json";
const sidecarMemory = "1Gi";

/** Service account of pods whose node names none. */
export const plainAccount = "plain";

/** The pods of a topology, in the order of its nodes. */
export function workloadsOf(context: PodContext): Workload[] {
  const { topology } = context;
  return [
    ...(usesHostNetwork(context) ? [] : [loadWorkload(context)]),
    ...nodesOfKind(topology, "gateway").map((node) => gatewayWorkload(node, context)),
    ...nodesOfKind(topology, "service").map((node) => serviceWorkload(node, context)),
  ];
}

/** The label `app` of a node's pod. */
export function appOf(node: TopologyNode): string {
  return node.kind === "service" ? serviceLabels.app : node.id;
}

/**
 * Load is sent from the network of a pod, not of the host, also where there is no sidecar: the
 * rungs of the ladder then differ in what they are named after, and the pod network is whole.
 */
function loadWorkload(context: PodContext): Workload {
  const { topology, testbed, images } = context;
  const host = hostOf(testbed, "client");
  const sidecar = loadSidecarOf(topology);
  return workload(context, host, sidecar, {
    name: loadPod,
    role: host.role,
    labels: { app: loadPod },
    account: sidecar?.account ?? plainAccount,
    container: {
      name: loadPod,
      image: images.pause,
      cpu: { quantity: "20m" },
      memory: "16Mi",
    },
  });
}

function serviceWorkload(node: TopologyNode, context: PodContext): Workload {
  const { topology, parameters, testbed, images } = context;
  const host = hostOf(testbed, node.role);
  const sidecar = sidecarOf(topology, node);
  const cpu = cpuShareOf(host, "service", sidecar === undefined ? [] : ["proxy"]);
  const isOnHost = usesHostNetwork(context);
  const port = dataPortOf(node);
  const [check] = checksOf(topology, "jwt", node.id);
  const issuer = check && listenOf(podEndpointOf(context, check.issuer));
  const listen = `${isOnHost ? host.dataAddress : anyAddress}:${port}`;
  const isNull = node.answers === "nothing";
  const program = isNull ? "ztnull" : "ztecho";
  const plan: ContainerPlan = {
    name: node.id,
    unit: { name: containerUnitOf(node), kind: "service", program, dataPlane: true },
    ...(isNull ? {} : { statisticsUrl }),
  };
  const spec: Omit<PodSpec, "kind"> = {
    name: node.id,
    role: node.role,
    labels: { app: appOf(node) },
    account: sidecar?.account ?? plainAccount,
    hostNetwork: isOnHost,
    container: {
      name: node.id,
      image: images.service,
      command: [
        `/${program}`,
        ...(isNull
          ? [`-listen=${listen}`, `-body-bytes=${parameters.bodyBytes}`]
          : serviceArguments(node, context, listen, issuer)),
      ],
      environment: { GOMAXPROCS: String(cpu.threads) },
      cpu,
      memory: "256Mi",
      port,
    },
  };
  return workload(context, host, sidecar, spec, plan);
}

function gatewayWorkload(node: TopologyNode, context: PodContext): Workload {
  const { topology, testbed, images } = context;
  const host = hostOf(testbed, node.role);
  // The cluster's own pods are on this host, too.
  const cpu = withRoom(host, cpuShareOf(host, "proxy"));
  const port = dataPortOf(node);
  const [before, after] = [legTo(topology, node.id), legFrom(topology, node.id)];
  const [check] = checksOf(topology, "jwt", node.id);
  if (before === undefined || after === undefined || check === undefined) {
    throw new Error(`gateway ${node.id}: needs a leg on each side and a jwt check`);
  }
  const admin = { address: loopback, port: adminPorts.gateway };
  const bootstrap = renderGateway({
    listen: { address: anyAddress, port },
    admin,
    downstreamHttp: before.http,
    upstream: podEndpointOf(context, after.to),
    upstreamHttp: after.http,
    issuer: podEndpointOf(context, check.issuer),
  });
  const plan: ContainerPlan = {
    name: node.id,
    unit: { name: containerUnitOf(node), kind: "proxy", program: "envoy", dataPlane: true },
    adminUrl: `http://${admin.address}:${admin.port}/`,
  };
  const spec: Omit<PodSpec, "kind"> = {
    name: node.id,
    role: node.role,
    labels: { app: appOf(node) },
    account: plainAccount,
    container: {
      name: node.id,
      image: images.envoy,
      command: [
        "envoy",
        ...["--config-path", `${filesDirectory}/${gatewayFile}`],
        "--disable-hot-restart",
        ...["--log-level", "warning"],
        ...["--concurrency", String(cpu.threads)],
      ],
      cpu,
      memory: "1Gi",
      port,
      files: { configMap: node.id, directory: filesDirectory },
    },
  };
  const files = configMapObject(node.id, { [gatewayFile]: bootstrap });
  return { ...workload(context, host, undefined, spec, plan), objects: [files] };
}

function workload(
  context: PodContext,
  host: Host,
  sidecar: TopologyNode | undefined,
  spec: Omit<PodSpec, "kind" | "sidecar">,
  plan: ContainerPlan = { name: spec.container.name },
): Workload {
  const { topology, testbed, controlAddress } = context;
  const full: PodSpec = {
    ...spec,
    kind: clusterOf(testbed).kind,
    ...(controlAddress === undefined ? {} : { controlAddress }),
    ...(sidecar === undefined ? {} : { sidecar: sidecarSpecOf(context, host, spec) }),
  };
  return {
    name: spec.name,
    host,
    object: podObject(full),
    objects: [],
    containers: [
      { ...plan, image: spec.container.image, exclusiveCpus: wholeCpus(spec.container.cpu) },
      ...(sidecar === undefined || full.sidecar === undefined
        ? []
        : [{ ...sidecarPlan(sidecar), exclusiveCpus: wholeCpus(full.sidecar.cpu) }]),
    ],
    ...(spec.hostNetwork === true ? {} : { networkNamespace: namespaceOf(topology, spec.name) }),
  };
}

/** A whole number of them is what the static CPU manager keeps for a container. */
function wholeCpus({ quantity }: Pick<CpuShare, "quantity">): number {
  return /^\d+$/.test(quantity) ? Number(quantity) : 0;
}

function sidecarSpecOf(
  { parameters }: PodContext,
  host: Host,
  { name }: Pick<PodSpec, "name">,
): SidecarSpec {
  // What waits beside load needs a little, too.
  const cpu =
    name === loadPod
      ? withRoom(host, cpuShareOf(host, "proxy", ["load"]))
      : cpuShareOf(host, "proxy", ["service"]);
  const { certificateSeconds } = parameters;
  return { cpu, memory: sidecarMemory, certificateSeconds };
}

/** Proxies share their CPUs where a host has no others for what else needs some. */
function withRoom(host: Host, cpu: CpuShare): CpuShare {
  return hasOtherPodCpus(host, "proxy") ? cpu : { ...cpu, quantity: sharedQuantity };
}

function sidecarPlan(node: TopologyNode): ContainerPlan {
  return {
    name: sidecarContainer,
    unit: {
      name: containerUnitOf(node),
      kind: "proxy",
      program: "pilot-agent",
      dataPlane: true,
    },
    adminUrl: `http://${loopback}:${adminPorts.sidecar}/`,
  };
}
