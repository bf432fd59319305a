/** A testbed with k3s and the files for it, for the tests of this directory. */
import { type Artifacts, artifactsSchema } from "../../../contracts/artifacts.ts";
import { type Testbed, testbedSchema } from "../../../contracts/testbed.ts";
import type { ClusterFile, ClusterPlace } from "../../../hosts/cluster/cluster.ts";
import { exampleTestbed } from "../hosts/testbed.ts";

const evenCpus = { system: "1,3", irq: "0,2", load: "4,6", proxy: "8,10", service: "12,14" };

export function k3sTestbed(cluster: object = {}): Testbed {
  const { hosts, ...rest } = exampleTestbed();
  return testbedSchema.parse({
    ...rest,
    hosts: hosts.map((host) => ({ ...host, nic: "ens1f0np0", cpus: evenCpus })),
    clusterKind: "k3s",
    cluster: {
      podNetwork: "10.42.0.0/16",
      serviceNetwork: "10.43.0.0/16",
      mtu: 9000,
      artifacts: "airgap/artifacts.yaml",
      ...cluster,
    },
  });
}

export function k3sArtifacts(changes: object = {}): Artifacts {
  const file = (name: string, role: string) => ({ name, role, sha256: "a".repeat(64) });
  return artifactsSchema.parse({
    schema: "ztbench/artifacts/1",
    k3s: "1.28.5+k3s1",
    calico: "3.26.4",
    istio: "1.20.2",
    imagesFrom: "archives",
    files: [
      file("k3s", "k3s"),
      file("k3s-airgap-images-amd64.tar.zst", "k3s-images"),
      file("images.tar", "images"),
      file("tigera-operator.yaml", "calico-operator"),
      file("base-1.20.2.tgz", "istio-base"),
      file("istiod-1.20.2.tgz", "istiod"),
    ],
    ...changes,
  });
}

export function k3sPlace(
  testbed: Testbed = k3sTestbed(),
  artifacts: Artifacts = k3sArtifacts(),
): ClusterPlace & { readonly artifacts: Artifacts } {
  const { cluster } = testbed;
  if (cluster === undefined) throw new Error("the example has a cluster");
  const files = artifacts.files.map(({ name, role, sha256 }): [string, ClusterFile] => [
    name,
    { name, source: `/nowhere/${name}`, digest: sha256, executable: role === "k3s" },
  ]);
  const facts = Object.fromEntries(
    testbed.hosts.map(({ name }) => [name, { "cpu-online": "0-15" }]),
  );
  return { testbed, settings: cluster, files: new Map(files), artifacts, facts };
}
