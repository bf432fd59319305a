import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { deploymentSchema } from "../../../contracts/deployment.ts";
import { Failure } from "../../../contracts/failure.ts";
import { shellPart } from "../../../hosts/shell.ts";
import { completeDeployment, type Readback } from "../../../topologies/pods/document.ts";
import { podTable, readHostFacts } from "../../../topologies/pods/facts.ts";
import type { PodRendering } from "../../../topologies/pods/pods.ts";
import { assertGolden } from "../../support/golden.ts";
import {
  clusterTestbed,
  exampleImages,
  type Kind,
  kinds,
  objectsOf,
  podRendering,
  renderings,
} from "../../support/pods.ts";

const section = (title: string, text: string) => `===== ${title}\n${text.trimEnd()}\n\n`;

/** Everything that is rendered, as text that shows changes line by line. */
function describe(rendering: PodRendering, kind: Kind): string {
  const { before, after, deployment } = rendering;
  const objects = objectsOf(rendering).map((object) =>
    stringify(object, { aliasDuplicateObjects: false }),
  );
  const cluster = section("objects", objects.join("---\n"));
  // The rest is the same but for what tests below name.
  if (kind === "kubernetes") return cluster;
  const hosts = [...before, ...after].flatMap(({ host, name, root, units, steps, receives }) => [
    section(`${host}: ${name ?? "payload"} in ${root}`, JSON.stringify({ receives })),
    ...units.map((unit) => section(`${host}: ${unit.name}`, unit.text)),
    ...(steps ?? []).map(({ make }, index) =>
      section(`${host}: step ${index + 1}`, make.replace(shellPart("pods"), "# pods.sh")),
    ),
  ]);
  return [cluster, ...hosts, section("deployment", JSON.stringify(deployment, null, 2))].join("");
}

type Container = {
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly command?: readonly string[];
  readonly resources: Record<"requests" | "limits", Record<"cpu" | "memory", string>>;
};
type PodSpec = { readonly containers: readonly [Container]; readonly nodeSelector: object };

const podsOf = (rendering: PodRendering) =>
  rendering.workloads.map(({ object }) => ({ ...object, spec: object.spec as PodSpec }));

const every = kinds.flatMap((kind) => renderings.map(({ name }) => ({ kind, name })));

for (const { kind, name } of every) {
  test(`${name} on ${kind} renders what its golden file holds`, () => {
    const file = path.join(import.meta.dirname, "golden", "pods", `${name}-${kind}.txt`);
    assertGolden(file, describe(podRendering(name, kind), kind));
  });

  test(`${name} on ${kind} yields a valid deployment document with a positive probe`, () => {
    const { deployment } = podRendering(name, kind);
    assert.deepEqual(deploymentSchema.parse(deployment), deployment);
    assert.ok(deployment.probes.some((probe) => probe.kind === "positive"));
    assert.deepEqual(podRendering(name, kind), podRendering(name, kind));
  });

  test(`${name} on ${kind}: whole CPUs, equal requests and limits, images by digest`, () => {
    for (const { metadata, spec } of podsOf(podRendering(name, kind))) {
      const [{ image, imagePullPolicy, resources }] = spec.containers;
      assert.deepEqual(resources.requests, resources.limits);
      if (metadata.name !== "load") assert.match(resources.limits.cpu, /^\d+$/);
      assert.match(image, /@sha256:[0-9a-f]{64}$/);
      assert.equal(imagePullPolicy, kind === "k3s" ? "IfNotPresent" : "Never");
      const annotations = metadata.annotations ?? {};
      const sidecar = (key: string) => annotations[`sidecar.istio.io/${key}`];
      assert.equal(sidecar("proxyCPU"), sidecar("proxyCPULimit"));
      assert.equal(sidecar("proxyMemory"), sidecar("proxyMemoryLimit"));
      const injected = metadata.labels?.["sidecar.istio.io/inject"] === "true";
      assert.equal(sidecar("proxyCPU"), injected ? "2" : undefined);
    }
  });
}

test("a program of a pod is the one of the unit, with the same checks", () => {
  const commands = podsOf(podRendering("gateway", "k3s")).map(({ spec }) => spec.containers[0]);
  assert.deepEqual(commands[2]?.command, [
    "/ztecho",
    "-listen=0.0.0.0:8080",
    "-auth=identity",
    "-body-bytes=256",
    "-admin=127.0.0.1:9902",
  ]);
});

test("containers of a pod that share CPUs count none of them as their own", () => {
  const shared = clusterTestbed("kubernetes").hosts.map((host) => ({
    ...host,
    cpus: { ...host.cpus, proxy: "1", service: "1" },
  }));
  const testbed = { ...clusterTestbed("kubernetes"), hosts: shared };
  const [, service] = podsOf(podRendering("mtls-h2", "kubernetes", testbed));
  assert.equal(service?.spec.containers[0].resources.limits.cpu, "250m");
  const [, alone] = podsOf(podRendering("baseline", "kubernetes", testbed));
  assert.equal(alone?.spec.containers[0].resources.limits.cpu, "1");
});

test("only the gateway may reach the service, in the words of each kind of cluster", () => {
  const policy = (kind: Kind) =>
    objectsOf(podRendering("gateway", kind)).find((object) => object.kind.endsWith("Policy"));
  assert.deepEqual(policy("kubernetes")?.spec, {
    podSelector: { matchLabels: { app: "echo" } },
    policyTypes: ["Ingress"],
    ingress: [
      {
        from: [{ podSelector: { matchLabels: { app: "gateway" } } }],
        ports: [{ port: 8080, protocol: "TCP" }],
      },
    ],
  });
  const calico = policy("k3s");
  assert.equal(calico?.kind, "GlobalNetworkPolicy");
  assert.equal(calico.metadata.namespace, undefined);
  const { spec } = calico as unknown as { spec: { ingress: { source: object }[] } };
  // Without a namespace, the source would be pods of any.
  assert.deepEqual(spec.ingress[0]?.source, {
    namespaceSelector: 'kubernetes.io/metadata.name == "ztbench"',
    selector: 'app == "gateway"',
  });
});

test("who is kept out by the network sees silence on k3s, a refusal in the lab", () => {
  const outcome = (kind: Kind) =>
    podRendering("gateway", kind).deployment.probes.find(({ id }) => id === "direct-to-service")
      ?.expect.outcome;
  assert.equal(outcome("k3s"), "no-response");
  assert.equal(outcome("kubernetes"), "refused");
});

test("load enters by the network of a pod, and by that of its host only where it is asked to", () => {
  const { entry } = podRendering("baseline", "k3s").deployment;
  assert.equal(entry.networkNamespace, "/run/ztbench/baseline.pods/load.net");
  assert.equal(entry.url, "http://198.18.144.11:8080/");
  const { entry: onHost, ...rest } = podRendering("baseline-host-network", "k3s").deployment;
  assert.equal(onHost.networkNamespace, undefined);
  assert.equal(onHost.url, "http://198.18.0.30:8080/");
  assert.equal(rest.parameters["hostNetwork"], 1);
});

test("the caller's own host reaches for the service past the sidecar, outside of the pod", () => {
  const { probes } = podRendering("mtls-h1", "k3s").deployment;
  const find = (id: string) => probes.find((probe) => probe.id === id);
  assert.equal(find("direct-to-service")?.networkNamespace, undefined);
  assert.notEqual(find("through-sidecars")?.networkNamespace, undefined);
});

test("the sidecar that load goes through shares CPUs where pods have no others on its host", () => {
  const quantityOf = (service: string) => {
    const testbed = clusterTestbed("kubernetes");
    const hosts = testbed.hosts.map((host) => ({ ...host, cpus: { ...host.cpus, service } }));
    const [load] = podsOf(podRendering("mtls-h2", "kubernetes", { ...testbed, hosts }));
    return load?.metadata.annotations?.["sidecar.istio.io/proxyCPU"];
  };
  assert.equal(quantityOf("8"), "2");
  assert.equal(quantityOf("6-7"), "250m");
});

test("principals are named without a scheme, as Istio wants them", () => {
  const objects = JSON.stringify(podRendering("mtls-h2", "k3s").objects);
  assert.match(objects, /"principals":\["cluster\.local\/ns\/ztbench\/sa\/client"\]/);
  assert.doesNotMatch(objects, /spiffe:/);
});

test("no token and no key is rendered", () => {
  for (const { kind, name } of every) {
    assert.doesNotMatch(JSON.stringify(podRendering(name, kind)), /eyJ[\w-]+\.|PRIVATE KEY/);
  }
});

const printed = [
  "containers:",
  "\tload load /kubepods/pod1/aa 0-11 -",
  "\tload istio-proxy /kubepods/pod1/ab 6-7 6-7",
  "sysctls:",
  "\tload net.core.somaxconn 4096",
  "versions:",
  "\tztbench-client-sidecar.container abc/1.28.1-dev/Clean/RELEASE/BoringSSL",
  "",
].join("\n");
const printedByServer = [
  "containers:",
  "\tservice service /kubepods/pod2/ba 8-11 8-11",
  "\tservice istio-proxy /kubepods/pod2/bb 6-7 6-7",
  "",
].join("\n");
const printedByGateway = "containers:\n\tcontrol control /kubepods/pod3/ca 0 -\n";

const containersOf = (prefix: string, names: readonly string[]) =>
  names.map((name, index) => ({
    name,
    image: `image of ${name}`,
    imageId: `sha256:${name}`,
    id: `${prefix}${String.fromCharCode(97 + index)}`,
  }));
const readback: Readback = {
  pods: [
    {
      name: "load",
      uid: "1",
      qosClass: "Guaranteed",
      containers: containersOf("a", ["load", "istio-proxy"]),
    },
    {
      name: "service",
      uid: "2",
      qosClass: "Guaranteed",
      containers: containersOf("b", ["service", "istio-proxy"]),
    },
  ],
  hosts: readHostFacts([printed, printedByServer, printedByGateway]),
  kind: "k3s",
  cgroupRoot: "/run/ztbench/mtls-h2.pods/cgroup",
  place: { images: exampleImages, controlAddress: "198.18.144.15" },
  versions: { kubernetes: "v1.28.5+k3s1" },
};

function complete(changed: Partial<Readback> = {}) {
  const { deployment, workloads } = podRendering("mtls-h2", "k3s");
  return completeDeployment(deployment, workloads, { ...readback, ...changed });
}

test("what was read back ends in the deployment document", () => {
  const { cluster, units } = complete();
  assert.deepEqual(
    units.map(({ name, cpus, cgroup }) => [name, cpus, cgroup]),
    [
      ["ztbench-control.container", "0", "/kubepods/pod3/ca"],
      ["ztbench-client-sidecar.container", "6-7", "/kubepods/pod1/ab"],
      ["ztbench-service.container", "8-11", "/kubepods/pod2/ba"],
      ["ztbench-server-sidecar.container", "6-7", "/kubepods/pod2/bb"],
    ],
  );
  assert.equal(cluster?.versions["kubernetes"], "v1.28.5+k3s1");
  assert.match(cluster.versions["ztbench-client-sidecar.container"] ?? "", /1\.28\.1-dev/);
  assert.deepEqual(cluster.pods[0], {
    name: "load",
    host: "client",
    qosClass: "Guaranteed",
    sysctls: { "net.core.somaxconn": "4096" },
    containers: [
      {
        name: "load",
        unit: "load.container",
        image: "image of load",
        imageDigest: "sha256:load",
        cpuset: "0-11",
        plannedImage: exampleImages.pause,
        exclusiveCpus: 0,
        plannedCpus: 0,
      },
      {
        name: "istio-proxy",
        unit: "ztbench-client-sidecar.container",
        image: "image of istio-proxy",
        imageDigest: "sha256:istio-proxy",
        cpuset: "6-7",
        exclusiveCpus: 2,
        plannedCpus: 2,
      },
    ],
  });
});

test("a pod without its sidecar, or that is not Guaranteed, is refused by its name", () => {
  const [load, service] = readback.pods;
  assert.ok(load && service);
  const bare = { ...service, containers: service.containers.slice(0, 1) };
  const cases = [
    [[load, bare], /pod service: has no container istio-proxy/],
    [[load, { ...service, qosClass: "Burstable" }], /pod service: is Burstable, Guaranteed/],
    [[load], /pod service: not in the cluster/],
  ] as const;
  for (const [pods, message] of cases) {
    assert.throws(
      () => complete({ pods }),
      (error) =>
        error instanceof Failure && error.code === "testbed" && message.test(error.message),
    );
  }
});

test("a line of facts that is not understood is named", () => {
  assert.throws(() => readHostFacts(["containers:\n\tone two\n"]), /found one two/);
});

test("hosts get a line for each container", () => {
  assert.equal(
    podTable(readback.pods.slice(0, 1)),
    ["load 1 load aa", "load 1 istio-proxy ab"].join("\n"),
  );
});
