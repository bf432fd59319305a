/** What can be wrong with the pods of a run, each with the one gate that it trips. */
import type { GateId } from "../../analysis/gates/gate.ts";
import type { GateInput } from "../../analysis/gates/input.ts";
import type { Deployment, Pod } from "../../contracts/deployment.ts";

type Cluster = NonNullable<Deployment["cluster"]>;
type Container = Pod["containers"][number];

export type ClusterFault = {
  readonly what: string;
  readonly gate: GateId;
  readonly outcome: "invalid";
  readonly input: GateInput;
};

function withCluster(input: GateInput, change: (cluster: Cluster) => Cluster): GateInput {
  const { record } = input;
  const { deployment } = record;
  if (deployment.cluster === undefined) throw new Error("no cluster to change");
  const cluster = change(deployment.cluster);
  return { ...input, record: { ...record, deployment: { ...deployment, cluster } } };
}

const withPod = (input: GateInput, change: Partial<Pod>): GateInput =>
  withCluster(input, (cluster) => ({
    ...cluster,
    pods: cluster.pods.map((pod) => ({ ...pod, ...change })),
  }));

const withContainer = (input: GateInput, name: string, change: Partial<Container>): GateInput =>
  withCluster(input, (cluster) => ({
    ...cluster,
    pods: cluster.pods.map((pod) => ({
      ...pod,
      containers: pod.containers.map((one) => (one.name === name ? { ...one, ...change } : one)),
    })),
  }));

const withVersions = (input: GateInput, change: Record<string, string>): GateInput =>
  withCluster(input, (cluster) => ({ ...cluster, versions: { ...cluster.versions, ...change } }));

const otherImage = `local/it@sha256:${"9".repeat(64)}`;

/** @param input of a run in pods without fault */
export function clusterFaults(input: GateInput): readonly ClusterFault[] {
  const invalid = (what: string, gate: GateId, faulty: GateInput): ClusterFault => ({
    ...{ what, gate },
    outcome: "invalid",
    input: faulty,
  });
  return [
    invalid(
      "a pod that is not Guaranteed",
      "pod-quality",
      withPod(input, { qosClass: "Burstable" }),
    ),
    invalid(
      "a container that shares CPUs it should have for itself",
      "pod-quality",
      withContainer(input, "echo", { exclusiveCpus: 0, cpuset: "0-7" }),
    ),
    invalid(
      "a container that the kernel lets out of its own CPUs",
      "pod-quality",
      withContainer(input, "echo", { cpuset: "0-7" }),
    ),
    invalid(
      "another image than rendered",
      "images",
      withContainer(input, "echo", { plannedImage: otherImage }),
    ),
    invalid(
      "a sidecar of another image than at first",
      "images",
      withContainer(input, "istio-proxy", { image: otherImage, imageDigest: otherImage }),
    ),
    invalid(
      "a proxy that shows another configuration than at first",
      "proxy-configuration",
      withVersions(input, { "ztbench-proxy.container-configuration": "d".repeat(64) }),
    ),
    invalid(
      "a control plane of another version than at first",
      "cluster-versions",
      withVersions(input, { istiod: "1.20.3" }),
    ),
    invalid(
      "a pod's network set otherwise than at first",
      "pod-sysctls",
      withPod(input, { sysctls: { "net.ipv4.tcp_slow_start_after_idle": "1" } }),
    ),
  ];
}
