/** Which pods may reach which, as the cluster's own kind of policy. Pure. */
import type { Expectation } from "../../contracts/deployment.ts";
import { type KubernetesObject, named, podNamespace } from "./objects.ts";

export type NetworkGuard = {
  /** Name of the policy. */
  readonly name: string;
  /** Value of label `app` of the pods that are guarded. */
  readonly app: string;
  readonly port: number;
  /** Values of label `app` of the pods that may connect. */
  readonly allows: readonly string[];
};

type Kind = "k3s" | "kubernetes";

/** Calico on k3s; the lab's cluster has the plain policy, which means the same. */
export function networkPolicy(guard: NetworkGuard, kind: Kind): KubernetesObject {
  return kind === "k3s" ? calicoPolicy(guard) : plainPolicy(guard);
}

/** Calico drops what it keeps out; kube-router, which the lab has, says no. */
export function shutOutBy(kind: Kind): Expectation {
  return { outcome: kind === "k3s" ? "no-response" : "refused" };
}

function plainPolicy({ name, app, port, allows }: NetworkGuard): KubernetesObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: named(name),
    spec: {
      podSelector: { matchLabels: { app } },
      policyTypes: ["Ingress"],
      ingress: [
        {
          from: allows.map((caller) => ({ podSelector: { matchLabels: { app: caller } } })),
          ports: [{ port, protocol: "TCP" }],
        },
      ],
    },
  };
}

function calicoPolicy({ name, app, port, allows }: NetworkGuard): KubernetesObject {
  // Without it, a policy of the whole cluster would mean pods of any namespace.
  const namespaceSelector = `kubernetes.io/metadata.name == "${podNamespace}"`;
  return {
    apiVersion: "projectcalico.org/v3",
    kind: "GlobalNetworkPolicy",
    metadata: { name: `${podNamespace}-${name}` },
    spec: {
      order: 100,
      namespaceSelector,
      selector: `app == "${app}"`,
      types: ["Ingress"],
      ingress: [
        {
          action: "Allow",
          protocol: "TCP",
          source: { namespaceSelector, selector: anyOf(allows) },
          destination: { ports: [port] },
        },
      ],
    },
  };
}

function anyOf(apps: readonly string[]): string {
  return apps.map((app) => `app == "${app}"`).join(" || ");
}
