/** Topologies rendered as pods on a testbed that does not exist. */
import { parse } from "yaml";
import type { Testbed } from "../../contracts/testbed.ts";
import { catalogue, topologyNamed } from "../../topologies/catalogue.ts";
import { readParameters } from "../../topologies/parameters.ts";
import type { KubernetesObject } from "../../topologies/pods/objects.ts";
import { type PodRendering, renderPods } from "../../topologies/pods/pods.ts";
import { exampleTestbed } from "../unit/topologies/example.ts";

export const kinds = ["k3s", "kubernetes"] as const;
export type Kind = (typeof kinds)[number];

/** Every topology, the rung that has no pod network, and what adds an object to a mesh. */
export const renderings: readonly { name: string; topology: string; given: object }[] = [
  ...Object.keys(catalogue).map((topology) => ({ name: topology, topology, given: {} })),
  { name: "baseline-host-network", topology: "baseline", given: { hostNetwork: 1 } },
  { name: "mtls-only-full", topology: "mtls-only", given: { sessionResumption: 0 } },
];

const digestOf = (digit: string) => `sha256:${digit.repeat(64)}`;

export const exampleImages = {
  service: `ztbench.local/service@${digestOf("1")}`,
  envoy: `ztbench.local/envoy@${digestOf("2")}`,
  pause: `ztbench.local/pause@${digestOf("3")}`,
} as const;

export function clusterTestbed(clusterKind: Kind): Testbed {
  return {
    ...exampleTestbed,
    // Each container has CPUs of its own, as on metal.
    hosts: exampleTestbed.hosts.map((host) => ({
      ...host,
      cpus: { system: "0", irq: "1", load: "2-5", proxy: "6-7", service: "8-11" },
    })),
    clusterKind,
    cluster: {
      podNetwork: "198.18.128.0/20",
      serviceNetwork: "198.18.144.0/20",
      apiPort: 6443,
      mesh: "istio",
    },
  };
}

export function podRendering(
  name: string,
  kind: Kind,
  testbed = clusterTestbed(kind),
): PodRendering {
  const found = renderings.find((rendering) => rendering.name === name);
  if (found === undefined) throw new Error(`no rendering ${name}`);
  const topology = topologyNamed(found.topology);
  const parameters = readParameters(topology, { ...found.given }, "k3s");
  const programs = "/var/lib/ztbench/bin";
  return renderPods(topology, parameters, { testbed, programs, images: exampleImages });
}

/** All objects in the order in which they are made. */
export function objectsOf({ objects, workloads }: PodRendering): KubernetesObject[] {
  return [...objects, ...workloads.map(({ object }) => object)];
}

/** One document that holds many. */
export function listOf(objects: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
}

/** Documents of a YAML stream without anchors. */
export function parseDocuments(text: string): KubernetesObject[] {
  return text
    .split(/^---\n/m)
    .filter((document) => document.trim() !== "")
    .map((document) => parse(document) as KubernetesObject);
}
