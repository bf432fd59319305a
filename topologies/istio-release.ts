/** Istio as a release of Helm: values by version set, and what it adds to the API. Pure. */
import { controlEnvironment, meshConfig, rootNamespace } from "./istio.ts";

/** Definitions that topologies use; of the chart `base`. */
export const istioDefinitions = [
  "authorizationpolicies.security.istio.io",
  "destinationrules.networking.istio.io",
  "envoyfilters.networking.istio.io",
  "peerauthentications.security.istio.io",
] as const;

/** Where proxies find the control plane; the port is that of mutual TLS. */
const discovery = `istiod.${rootNamespace}.svc:15012`;

export type IstioImages = {
  /** Whole names, by tag or by digest. */
  readonly control: string;
  readonly proxy: string;
  readonly pullPolicy: "IfNotPresent" | "Never";
};

/** Istio's own images of a release. */
export function releaseImages(version: string, imagesFrom: "archives" | "registry"): IstioImages {
  const pullPolicy = imagesFrom === "archives" ? "Never" : "IfNotPresent";
  const named = (image: string) => `docker.io/istio/${image}:${version}`;
  return { control: named("pilot"), proxy: named("proxyv2"), pullPolicy };
}

export type ReleaseSettings = {
  readonly images: IstioImages;
  /** `era`: Istio's own releases, from 1.20 on; `lab`: proxies that lack Istio's own filters. */
  readonly set: "era" | "lab";
  /** Label of the node that the control plane goes to. */
  readonly nodeSelector: Readonly<Record<string, string>>;
};

type SetValues = { readonly env: object; readonly proxy: object };

/** What the lab's proxies need to be told, and not all charts of releases understand. */
const valuesOf: Readonly<Record<ReleaseSettings["set"], SetValues>> = {
  // In Istio 1.20 no name stands for no tracer; with tracing off none is used.
  era: { env: {}, proxy: {} },
  lab: { env: { ...controlEnvironment }, proxy: { tracer: "none" } },
};

/** Values of the chart `base`. */
export function baseValues(): object {
  return { defaultRevision: "default" };
}

/**
 * Values of the chart `istiod`. Whatever would be load of its own, or would differ from the native
 * runtime, is said to be off rather than left out.
 */
export function istiodValues({ images, set, nodeSelector }: ReleaseSettings): object {
  const { env, proxy } = valuesOf[set];
  return {
    pilot: {
      autoscaleEnabled: false,
      replicaCount: 1,
      traceSampling: 0,
      image: images.control,
      env,
      resources: { requests: { cpu: "100m", memory: "128Mi" } },
      nodeSelector,
    },
    global: {
      istioNamespace: rootNamespace,
      imagePullPolicy: images.pullPolicy,
      defaultPodDisruptionBudget: { enabled: false },
      proxy: { image: images.proxy, ...proxy },
      proxy_init: { image: images.proxy },
    },
    telemetry: { enabled: false, v2: { enabled: false } },
    sidecarInjectorWebhook: { enableNamespacesByDefault: false },
    meshConfig: { ...meshConfig({ discovery }), enablePrometheusMerge: false },
  };
}
