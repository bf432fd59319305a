import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { hostOf, type Testbed } from "../../../contracts/testbed.ts";
import {
  addressIn,
  type ClusterFile,
  type ClusterInstallation,
  podNetworksOf,
  readClusterFacts,
} from "../../../hosts/cluster/cluster.ts";
import { directoryOf, renderClusterFiles } from "../../../hosts/cluster/files.ts";
import * as configuration from "../../../hosts/cluster/kubernetes/configuration.ts";
import { kubernetesInstaller } from "../../../hosts/cluster/kubernetes/installer.ts";
import { nodeUnits, serverUnits } from "../../../hosts/cluster/kubernetes/units.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import { runBash } from "../../support/bash.ts";
import { exampleTestbed } from "./testbed.ts";

const settings = {
  podNetwork: "198.19.48.0/22",
  serviceNetwork: "198.19.56.0/24",
  apiPort: 6443,
  mesh: "none",
} as const;
const testbed = exampleTestbed({ clusterKind: "kubernetes", cluster: settings });
const names = kubernetesInstaller.files.filter((name) => name !== "*.tar");
const files = new Map<string, ClusterFile>(
  [...names, "service.tar", "istiod.tar", "proxyv2.tar"].map((name, index) => [
    name,
    {
      name,
      source: `/built/${name}`,
      digest: String(index).padStart(64, "0"),
      executable: !name.endsWith(".tar"),
    },
  ]),
);
const factsOf = (online: string) =>
  Object.fromEntries(testbed.hosts.map(({ name }) => [name, { "cpu-online": online }]));
const install = (on: Testbed = testbed, online = "0-15"): ClusterInstallation =>
  kubernetesInstaller.install({ testbed: on, settings, files, facts: factsOf(online) });
const places = { authority: "/a", server: "/s", keys: "/k", node: "/n" };
const server = hostOf(testbed, "gateway");

function scriptOf(id: string, installation = install()): string {
  const task = installation.tasks.find((candidate) => candidate.id === id);
  assert.ok(task, id);
  return renderHostScript(task.script);
}

suite("networks of a cluster", () => {
  test("give each host a /24 of the pod network, in the order of the document", () => {
    assert.deepEqual(
      [...podNetworksOf(testbed, settings)],
      [
        ["client", "198.19.48.0/24"],
        ["gateway", "198.19.49.0/24"],
        ["server", "198.19.50.0/24"],
      ],
    );
    assert.equal(addressIn("198.19.255.0/24", 10), "198.19.255.10");
  });

  test("reach every other node by a route, and virtual addresses by the data network", () => {
    const script = scriptOf("client-node");
    for (const route of [
      "198.19.49.0/24 via 198.18.0.20",
      "198.19.50.0/24 via 198.18.0.30",
      "198.19.56.0/24 dev data0",
    ]) {
      assert.ok(script.includes(`\n${route}\n`), route);
    }
    assert.ok(!script.includes("\n198.19.48.0/24 via"));
  });
});

suite("an installation of kind kubernetes", () => {
  test("puts the control plane on the gateway host alone", () => {
    const installation = install();
    const has = (host: string, name: string) =>
      installation.files[host]?.some((file) => file.name === name) === true;
    for (const { name } of testbed.hosts) {
      assert.equal(has(name, "kube-apiserver"), name === "gateway");
      assert.ok(has(name, "kubelet") && has(name, "pause.tar") && has(name, "service.tar"));
    }
    const ids = installation.tasks.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(
      ids.filter((id) => id.endsWith("-server")),
      ["gateway-server", "gateway-sign-server"],
    );
  });

  test("sends the images of a mesh only where there is one", () => {
    const sent = (mesh: "none" | "istio") => {
      const { files: chosen } = kubernetesInstaller.install({
        ...{ testbed, files, facts: factsOf("0-15") },
        settings: { ...settings, mesh },
      });
      return testbed.hosts.map(({ name }) =>
        (chosen[name] ?? []).filter((file) => /istiod|proxyv2/.test(file.name)).map((f) => f.name),
      );
    };
    assert.deepEqual(sent("none"), [[], [], []]);
    assert.deepEqual(sent("istio"), [
      ["proxyv2.tar"],
      ["istiod.tar", "proxyv2.tar"],
      ["proxyv2.tar"],
    ]);
  });

  test("does nodes anew with their API server, but not its authority with the programs", () => {
    const { tasks } = install();
    const reach = (id: string): string[] => {
      const task = tasks.find((candidate) => candidate.id === id);
      const next = [...(task?.after ?? []), ...Object.values(task?.receives ?? {})];
      return [...next, ...next.flatMap(reach)];
    };
    assert.ok(reach("client-node").includes("gateway-server"));
    const changed = new Map([...files].map(([name, file]) => [name, { ...file, digest: "f" }]));
    const other = kubernetesInstaller.install({
      ...{ testbed, settings, facts: factsOf("0-15") },
      files: changed,
    });
    for (const id of ["gateway-authority", "gateway-sign-client", "client-keys"]) {
      assert.equal(scriptOf(id, other), scriptOf(id), id);
    }
    assert.notEqual(scriptOf("gateway-server", other), scriptOf("gateway-server"));
  });

  test("keeps the kubeconfig secret, and receives nothing secret", () => {
    const { tasks, outputs } = install();
    const secret = tasks.filter((task) => task.secret === true).map(({ id }) => id);
    assert.deepEqual(secret, [outputs.kubeconfig]);
    assert.ok(
      !tasks.some(({ receives }) => Object.values(receives ?? {}).includes(secret[0] ?? "")),
    );
  });

  test("lets pods have the CPUs of proxies and services, and keeps the others", () => {
    const kubelet = scriptOf("server-node");
    assert.match(kubelet, /"reservedSystemCPUs": "0,2-15"/);
    assert.match(kubelet, /"cpuManagerPolicy": "static"/);
    assert.match(kubelet, /"cpuCFSQuota": false/);
    assert.throws(
      () => install(testbed, "1"),
      (error) => error instanceof Failure && error.message.includes("no CPUs for the system"),
    );
  });

  test("opens the API server at the data address only, and everything beside it at loopback", () => {
    const units = serverUnits(places, server, settings, "/p");
    const text = units.map((unit) => unit.text).join("\n");
    assert.match(text, /--bind-address=198\.18\.0\.20 .*--secure-port=6443/);
    assert.equal(text.match(/--bind-address=127\.0\.0\.1/g)?.length, 2);
    assert.match(text, /--listen-client-urls=http:\/\/127\.0\.0\.1:2379/);
    assert.deepEqual(
      units.map(({ listens }) => listens),
      [[2379], [6443], [], []],
    );
  });

  test("labels each node with the role of its host", () => {
    for (const host of testbed.hosts) {
      const text = nodeUnits(places, host, settings, "/p")
        .map((unit) => unit.text)
        .join("\n");
      assert.ok(text.includes(`--node-labels=ztbench/role=${host.role} `), host.name);
    }
  });

  test("is bash that parses, all of it", () => {
    for (const { id, script } of install().tasks) {
      const { exitCode, stderr } = runBash(`set -n\n${renderHostScript(script)}`);
      assert.equal(exitCode, 0, `${id}: ${stderr}`);
    }
    const view = runBash(`set -n\n${configuration.viewScript}`);
    assert.equal(view.exitCode, 0, view.stderr);
  });

  test("gives a pod an address from its node's network", () => {
    const conflist = JSON.parse(configuration.networkConfiguration("/n", "198.19.49.0/24")) as {
      plugins: { ipam?: { ranges: { subnet: string }[][] } }[];
    };
    assert.deepEqual(conflist.plugins[0]?.ipam?.ranges, [[{ subnet: "198.19.49.0/24" }]]);
  });
});

suite("files of a cluster", () => {
  const [host] = testbed.hosts;
  assert.ok(host);
  const some = [...files.values()];

  test("go to another directory as soon as one of them changes", () => {
    const [first, ...rest] = some;
    assert.ok(first);
    assert.equal(directoryOf(some), directoryOf([...some]));
    assert.notEqual(
      directoryOf(some),
      directoryOf([{ ...first, digest: "f".repeat(64) }, ...rest]),
    );
  });

  test("are refused by name when they have not come", () => {
    const script = renderHostScript(renderClusterFiles(host, some));
    const { exitCode, stderr } = runBash(script, "create");
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /^file etcd: not copied to host client, expected as .*\n +next: /);
  });
});

test("facts of a cluster are its identifier and what each component says", () => {
  const text = "cluster-identifier:\n\tabc-1\nversion-apiserver:\n\tv1.28.15\nother:\n\tx\n";
  assert.deepEqual(readClusterFacts(text), {
    clusterIdentifier: "abc-1",
    versions: { apiserver: "v1.28.15" },
  });
});
