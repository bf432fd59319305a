/** Objects of Kubernetes as data, and the simple ones among them. Pure. */
import { meshNamespace } from "../istio.ts";

export type KubernetesObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: object;
  readonly data?: Readonly<Record<string, string>>;
  readonly automountServiceAccountToken?: boolean;
};

export type Metadata = {
  readonly name: string;
  /** Absent for objects of the whole cluster. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** All pods of a topology, in one namespace that goes with it. */
export const podNamespace = meshNamespace;

const managed = { "app.kubernetes.io/managed-by": "ztbench" } as const;

/** Metadata of something in the namespace of the topology. */
export function named(
  name: string,
  more: Pick<Metadata, "labels" | "annotations"> = {},
): Required<Pick<Metadata, "name" | "namespace" | "labels">> & Metadata {
  return { name, namespace: podNamespace, ...more, labels: { ...managed, ...more.labels } };
}

/** @param topology its name, so that people see whose namespace it is */
export function namespaceObject(topology: string): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: podNamespace, labels: { ...managed, "ztbench/topology": topology } },
  };
}

export function serviceAccountObject(name: string): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: named(name),
    automountServiceAccountToken: false,
  };
}

export function configMapObject(
  name: string,
  data: Readonly<Record<string, string>>,
): KubernetesObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: named(name), data };
}

export type ServiceSpec = {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** Istio takes the protocol from it. */
  readonly portName: string;
  readonly selector: Readonly<Record<string, string>>;
};

export function serviceObject(spec: ServiceSpec): KubernetesObject {
  const { port, portName, selector } = spec;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: named(spec.name),
    spec: {
      type: "ClusterIP",
      clusterIP: spec.address,
      selector,
      ports: [{ name: portName, port, targetPort: port, protocol: "TCP" }],
    },
  };
}
