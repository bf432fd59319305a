import assert from "node:assert/strict";
import path from "node:path";
import { suite, test } from "node:test";
import { stringify } from "yaml";
import { Failure } from "../../../contracts/failure.ts";
import { calicoObjects, readOperatorManifest } from "../../../hosts/cluster/calico.ts";
import { istiodValues, releaseImages } from "../../../topologies/istio-release.ts";
import { assertGolden } from "../../support/golden.ts";
import { k3sTestbed } from "./k3s-example.ts";

const golden = (name: string) => path.join(import.meta.dirname, "golden", name);
const nodeSelector = { "ztbench/role": "gateway" };

suite("Calico's operator is told", () => {
  test("what the golden file says", () => {
    const text = calicoObjects(k3sTestbed()).map((object) => stringify(object));
    assertGolden(golden("calico.yaml"), text.join("---\n"));
  });

  test("each interface by its whole name, so that no other is taken", () => {
    const testbed = k3sTestbed();
    const nics = ["ens1f0np0", "eth1.100", "ens1f0np0"];
    const hosts = testbed.hosts.map((host, index) => ({ ...host, nic: nics[index] ?? "" }));
    const [installation] = calicoObjects({ ...testbed, hosts });
    const { calicoNetwork } = installation?.spec as {
      calicoNetwork: { nodeAddressAutodetectionV4: { interface: string } };
    };
    const { interface: pattern } = calicoNetwork.nodeAddressAutodetectionV4;
    assert.equal(pattern, "^(ens1f0np0|eth1\\.100)$");
    assert.equal(new RegExp(pattern).test("ens1f0np01"), false);
  });
});

suite("a manifest of Calico's operator", () => {
  const operator = [
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: tigera-operator}\n",
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: tigera-operator}\n",
    "# only a comment\n",
  ].join("---\n");

  test("is taken apart, namespaces and definitions first", () => {
    const { first, rest } = readOperatorManifest(operator, "operator.yaml");
    assert.deepEqual(
      [first.map(({ kind }) => kind), rest.map(({ kind }) => kind)],
      [["Namespace"], ["Deployment"]],
    );
  });

  test("that is something else is refused by its name", () => {
    for (const text of ["hello", "kind: Namespace\n", "a: [\n", ""]) {
      assert.throws(
        () => readOperatorManifest(text, "operator.yaml"),
        (error) => error instanceof Failure && error.message.startsWith("operator.yaml: "),
      );
    }
  });
});

suite("Istio's release", () => {
  test("of the articles is as the golden file says", () => {
    const images = releaseImages("1.20.2", "archives");
    const values = istiodValues({ images, set: "era", nodeSelector });
    assertGolden(golden("istiod-era.yaml"), stringify(values));
  });

  test("of a lab is as the golden file says, without filters that its Envoy lacks", () => {
    const local = { control: "ztbench.local/istiod@sha256:00", proxy: "ztbench.local/proxyv2:1" };
    const images = { ...local, pullPolicy: "Never" } as const;
    const values = istiodValues({ images, set: "lab", nodeSelector });
    assertGolden(golden("istiod-lab.yaml"), stringify(values));
  });

  test("pulls nothing where images come from archives", () => {
    assert.equal(releaseImages("1.20.2", "archives").pullPolicy, "Never");
    assert.equal(releaseImages("1.20.2", "registry").pullPolicy, "IfNotPresent");
  });
});
