/**
 * What hosts get of a topology in a cluster: links to the network namespaces of their pods, and
 * the certificates that probes try. Its output tells of the pods. Pure.
 */
import { type Host, hostOf } from "../../contracts/testbed.ts";
import { clusterDirectory } from "../../hosts/cluster/cluster.ts";
import type { HostPayload, PayloadStep } from "../../hosts/payload.ts";
import { knobsOf } from "../../hosts/profiles.ts";
import { quote, shellPart } from "../../hosts/shell.ts";
import { checksOf, isMesh } from "../model.ts";
import { clusterOf, type PodContext, podsRootOf } from "./place.ts";
import { impostorStep } from "./impostors.ts";
import type { Workload } from "./workloads.ts";

/** Id of what the cluster says of the pods on a host, as its payload receives it. */
export function clusterStatusOf(host: string): string {
  return `${host}-cluster-status`;
}

/** The payload of each host that has pods, or is where probes of a mesh are sent from. */
export function podPayloads(context: PodContext, workloads: readonly Workload[]): HostPayload[] {
  const { topology, testbed } = context;
  return testbed.hosts.flatMap((host) => {
    const here = workloads.filter((workload) => workload.host.name === host.name);
    const isControl = isMesh(topology) && host.name === hostOf(testbed, "gateway").name;
    if (here.length === 0 && !isControl) return [];
    return [
      {
        host: host.name,
        name: "pods",
        root: podsRootOf(topology),
        directories: [],
        files: [],
        units: [],
        steps: [
          readStep(context, host, here, isControl),
          ...(isControl && checksOf(topology, "peer").length > 0 ? [impostorStep(context)] : []),
        ],
        receives: { pods: clusterStatusOf(host.name) },
        after: [],
      },
    ];
  });
}

/** Where the kubelet writes which CPUs it has given away. */
const kubeletDirectories = {
  k3s: "/var/lib/kubelet",
  kubernetes: `${clusterDirectory}/node/kubelet`,
} as const;

function readStep(
  context: PodContext,
  host: Host,
  workloads: readonly Workload[],
  isControl: boolean,
): PayloadStep {
  const { topology, testbed, programs } = context;
  const settings = knobsOf(testbed, host).filter(
    ({ kind, scope }) => kind === "sysctl" && scope === "namespace",
  );
  const names = settings.map(({ target }) => target);
  const values = settings.map(({ target, want }) => `${target}=${want}`);
  const pods = workloads
    .filter(({ networkNamespace }) => networkNamespace !== undefined)
    .map(({ name }) => name);
  const call = (words: readonly string[]) => words.map(quote).join(" ");
  return {
    make: [
      shellPart("pods"),
      `kubelet=${kubeletDirectories[clusterOf(testbed).kind]}`,
      `programs=${quote(programs)}`,
      "{",
      'pods_containers "$pods"',
      ...(isControl ? ["control_plane"] : []),
      "echo sysctls:",
      ...pods.map((pod) => call(["pods_tune", pod, ...values])),
      ...pods.map((pod) => call(["pods_sysctls", pod, ...names])),
      "echo versions:",
      ...(isControl ? ["control_version"] : []),
      ...workloads.flatMap(({ name, containers }) =>
        containers.flatMap(({ unit, adminUrl }) =>
          unit === undefined || adminUrl === undefined
            ? []
            : [call(["pods_proxy", name, unit.name, new URL(adminUrl).port])],
        ),
      ),
      `} >${podsRootOf(topology)}/printed`,
    ].join("\n"),
    undo: ":",
    left: ":",
  };
}
