/** Istio in the lab's cluster, by the real engine: a pod gets its sidecar, and nothing is left. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import { labDown, labUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import type { Testbed } from "../../contracts/testbed.ts";
import { toolPaths } from "../../tools/paths.ts";
import { type Done, type Engine, openEngine } from "../support/engine.ts";
import { serviceImage } from "./workload.ts";

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root, for a lab";
const lab = openLab({ name: "labi", network: 12, profile: "kubernetes" });
const { clusterBin, images } = toolPaths(path.resolve(import.meta.dirname, "..", ".."));
const quickly = ["--yes", "--skip-preview"];
/** Directories to take the files of the cluster from, instead of the installer's. */
const named = process.env["ZTBENCH_TEST_CLUSTER_FILES"];
const files = named === undefined ? [] : ["--config", `ztbench:clusterFiles=${named}`];

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-addons-"));
const kubeconfigFile = path.join(scratch, "kubeconfig");

let engine: Engine;
let testbed: Testbed;

before(async () => {
  if (!isRoot) return;
  await labDown(lab);
  const up = (await labUp(lab)).testbed;
  assert.ok(up.cluster);
  testbed = { ...up, cluster: { ...up.cluster, mesh: "istio" } };
  engine = openEngine(testbed);
  for (const stack of ["hosts", "cluster"]) await engine.init(stack);
  succeeded(await engine.run("up", "hosts", quickly));
});

after(async () => {
  if (!isRoot) return;
  await labDown(lab);
  engine.close();
  rmSync(scratch, { recursive: true });
});

function succeeded(done: Done): Done {
  assert.equal(done.exitCode, 0, done.output);
  return done;
}

async function kubectl(argv: readonly string[], input = ""): Promise<string> {
  const words = [path.join(clusterBin, "kubectl"), "--kubeconfig", kubeconfigFile, ...argv];
  const done = await $({ quiet: true, nothrow: true, timeout: "90s", input })`${words}`;
  assert.equal(done.exitCode, 0, `${argv.join(" ")}: ${done.stderr}`);
  return done.stdout.trim();
}

/** A pod that asks for a sidecar and, without a name server, is told where the mesh is. */
function meshedPod(name: string, controlAddress: string): string {
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
          image: serviceImage(images),
          imagePullPolicy: "Never",
          args: ["-listen", "0.0.0.0:8080"],
        },
      ],
    },
  });
}

test("up brings Istio to the cluster, and says where its control plane is", { skip }, async (t) => {
  const done = succeeded(await engine.run("up", "cluster", [...quickly, ...files]));
  t.diagnostic(`up ${done.seconds.toFixed(1)} s`);
  writeFileSync(kubeconfigFile, String(await engine.secret("cluster", "kubeconfig")));
  assert.equal(await engine.output("cluster", "mesh"), "istio");
  const address = ["get", "service", "istiod", "-n", "istio-system"];
  assert.equal(
    await engine.output("cluster", "controlAddress"),
    await kubectl([...address, "-o", "jsonpath={.spec.clusterIP}"]),
  );
});

test(
  "the first pod that asks for a sidecar gets one, and is Ready with it",
  { skip },
  async (t) => {
    const started = performance.now();
    const address = await engine.output("cluster", "controlAddress");
    await kubectl(["apply", "-f", "-"], meshedPod("meshed", String(address)));
    await kubectl(["wait", "--for=condition=Ready", "pod", "meshed", "--timeout=80s"]);
    t.diagnostic(`ready ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const names = "jsonpath={.spec.initContainers[*].name} {.spec.containers[*].name}";
    const containers = await kubectl(["get", "pod", "meshed", "-o", names]);
    assert.match(containers, /\bistio-init\b/);
    assert.match(containers, /\bistio-proxy\b/);
  },
);

test(
  "a second up and a preview change nothing, though istiod wrote into webhooks",
  { skip },
  async () => {
    const preview = ["--expect-no-changes"];
    succeeded(await engine.run("preview", "cluster", [...preview, ...files]));
    assert.match(
      succeeded(await engine.run("up", "cluster", [...quickly, ...files])).output,
      /\d+ unchanged\n/,
    );
  },
);

test("destroy needs no API server for what was put into the cluster", { skip }, async (t) => {
  const stop = "systemctl kill -s KILL ztcluster-apiserver; systemctl stop ztcluster-apiserver";
  const argv = ["ssh", "-F", lab.paths.sshConfig, "gateway", stop];
  await $({ quiet: true, nothrow: true, timeout: "30s" })`${argv}`;
  const done = succeeded(await engine.run("destroy", "cluster", quickly));
  t.diagnostic(`destroy ${done.seconds.toFixed(1)} s`);
  succeeded(await engine.run("destroy", "hosts", quickly));
});
