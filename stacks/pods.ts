/** The runtime `k3s`: lease, objects in the cluster, links on the hosts, proof that it answers. */
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Deployment } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import type { Testbed } from "../contracts/testbed.ts";
import { programDirectory } from "../hosts/programs.ts";
import { nodesOfKind, type Topology } from "../topologies/model.ts";
import { completeDeployment } from "../topologies/pods/document.ts";
import { podTable, type PodStatus, readHostFacts } from "../topologies/pods/facts.ts";
import { cgroupRootOf, type PodPlace } from "../topologies/pods/place.ts";
import { podRootsOf, type PodRendering, renderPods } from "../topologies/pods/pods.ts";
import { clusterStatusOf } from "../topologies/pods/readback.ts";
import { type DeployedCluster, deployedCluster, podImages } from "./deployed-cluster.ts";
import { objectResource, podResource } from "./kubernetes-objects.ts";
import { awaitAnswers, placePayloads, takeLeases } from "./payloads.ts";
import type { TopologyRequest } from "./request.ts";

/** Images are on the hosts already, so a pod that is not ready by then never will be. */
const podTimeouts = { create: "90s", update: "90s", delete: "60s" } as const;

/**
 * Deploys a topology as pods.
 *
 * @returns the deployment document, there once the path answers correctly
 * @throws Failure `testbed` if there is no cluster or no images
 */
export async function podsStack(request: TopologyRequest): Promise<pulumi.Output<Deployment>> {
  const { topology, parameters, lease, deployed } = request;
  const { testbed } = deployed;
  requireMesh(topology, testbed);
  const cluster = await deployedCluster(testbed);
  const place: PodPlace = {
    testbed,
    programs: programDirectory,
    images: await podImages(new pulumi.Config("ztbench")),
    ...(cluster.controlAddress === undefined ? {} : { controlAddress: cluster.controlAddress }),
  };
  const rendering = renderPods(topology, parameters, place);
  const leases = takeLeases(testbed, lease, podRootsOf(topology));
  const before = placePayloads(testbed, rendering.before, { dependsOn: leases });
  const pods = placePods(rendering, cluster, [...leases, ...before]);
  const status = pulumi.all(pods.map(statusOf));
  const hosts = new Map(
    testbed.hosts.map((host) => {
      const here = rendering.workloads.filter((workload) => workload.host.name === host.name);
      const names = here.map(({ name }) => name);
      const table = status.apply((all) => podTable(all.filter(({ name }) => names.includes(name))));
      return [clusterStatusOf(host.name), table] as const;
    }),
  );
  const links = placePayloads(testbed, rendering.after, { dependsOn: pods, given: hosts });
  const ready = awaitAnswers(testbed, rendering.deployment, links);
  return pulumi
    .all([status, pulumi.all(links.map(({ stdout }) => stdout)), ready.map(({ id }) => id)])
    .apply(([all, printed]) =>
      completeDeployment(rendering.deployment, rendering.workloads, {
        pods: all,
        hosts: readHostFacts(printed),
        kind: cluster.kind,
        cgroupRoot: cgroupRootOf(topology),
        place,
        versions: cluster.versions,
      }),
    );
}

/** Told before anything is changed, since the API server would only miss a kind of object. */
function requireMesh(topology: Topology, { name, cluster }: Testbed): void {
  if (nodesOfKind(topology, "sidecar").length === 0 || cluster?.mesh === "istio") return;
  throw new Failure(
    "testbed",
    `topology ${topology.name}: needs a mesh, cluster.mesh of testbed ${name} is ` +
      `${cluster?.mesh ?? "absent"}, istio expected`,
    { hint: "set cluster.mesh in the testbed document, then pulumi up -s cluster" },
  );
}

/** Objects first, so that no pod ever runs without its policy; pods side by side after them. */
function placePods(
  { objects, workloads }: PodRendering,
  cluster: DeployedCluster,
  dependsOn: readonly pulumi.Resource[],
): kubernetes.core.v1.Pod[] {
  const provider = new kubernetes.Provider("cluster", {
    kubeconfig: cluster.kubeconfig,
    clusterIdentifier: cluster.clusterIdentifier,
    enableServerSideApply: true,
  });
  const common = { provider, customTimeouts: podTimeouts };
  const [first, ...rest] = objects;
  if (first?.kind !== "Namespace") throw new Error("the namespace must be the first object");
  const namespace = objectResource(first, { ...common, dependsOn: [...dependsOn] });
  // What is in the namespace goes with it, all at once.
  const inside = { ...common, deletedWith: namespace };
  const made = rest.map((object) =>
    objectResource(object, {
      ...(object.metadata.namespace === undefined ? common : inside),
      dependsOn: [namespace, ...dependsOn],
    }),
  );
  return workloads.map(({ object }) =>
    podResource(object, { ...inside, dependsOn: [namespace, ...made, ...dependsOn] }),
  );
}

function statusOf(pod: kubernetes.core.v1.Pod): pulumi.Output<PodStatus> {
  return pulumi.all([pod.metadata, pod.status]).apply(([metadata, status]) => ({
    name: metadata.name,
    uid: metadata.uid,
    qosClass: status.qosClass,
    containers: status.containerStatuses.map(({ name, image, imageID, containerID }) => ({
      name,
      image,
      imageId: imageID,
      id: containerID.slice(containerID.indexOf("://") + 3),
    })),
  }));
}
