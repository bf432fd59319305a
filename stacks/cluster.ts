/** The cluster stack: puts a cluster on prepared hosts, whatever its kind, and takes it off. */
import * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";
import type { ClusterKind, ClusterSettings, Testbed } from "../contracts/testbed.ts";
import type { ClusterInstaller } from "../hosts/cluster/cluster.ts";
import { k3sInstaller } from "../hosts/cluster/k3s/installer.ts";
import { kubernetesInstaller } from "../hosts/cluster/kubernetes/installer.ts";
import { installAddons } from "./cluster-addons.ts";
import { filesOfArtifacts, openArtifacts } from "./cluster-artifacts.ts";
import { readClusterFiles } from "./cluster-files.ts";
import { Cluster } from "./cluster-component.ts";
import { configuredOwner } from "./owner.ts";
import { requireReachable } from "./reachable.ts";
import { configuredTestbed, deployedTestbed } from "./testbed.ts";

/** One installer for each kind of cluster. */
const installers: Readonly<Partial<Record<ClusterKind, ClusterInstaller>>> = {
  k3s: k3sInstaller,
  kubernetes: kubernetesInstaller,
};

/**
 * Installs the cluster that the testbed document asks for on the hosts that the hosts stack has
 * prepared.
 *
 * @returns outputs of the component: secret `kubeconfig`, `clusterIdentifier`, `apiServer`,
 *   `versions` and `nodes`; of the add-ons those of `installAddons`
 * @throws Failure `testbed` if the testbed has no cluster or its hosts are not up, `usage` for a
 *   kind that has no installer
 */
export async function clusterStack(): Promise<Record<string, unknown>> {
  // Before the hosts are asked for: preparing them would not help.
  const configured = configuredTestbed();
  const settings = settingsOf(configured);
  const installer = installerOf(configured.clusterKind);
  const { testbed, facts } = await deployedTestbed();
  const owner = configuredOwner(new pulumi.Config("ztbench"), "cluster");
  const store = installer.kind === "k3s" ? await openArtifacts(settings) : undefined;
  const files = store === undefined ? readClusterFiles(installer.files) : filesOfArtifacts(store);
  await requireReachable(testbed.hosts);
  const artifacts = store === undefined ? {} : { artifacts: store.artifacts };
  const installation = installer.install({ testbed, settings, files, facts, ...artifacts });
  const cluster = new Cluster("cluster", { testbed, settings, owner, installation });
  const addons = await installAddons({ cluster, testbed, settings, store });
  return { ...cluster.outputs, ...addons };
}

function settingsOf(testbed: Testbed): ClusterSettings {
  if (testbed.cluster !== undefined) return testbed.cluster;
  throw new Failure(
    "testbed",
    `cluster: testbed ${testbed.name} has none, clusterKind ${testbed.clusterKind}, ` +
      "kubernetes or k3s expected",
    { hint: "./ztbench lab up --kubernetes, or set clusterKind in the testbed document" },
  );
}

function installerOf(kind: ClusterKind): ClusterInstaller {
  const found = installers[kind];
  if (found !== undefined) return found;
  const known = Object.keys(installers).join(", ");
  throw new Failure("usage", `cluster: no installer, clusterKind ${kind}, allowed are ${known}`);
}
