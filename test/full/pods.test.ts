/** Istio and topologies as pods on a lab's cluster, by the command line as people use it. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { $ } from "zx";
import { type Deployment, deploymentSchema } from "../../contracts/deployment.ts";
import { manifestSchema } from "../../contracts/manifest.ts";
import { type RunRecord, recordSchema } from "../../contracts/record.ts";
import { hostOf, type Testbed } from "../../contracts/testbed.ts";
import { renderAbsence } from "../../hosts/absence.ts";
import { kubectlOf } from "../../hosts/cluster/cluster.ts";
import { labDown, labStatus, labUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { type Snapshot, takeSnapshot } from "../../hosts/lab/snapshot.ts";
import { toolPaths } from "../../tools/paths.ts";
import { makeCheckout } from "../support/checkout.ts";
import { remainsOf } from "../support/remains.ts";
import { serviceImage } from "./workload.ts";

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root, for a lab";
const lab = openLab({ name: "labo", network: 14, profile: "kubernetes" });
const ofLab = ["--name", "labo", "--network", "14", "--kubernetes"];
const quickly = ["--yes", "--skip-preview", "--non-interactive", "--color", "never"];
const campaignSeconds = 600;

let checkout: string;
let pristine: Snapshot;
let testbed: Testbed;
let environment: Record<string, string>;

before(async () => {
  if (!isRoot) return;
  await labDown(lab);
  pristine = await takeSnapshot();
  checkout = makeCheckout("pods-test");
  await succeeds(["node", "--import", "tsx", "tools/install.ts", "--with-cluster"]);
  await succeeds(["./ztbench", "lab", "up", ...ofLab]);
  const { PATH: bin, ...variables } = JSON.parse(
    (await succeeds(["./ztbench", "env", "--json"])).stdout,
  ) as Record<string, string>;
  environment = { ...variables, PATH: `${bin ?? ""}:${process.env["PATH"] ?? ""}` };
  // It is up, so this only tells of it.
  testbed = (await labUp(lab)).testbed;
  await pulumi("up", "hosts");
});

after(async () => {
  if (!isRoot) return;
  await labDown(lab);
  rmSync(checkout, { recursive: true });
});

type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly said: string;
  readonly seconds: number;
};

async function call(argv: readonly string[], seconds = 300, input = ""): Promise<Ended> {
  const ambient = { ...process.env };
  delete ambient["SSH_AUTH_SOCK"];
  delete ambient["KUBECONFIG"];
  const started = performance.now();
  const options = { quiet: true, nothrow: true, cwd: checkout, input } as const;
  const env = { ...ambient, ...environment };
  const done = await $({ ...options, env, timeout: `${seconds}s` })`${argv}`;
  return {
    code: done.exitCode,
    stdout: done.stdout,
    said: done.stdout + done.stderr,
    seconds: (performance.now() - started) / 1000,
  };
}

async function succeeds(argv: readonly string[], seconds?: number, input?: string): Promise<Ended> {
  const ended = await call(argv, seconds, input);
  assert.equal(ended.code, 0, `${argv.join(" ")}: ${ended.said}`);
  return ended;
}

const pulumi = (verb: string, stack: string, more: readonly string[] = quickly): Promise<Ended> =>
  succeeds(["pulumi", verb, "-s", stack, ...more]);

async function outputOf(stack: string, name: string): Promise<unknown> {
  const shown = ["stack", "output", name, "-s", stack, "--json"];
  return JSON.parse((await succeeds(["pulumi", ...shown, "--show-secrets"])).stdout) as unknown;
}

async function kubectl(argv: readonly string[], input = ""): Promise<string> {
  const { clusterBin } = toolPaths(checkout);
  const config = ["--kubeconfig", path.join(checkout, "kubeconfig")];
  const words = [path.join(clusterBin, "kubectl"), ...config, ...argv];
  return (await succeeds(words, 90, input)).stdout.trim();
}

/** What is left of topologies, host by host and in the cluster. */
async function leftovers(): Promise<string[]> {
  const kind = "kubernetes";
  const cluster = { kubectl: kubectlOf(kind), namespace: "ztbench" };
  const found = await Promise.all(
    testbed.hosts.map(async (host) => {
      const script = renderAbsence(host, host.role === "gateway" ? cluster : undefined);
      const argv = ["ssh", "-F", lab.paths.sshConfig, host.name, "bash -s"];
      return (await succeeds(argv, 30, script)).stdout;
    }),
  );
  return found.flatMap((text) => text.split("\n").filter((line) => line !== ""));
}

/** A pod that asks for a sidecar and, without a name server, is told where the mesh is. */
function meshedPod(name: string, image: string, controlAddress: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: name, "sidecar.istio.io/inject": "true" } },
    spec: {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { "ztbench/role": "client" },
      hostAliases: [{ ip: controlAddress, hostnames: ["istiod.istio-system.svc"] }],
      containers: [
        {
          name: "main",
          image,
          imagePullPolicy: "Never",
          args: ["-listen", "0.0.0.0:8080"],
        },
      ],
    },
  });
}

const told = (context: TestContext, what: string, { seconds }: Pick<Ended, "seconds">) => {
  context.diagnostic(`${what} ${seconds.toFixed(1)} s`);
};

test("up brings Istio to the cluster, and says where its control plane is", { skip }, async (t) => {
  told(t, "up", await pulumi("up", "cluster"));
  writeFileSync(
    path.join(checkout, "kubeconfig"),
    String(await outputOf("cluster", "kubeconfig")),
    { mode: 0o600 },
  );
  assert.equal(await outputOf("cluster", "mesh"), "istio");
  const address = ["get", "service", "istiod", "-n", "istio-system"];
  assert.equal(
    await outputOf("cluster", "controlAddress"),
    await kubectl([...address, "-o", "jsonpath={.spec.clusterIP}"]),
  );
});

test("the first pod that asks for a sidecar gets one, and is Ready with it", { skip }, async () => {
  const address = await outputOf("cluster", "controlAddress");
  const pod = meshedPod("meshed", await serviceImage(checkout), String(address));
  await kubectl(["apply", "-f", "-"], pod);
  await kubectl(["wait", "--for=condition=Ready", "pod", "meshed", "--timeout=80s"]);
  const names = "jsonpath={.spec.initContainers[*].name} {.spec.containers[*].name}";
  const containers = await kubectl(["get", "pod", "meshed", "-o", names]);
  assert.match(containers, /\bistio-init\b/);
  assert.match(containers, /\bistio-proxy\b/);
  await kubectl(["delete", "pod", "meshed", "--wait=false"]);
});

test("a second up changes nothing, though istiod wrote into webhooks", { skip }, async () => {
  const { said } = await pulumi("up", "cluster", [...quickly, "--expect-no-changes"]);
  assert.match(said, /\d+ unchanged\n/);
});

type Cluster = NonNullable<Deployment["cluster"]>;

/** Of the mesh when it was brought up by hand. */
let byHand: Cluster | undefined;

test(
  "a mesh goes up and down by hand, also after an engine that noted nothing down",
  { skip },
  async (t) => {
    await succeeds(["pulumi", "config", "set", "ztbench:runtime", "k3s", "-s", "mtls-h2"]);
    told(t, "up", await pulumi("up", "mtls-h2"));
    const deployment = deploymentSchema.parse(await outputOf("mtls-h2", "deployment"));
    byHand = deployment.cluster;
    assert.deepEqual([deployment.runtime, byHand?.kind], ["k3s", "kubernetes"]);
    assert.ok((await leftovers()).includes("cluster: namespace/ztbench"));
    const listed = await succeeds(["pulumi", "stack", "-s", "mtls-h2", "--show-urns"]);
    const pod = /urn:\S+Pod::pod-load/.exec(listed.said)?.[0];
    assert.ok(pod);
    const forget = ["pulumi", "state", "delete", pod, "-s", "mtls-h2"];
    await succeeds([...forget, "--target-dependents", "--yes"]);
    await pulumi("up", "mtls-h2");
    told(t, "destroy", await pulumi("destroy", "mtls-h2"));
    assert.deepEqual(await leftovers(), []);
  },
);

const bundle = () => path.join(checkout, "results", "cluster");
const read = (file: string) => readFileSync(path.join(bundle(), file), "utf8");

test("a campaign of pods finishes, and leaves nothing", { skip }, async (t) => {
  const plan = readFileSync(path.join(checkout, "plans", "cluster.yaml"), "utf8");
  // The plan as users have it, once: the baseline is in each block twice.
  writeFileSync(path.join(checkout, "plan.yaml"), plan.replace(/^blocks: \d+$/m, "blocks: 1"));
  const argv = ["./ztbench", "campaign", "plan.yaml", "--bundle", bundle(), "--json"];
  const ended = await succeeds(argv, campaignSeconds);
  told(t, "campaign", ended);
  assert.deepEqual(await leftovers(), []);
});

test("its report says that it shows function only, and which versions ran", { skip }, () => {
  assert.match(read("tables/loss.txt"), /\*\* lab cluster: function only;/);
  assert.match(read("report.html"), /lab cluster: function only/);
  const manifest = manifestSchema.parse(JSON.parse(read("manifest.json")));
  assert.equal(manifest.versionSet, "lab");
  const names = manifest.programs.map(({ name }) => name);
  for (const name of ["kubelet", "pilot-discovery", "envoy", "image proxyv2"]) {
    assert.ok(names.includes(name), name);
  }
});

function recordsOf(): RunRecord[] {
  const { order } = manifestSchema.parse(JSON.parse(read("manifest.json")));
  return order.map(({ run, block, label, arm }) => {
    const name = `${String(run).padStart(3, "0")}-b${block}-${label}-${arm}`;
    return recordSchema.parse(JSON.parse(read(`runs/${name}/record.json`)));
  });
}

function clusterOf({ deployment }: RunRecord): Cluster {
  assert.ok(deployment.cluster);
  return deployment.cluster;
}

test("every run tells what the cluster gave to its pods", { skip }, () => {
  for (const record of recordsOf()) {
    const { pods, versions } = clusterOf(record);
    assert.ok(pods.length > 0);
    for (const { qosClass, containers } of pods) {
      assert.equal(qosClass, "Guaranteed");
      for (const { exclusiveCpus, plannedCpus, cpuset } of containers) {
        assert.equal(exclusiveCpus, plannedCpus);
        assert.match(cpuset, /^[0-9,-]+$/);
      }
    }
    assert.match(versions["apiserver"] ?? "", /^v1\.28\./);
    if (record.label !== "mtls-h2") continue;
    assert.match(versions["istiod"] ?? "", /^0\.0\.0-/);
    // Other pods, the same programs with the same configuration.
    assert.deepEqual(versions, byHand?.versions);
    const proxy = "ztbench-server-sidecar.container";
    assert.match(versions[proxy] ?? "", /\/1\.36\.2\//);
    assert.match(versions[`${proxy}-configuration`] ?? "", /^[0-9a-f]{64}$/);
    const load = pods.find(({ name }) => name === "load");
    assert.equal(load?.sysctls["net.ipv4.tcp_slow_start_after_idle"], "0");
  }
});

test("gates know pods: nothing is invalid, and what they judge is there", { skip }, () => {
  const junit = read("tables/junit.xml");
  assert.doesNotMatch(junit, /<failure/);
  const table = JSON.parse(read("tables/loss.json")) as {
    runs: { label: string; verdict: string; gates: { id: string; outcome: string }[] }[];
  };
  for (const { label, verdict, gates } of table.runs) {
    assert.notEqual(verdict, "INVALID");
    const outcomeOf = (id: string) => gates.find((gate) => gate.id === id)?.outcome;
    const passed = ["pod-quality", "images", "cluster-versions", "throttling", "restarts"];
    const more = label.startsWith("baseline") ? [] : ["proxy-configuration", "pod-sysctls"];
    for (const id of [...passed, ...more, "bodies"]) assert.equal(outcomeOf(id), "pass", id);
  }
});

test("the bundle is verified from its raw files", { skip }, async () => {
  const { stdout } = await succeeds(["./ztbench", "verify", bundle()]);
  assert.match(stdout, /cells of \d+ files recomputed, all as stored/);
});

test("destroy needs no API server for what was put into the cluster", { skip }, async (t) => {
  const stop = "systemctl kill -s KILL ztcluster-apiserver; systemctl stop ztcluster-apiserver";
  await call(["ssh", "-F", lab.paths.sshConfig, hostOf(testbed, "gateway").name, stop], 30);
  told(t, "destroy", await pulumi("destroy", "cluster"));
  await pulumi("destroy", "hosts");
});

test("lab down leaves nothing on the machine", { skip }, async (t) => {
  told(t, "down", await succeeds(["./ztbench", "lab", "down", ...ofLab]));
  const { state, traces } = await labStatus(lab);
  assert.deepEqual({ state, traces }, { state: "down", traces: [] });
  const networks = ["198.18.30.", "198.18.46."];
  assert.deepEqual(remainsOf(pristine, await takeSnapshot(), lab.layout, networks), []);
});
