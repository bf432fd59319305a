/** Objects of Kubernetes, rendered as data, as resources of the engine. */
import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { KubernetesObject } from "../topologies/pods/objects.ts";

type Arguments = Omit<KubernetesObject, "apiVersion" | "kind">;
type Make = (
  name: string,
  args: Arguments,
  options: pulumi.CustomResourceOptions,
) => pulumi.CustomResource;

/** Kinds that the provider has types for; their readiness is awaited. */
const kinds: Readonly<Record<string, Make>> = {
  "v1/ConfigMap": (...args) => new kubernetes.core.v1.ConfigMap(...args),
  "v1/Namespace": (...args) => new kubernetes.core.v1.Namespace(...args),
  "v1/Service": (name, args, options) =>
    new kubernetes.core.v1.Service(name, unawaited(args), options),
  "v1/ServiceAccount": (...args) => new kubernetes.core.v1.ServiceAccount(...args),
  "networking.k8s.io/v1/NetworkPolicy": (name, args, options) =>
    new kubernetes.networking.v1.NetworkPolicy(
      name,
      args as kubernetes.networking.v1.NetworkPolicyArgs,
      options,
    ),
};

/** A service is there before its pods, which may rely on its address; probes show that it works. */
function unawaited({ metadata, ...args }: Arguments): Arguments {
  return { ...args, metadata: annotated(metadata, { "pulumi.com/skipAwait": "true" }) };
}

/**
 * The lease keeps others away, so what is there already was left by an engine that was killed
 * before it could note it down: it is taken over.
 */
function takenOver(metadata: KubernetesObject["metadata"]): KubernetesObject["metadata"] {
  return annotated(metadata, { "pulumi.com/patchForce": "true" });
}

function annotated(
  metadata: KubernetesObject["metadata"],
  added: Readonly<Record<string, string>>,
): KubernetesObject["metadata"] {
  return { ...metadata, annotations: { ...metadata.annotations, ...added } };
}

/** A resource for any object; kinds that are not listed are taken for custom ones. */
export function objectResource(
  object: KubernetesObject,
  options: pulumi.CustomResourceOptions,
): pulumi.CustomResource {
  const { apiVersion, kind, metadata, ...rest } = object;
  const args = { ...rest, metadata: takenOver(metadata) };
  const name = resourceNameOf(object);
  const make = kinds[`${apiVersion}/${kind}`];
  if (make !== undefined) return make(name, args, options);
  return new kubernetes.apiextensions.CustomResource(name, { apiVersion, kind, ...args }, options);
}

/** Pods say what became of them, so they have a function of their own. */
export function podResource(
  object: KubernetesObject,
  options: pulumi.CustomResourceOptions,
): kubernetes.core.v1.Pod {
  const { metadata, spec } = object;
  return new kubernetes.core.v1.Pod(
    resourceNameOf(object),
    { metadata: takenOver(metadata), spec: spec as kubernetes.types.input.core.v1.PodSpec },
    options,
  );
}

function resourceNameOf({ kind, metadata }: KubernetesObject): string {
  return `${kind.toLowerCase()}-${metadata.name}`;
}
