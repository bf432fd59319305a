/**
 * What is put into a cluster before topologies come: Calico on k3s, and Istio on either kind.
 * Nothing of it is deleted object by object: the cluster goes as a whole, whether or not its API
 * server still answers, and Calico's finalizers would wait for a controller that is gone.
 */
import path from "node:path";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";
import { type ClusterSettings, hostOf, type Testbed } from "../contracts/testbed.ts";
import {
  calicoObjects,
  calicoStatuses,
  operatorDefinitions,
  readOperatorManifest,
} from "../hosts/cluster/calico.ts";
import { roleLabel } from "../hosts/cluster/cluster.ts";
import { renderClusterGuard } from "../hosts/cluster/lease.ts";
import { hostCommand } from "../hosts/runner.ts";
import type { ArtifactStore } from "../tools/artifacts.ts";
import { imageOf, imageReference, readImageIndex } from "../tools/image-index.ts";
import { chartFile, toolPaths } from "../tools/paths.ts";
import { rootNamespace } from "../topologies/istio.ts";
import {
  baseValues,
  istioDefinitions,
  istiodValues,
  releaseImages,
  type ReleaseSettings,
} from "../topologies/istio-release.ts";
import { pathOfArtifact, textOfArtifact } from "./cluster-artifacts.ts";
import type { Cluster } from "./cluster-component.ts";
import {
  addressOfService,
  awaitCalico,
  awaitDefinitions,
  awaitInjection,
  defaultPatience,
  type Patience,
} from "./cluster-readiness.ts";
import { shownFailure } from "./failure.ts";
import { type KubernetesApi, kubernetesApi } from "./kubernetes-api.ts";
import { objectResource } from "./kubernetes-objects.ts";

const root = path.resolve(import.meta.dirname, "..");

/** Of one release of Helm, until its pods are ready. */
const releaseSeconds = 240;
const guardSeconds = 60;

export type AddonsArgs = {
  readonly cluster: Cluster;
  readonly testbed: Testbed;
  readonly settings: ClusterSettings;
  /** Where the files are; absent for a cluster that is made of our own. */
  readonly store: ArtifactStore | undefined;
};

/** Where Istio's charts and images come from. */
type IstioSource = {
  readonly base: string;
  readonly istiod: string;
  readonly release: Omit<ReleaseSettings, "nodeSelector">;
};

/**
 * Installs what the testbed asks for, and waits until it is usable.
 *
 * @returns outputs: `mesh`, or `network` where there is a pod network and no mesh; with a mesh also
 *   `controlAddress`, where the cluster has no name server
 */
export async function installAddons(args: AddonsArgs): Promise<Record<string, unknown>> {
  const { cluster, testbed, settings, store } = args;
  const istio = settings.mesh === "istio" ? await istioSource(store) : undefined;
  if (istio === undefined && store === undefined) return {};
  const { kubeconfig, clusterIdentifier } = cluster.outputs;
  const provider = new kubernetes.Provider(
    "cluster",
    { kubeconfig, clusterIdentifier },
    { dependsOn: cluster },
  );
  const options = { provider, retainOnDelete: true };
  const network = store === undefined ? undefined : installCalico(args, store, options);
  const placed = [...(network?.resources ?? [])];
  const outputs: Record<string, unknown> = {};
  if (istio !== undefined) {
    const ready = network?.ready ?? pulumi.output(true);
    const releases = installIstio(testbed, istio, ready, options);
    placed.push(...releases);
    const address = whenReady(kubeconfig, releases, async (api, patience) => {
      await awaitDefinitions(api, istioDefinitions, patience);
      await awaitInjection(api, patience);
      return addressOfService(api, rootNamespace, "istiod", patience);
    });
    outputs["mesh"] = address.apply(() => "istio");
    if (testbed.clusterKind === "kubernetes") outputs["controlAddress"] = address;
  } else if (network !== undefined) {
    outputs["network"] = network.ready.apply(() => "calico");
  }
  if (placed.length > 0) guard(testbed, placed);
  return outputs;
}

async function istioSource(store: ArtifactStore | undefined): Promise<IstioSource> {
  if (store !== undefined) {
    const { istio, imagesFrom } = store.artifacts;
    if (istio === undefined) throw new Failure("bug", "k3s: a mesh without its files");
    return {
      base: pathOfArtifact(store, "istio-base"),
      istiod: pathOfArtifact(store, "istiod"),
      release: { images: releaseImages(istio, imagesFrom), set: "era" },
    };
  }
  const { tools } = toolPaths(root);
  const index = await readImageIndex(root);
  const named = (id: "istiod" | "proxyv2") => imageReference(imageOf(index, id));
  return {
    base: path.join(tools, chartFile("base")),
    istiod: path.join(tools, chartFile("istiod")),
    release: {
      images: { control: named("istiod"), proxy: named("proxyv2"), pullPolicy: "Never" },
      set: "lab",
    },
  };
}

/** The operator, then what it is told, then its word that all works. */
function installCalico(
  { cluster, testbed }: AddonsArgs,
  store: ArtifactStore,
  options: pulumi.CustomResourceOptions,
) {
  const manifest = readOperatorManifest(
    textOfArtifact(store, "calico-operator"),
    pathOfArtifact(store, "calico-operator"),
  );
  const first = manifest.first.map((object) => objectResource(object, options));
  const rest = manifest.rest.map((object) =>
    objectResource(object, { ...options, dependsOn: first }),
  );
  const operator = [...first, ...rest];
  const { kubeconfig } = cluster.outputs;
  const served = whenReady(kubeconfig, operator, (api, patience) =>
    awaitDefinitions(api, operatorDefinitions, patience),
  );
  const objects = calicoObjects(testbed).map(
    ({ metadata, ...object }) =>
      // The name comes once the definitions are served, and with it the object.
      new kubernetes.apiextensions.CustomResource(
        `calico-${object.kind.toLowerCase()}`,
        { ...object, metadata: { name: served.apply(() => metadata.name) } },
        { ...options, dependsOn: operator },
      ),
  );
  const ready = whenReady(kubeconfig, objects, async (api, patience) => {
    for (const part of calicoStatuses) await awaitCalico(api, part, patience);
    return true;
  });
  return { resources: [...operator, ...objects], ready };
}

function installIstio(
  testbed: Testbed,
  { base, istiod, release }: IstioSource,
  ready: pulumi.Output<unknown>,
  options: pulumi.CustomResourceOptions,
): pulumi.CustomResource[] {
  const namespace = new kubernetes.core.v1.Namespace(
    "istio-namespace",
    { metadata: { name: ready.apply(() => rootNamespace) } },
    options,
  );
  const common = {
    namespace: namespace.metadata.name,
    // What fails is taken back, so that it can be tried again under the same name.
    atomic: true,
    timeout: releaseSeconds,
  };
  const server = hostOf(testbed, "gateway");
  const first = new kubernetes.helm.v3.Release(
    "istio-base",
    { ...common, name: "istio-base", chart: base, values: { ...baseValues() } },
    options,
  );
  const second = new kubernetes.helm.v3.Release(
    "istiod",
    {
      ...common,
      name: "istiod",
      chart: istiod,
      values: { ...istiodValues({ ...release, nodeSelector: { [roleLabel]: server.role } }) },
    },
    { ...options, dependsOn: first },
  );
  return [namespace, first, second];
}

/**
 * Asks the API server once these are made. A preview looks once and fails for nothing: what it sees
 * is the cluster as it is before.
 */
function whenReady<T>(
  kubeconfig: pulumi.Output<string>,
  resources: readonly pulumi.CustomResource[],
  wait: (api: KubernetesApi, patience: Patience) => Promise<T>,
): pulumi.Output<T | undefined> {
  const isPreview = pulumi.runtime.isDryRun();
  const patience = isPreview ? { ...defaultPatience, waitMs: 0 } : defaultPatience;
  const made = pulumi.all(resources.map(({ id }) => id));
  const found = pulumi.all([kubeconfig, made]).apply(async ([config]) => {
    try {
      return await wait(kubernetesApi(config), patience);
    } catch (error) {
      if (isPreview) return undefined;
      throw error instanceof Failure ? shownFailure(error) : error;
    }
  });
  // The kubeconfig is secret, what was found by it is not.
  return pulumi.unsecret(found);
}

/** Removed before all add-ons: as long as a topology is there, nothing is forgotten. */
function guard(testbed: Testbed, placed: readonly pulumi.Resource[]): void {
  const host = hostOf(testbed, "gateway");
  hostCommand(
    `${host.name}-addons-guard`,
    {
      host,
      instance: testbed.instance,
      script: renderClusterGuard(host),
      timeoutSeconds: guardSeconds,
    },
    { dependsOn: [...placed] },
  );
}
