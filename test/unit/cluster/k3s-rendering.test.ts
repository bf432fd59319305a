import assert from "node:assert/strict";
import path from "node:path";
import { suite, test } from "node:test";
import { parse } from "yaml";
import { parseDocument } from "../../../contracts/document.ts";
import { artifactsSchema } from "../../../contracts/artifacts.ts";
import { Failure } from "../../../contracts/failure.ts";
import { testbedSchema } from "../../../contracts/testbed.ts";
import {
  agentConfiguration,
  renderUnit,
  serverConfiguration,
} from "../../../hosts/cluster/k3s/configuration.ts";
import { k3sInstaller } from "../../../hosts/cluster/k3s/installer.ts";
import { requiredImages, requireTested } from "../../../hosts/cluster/k3s/releases.ts";
import { reservedCpus } from "../../../hosts/cluster/reserved-cpus.ts";
import { assertGolden } from "../../support/golden.ts";
import { exampleTestbed } from "../hosts/testbed.ts";
import { k3sArtifacts, k3sPlace, k3sTestbed } from "./k3s-example.ts";

const golden = (name: string) => path.join(import.meta.dirname, "golden", name);
const testbed = k3sTestbed();
const { cluster: settings } = testbed;
assert.ok(settings);
const agent = testbed.hosts.find(({ role }) => role === "server");
assert.ok(agent);

const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof Failure && error.code === code && message.test(error.message);

suite("k3s is configured", () => {
  test("as the golden files say", () => {
    assertGolden(golden("k3s-server.yaml"), serverConfiguration(testbed, settings, "0-7,9"));
    assertGolden(golden("k3s-agent.yaml"), agentConfiguration(agent, testbed, settings, "0-7"));
    assertGolden(golden("k3s.service"), renderUnit("server"));
  });

  test("without flannel, its own policy controller, and load of its own", () => {
    const server = parse(serverConfiguration(testbed, settings, "0")) as Record<string, unknown>;
    assert.equal(server["flannel-backend"], "none");
    assert.equal(server["disable-network-policy"], true);
    assert.deepEqual(server["disable"], [
      "traefik",
      "servicelb",
      "local-storage",
      "metrics-server",
    ]);
  });

  test("so that agents join by the data network, wherever people reach the server", () => {
    const moved = k3sTestbed({ apiAddress: "192.0.2.20" });
    const { cluster } = moved;
    assert.ok(cluster);
    const joined = parse(agentConfiguration(agent, moved, cluster, "0")) as { server: string };
    assert.equal(joined.server, "https://198.18.0.20:6443");
    const server = parse(serverConfiguration(moved, cluster, "0")) as { "tls-san": string[] };
    assert.ok(server["tls-san"].includes("192.0.2.20"));
  });
});

suite("CPUs that pods cannot have", () => {
  const host = { ...agent, cpus: { ...agent.cpus, proxy: "8,10", service: "12-14" } };

  test("are all that are online but those of proxies and services", () => {
    assert.equal(reservedCpus(host, "0-15"), "0-7,9,11,15");
  });

  test("must leave some on either side", () => {
    const none = { ...host, cpus: { ...host.cpus, proxy: "", service: "" } };
    assert.throws(() => reservedCpus(none, "0-3"), refused("document", /no CPUs for pods/));
    const all = { ...host, cpus: { ...host.cpus, proxy: "0", service: "1" } };
    assert.throws(() => reservedCpus(all, "0-1"), refused("document", /no CPUs for the system/));
  });

  test("are not guessed when a host does not say what it has", () => {
    assert.throws(() => reservedCpus(host, undefined), refused("testbed", /not known, no fact/));
    const silent = "not available: exit code 1";
    assert.throws(() => reservedCpus(host, silent), refused("testbed", /not known/));
  });
});

suite("an installation of k3s", () => {
  const installation = k3sInstaller.install(k3sPlace());
  const task = (id: string) => {
    const found = installation.tasks.find((candidate) => candidate.id === id);
    assert.ok(found, id);
    return found;
  };

  test("gives agents the token that the server printed, as a secret", () => {
    assert.equal(task("gateway-cluster-token").secret, true);
    assert.deepEqual(task("client-k3s").receives, { cluster_token: "gateway-cluster-token" });
    assert.deepEqual(task("server-k3s").receives, { cluster_token: "gateway-cluster-token" });
    assert.equal(task("gateway-kubeconfig").secret, true);
    assert.equal(installation.outputs.kubeconfig, "gateway-kubeconfig");
  });

  test("notes what is on a host before anything else, and sweeps it last", () => {
    for (const name of ["client", "gateway", "server"]) {
      assert.equal(task(`${name}-before`).script.remove, "k3s_remove");
      assert.deepEqual(task(`${name}-k3s`).after, [`${name}-before`]);
    }
  });

  test("copies the program and the archives to each host, and no charts", () => {
    for (const host of testbed.hosts) {
      assert.deepEqual(
        installation.files[host.name]?.map(({ name }) => name),
        ["k3s", "k3s-airgap-images-amd64.tar.zst", "images.tar"],
      );
    }
  });

  test("has a bound for every task", () => {
    for (const { id, timeoutSeconds } of installation.tasks) {
      assert.ok(timeoutSeconds > 0 && timeoutSeconds <= 600, id);
    }
  });
});

suite("releases", () => {
  test("that their makers test together pass", () => {
    requireTested(k3sArtifacts());
    requireTested(k3sArtifacts({ k3s: "1.29.15+k3s1", calico: "3.27.3" }));
  });

  test("that they do not are refused with what is allowed", () => {
    const mixed = k3sArtifacts({ k3s: "1.29.15+k3s1" });
    const message = /^calico 3\.26\.4: not tested with Kubernetes 1\.29, allowed are .*1\.28$/;
    assert.throws(
      () => {
        requireTested(mixed);
      },
      refused("document", message),
    );
    assert.throws(
      () => {
        requireTested(k3sArtifacts({ istio: "1.31.0" }));
      },
      refused("document", /istio 1\.31\.0: not tested .* releases 1\.20/),
    );
    requireTested(k3sArtifacts({ k3s: "1.29.15+k3s1", allowUntested: true }));
  });

  test("name every image that an air gap must bring", () => {
    const images = requiredImages(k3sArtifacts(), true);
    assert.ok(images.includes("quay.io/tigera/operator:v1.30.9"));
    assert.ok(images.includes("docker.io/istio/proxyv2:1.20.2"));
    assert.equal(requiredImages(k3sArtifacts(), false).length, images.length - 2);
    assert.deepEqual(requiredImages(k3sArtifacts({ imagesFrom: "registry" }), true), []);
  });
});

suite("documents of a cluster", () => {
  const artifacts = `schema: ztbench/artifacts/1
k3s: 1.28.5+k3s1
calico: 3.26.4
imagesFrom: archives
files:
  - name: k3s
    role: k3s
`;

  test("without a digest are refused with the position", () => {
    assert.throws(
      () => parseDocument(artifactsSchema, artifacts, "artifacts.yaml"),
      refused("document", /^artifacts\.yaml:6:\d+: files\.0\.sha256: /m),
    );
  });

  test("say which files are missing for what they promise", () => {
    const whole = `${artifacts}    sha256: ${"a".repeat(64)}\n`;
    assert.throws(
      () => parseDocument(artifactsSchema, whole, "artifacts.yaml"),
      refused("document", /a file with role k3s-images is missing[^]*role calico-operator/),
    );
  });

  test("of k3s need an MTU, and artifacts, which no other kind takes", () => {
    const problemsOf = (clusterKind: string, changes: object, rest: object = {}) => {
      const cluster = { podNetwork: "10.42.0.0/16", serviceNetwork: "10.43.0.0/16", ...changes };
      const parsed = testbedSchema.safeParse({
        ...exampleTestbed(),
        clusterKind,
        cluster,
        ...rest,
      });
      return parsed.error?.issues.map(({ path: at }) => at.join(".")) ?? [];
    };
    const hardware = { mtu: 1500 };
    assert.deepEqual(problemsOf("k3s", {}), ["cluster.artifacts", "cluster.mtu"]);
    assert.deepEqual(problemsOf("k3s", { artifacts: "a" }, { hardware }), []);
    assert.deepEqual(problemsOf("k3s", { artifacts: "a", mtu: 9000 }, { hardware }), [
      "cluster.mtu",
    ]);
    assert.deepEqual(problemsOf("kubernetes", { artifacts: "a" }), ["cluster.artifacts"]);
    assert.deepEqual(problemsOf("kubernetes", {}), []);
  });

  test("must keep the networks of pods, services and hosts apart, and hold all pods", () => {
    const problemsOf = (podNetwork: string, serviceNetwork: string) => {
      const cluster = { podNetwork, serviceNetwork };
      const testbed = { ...exampleTestbed(), clusterKind: "kubernetes", cluster };
      const { error } = testbedSchema.safeParse(testbed);
      return error?.issues.map(({ path: at, message }) => `${at.join(".")} ${message}`) ?? [];
    };
    assert.deepEqual(problemsOf("198.18.0.0/16", "198.18.128.0/20"), [
      "cluster.podNetwork must not overlap dataNetwork 198.18.0.0/24",
      "cluster.serviceNetwork must not overlap podNetwork 198.18.0.0/16",
    ]);
    assert.deepEqual(problemsOf("198.19.0.0/23", "198.19.128.0/20"), [
      "cluster.podNetwork must hold a /24 for each of 3 hosts",
    ]);
    assert.deepEqual(problemsOf("198.19.0.0/22", "198.19.128.0/20"), []);
  });
});
