/**
 * Manifest truth: what every topology puts into a cluster, written by the provider that deploys it,
 * is put before a real API server, its scheduler and Istio's own library. Nothing runs.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import { $ } from "zx";
import { pulumiEnvironment, toolPaths, toolSearchPath } from "../../tools/paths.ts";
import type { KubernetesObject } from "../../topologies/pods/objects.ts";
import { type ApiServer, type Done, startApiServer } from "../support/api-server.ts";
import { buildJudge, type IstioFiles, istioFiles } from "../support/istio-files.ts";
import {
  kinds,
  listOf,
  objectsOf,
  parseDocuments,
  podRendering,
  renderings,
} from "../support/pods.ts";

const root = path.resolve(import.meta.dirname, "..", "..");
const program = path.join(import.meta.dirname, "program");
const directory = mkdtempSync(path.join(tmpdir(), "ztbench-manifests-"));
const every = kinds.flatMap((kind) => renderings.map(({ name }) => ({ kind, name })));
const role = (name: string) => ({ "ztbench/role": name });

let server: ApiServer;
let judge: string;
let istio: IstioFiles;
let renderSeconds: number;

before(async () => {
  const roles = { client: role("client"), gateway: role("gateway"), server: role("server") };
  [server, judge, istio] = await Promise.all([
    startApiServer(roles),
    buildJudge(directory),
    istioFiles(directory),
    renderAll(),
  ]);
  accepted(await server.kubectl(["apply", "--server-side", "-f", istio.definitions]));
  accepted(await server.kubectl(["wait", "--for=condition=Established", "crd", "--all"]));
  // What a dry run makes is gone for what comes after it, and pods need accounts.
  const first = objectsOf(podRendering("mtls-h2", "k3s")).filter(({ kind }) =>
    ["Namespace", "ServiceAccount"].includes(kind),
  );
  accepted(await server.kubectl(["apply", "--server-side", "-f", "-"], listOf(first)));
});

after(async () => {
  await (server as ApiServer | undefined)?.stop();
  rmSync(directory, { recursive: true });
});

function accepted(done: Done): Done {
  assert.equal(done.exitCode, 0, done.stderr);
  return done;
}

/** By the real engine and the real provider, all in one program. */
async function renderAll(): Promise<void> {
  const backend = path.join(directory, "backend");
  const passphraseFile = path.join(directory, "passphrase");
  mkdirSync(backend);
  writeFileSync(passphraseFile, "only for this test", { mode: 0o600 });
  const config = path.join(directory, "Pulumi.all.yaml");
  const target = path.join(directory, "rendered");
  writeFileSync(config, `config: ${JSON.stringify({ "manifests:directory": target })}\n`);
  writeFileSync(path.join(directory, "Pulumi.yaml"), "name: manifests\nruntime: nodejs\n");
  const environment: Record<string, string | undefined> = {
    ...process.env,
    ...pulumiEnvironment(root, { stateDirectory: backend, passphraseFile }),
    PATH: toolSearchPath(root, process.env["PATH"]),
  };
  delete environment["KUBECONFIG"];
  const began = performance.now();
  const { pulumi } = toolPaths(root);
  const shell = $({ quiet: true, cwd: program, env: environment, timeout: "180s" });
  const flags = ["--non-interactive", "--color", "never"];
  await shell`${pulumi} stack init all --no-select --cwd ${directory} ${flags}`;
  const quickly = ["--yes", "--skip-preview", "--config-file", config];
  await shell`${pulumi} up -s all ${quickly} ${flags}`;
  renderSeconds = (performance.now() - began) / 1000;
}

function renderedObjects(name: string, kind: string): KubernetesObject[] {
  const place = path.join(directory, "rendered", `${name}-${kind}`);
  return readdirSync(place, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => parse(readFileSync(path.join(place, file), "utf8")) as KubernetesObject);
}

const byName = (objects: readonly KubernetesObject[]) =>
  new Map(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]));

/** Without what only tells the engine how to go about it. */
function withoutEngine(object: KubernetesObject): KubernetesObject {
  const { annotations, ...metadata } = object.metadata;
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !key.startsWith("pulumi.com/"));
  const rest = kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) };
  return { ...object, metadata: { ...metadata, ...rest } };
}

/** Calico's API is an addition to the API server, of which no schema can be had here. */
const isCalico = ({ apiVersion }: KubernetesObject) => apiVersion.startsWith("projectcalico.org/");

const dryRun = (objects: readonly object[], ...args: string[]) =>
  server.kubectl(
    ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", ...args],
    listOf(objects),
  );

const judged = (objects: readonly object[], args: readonly string[] = []) => {
  // One document an object, each on lines of its own.
  const input = objects.map((object) => JSON.stringify(object, null, 1)).join("\n---\n");
  return $({ quiet: true, nothrow: true, input, timeout: "30s" })`${judge} ${args}`;
};

/** As the cluster would store them once Istio's injector has seen them. */
async function injected(objects: readonly object[]): Promise<KubernetesObject[]> {
  const done = await judged(objects, ["-template", istio.template, "-values", istio.values]);
  assert.equal(done.exitCode, 0, done.stderr);
  return parseDocuments(done.stdout);
}

test("the provider writes just the objects that are rendered", (t) => {
  t.diagnostic(`API server ready ${server.seconds.toFixed(1)} s`);
  t.diagnostic(`${every.length} renderings ${renderSeconds.toFixed(1)} s`);
  for (const { kind, name } of every) {
    const written = renderedObjects(name, kind).map(withoutEngine);
    assert.deepEqual(byName(written), byName(objectsOf(podRendering(name, kind))));
  }
});

for (const { kind, name } of every) {
  test(`${name} on ${kind} is accepted by the API server`, async (t) => {
    const objects = renderedObjects(name, kind);
    const known = objects.filter((object) => !isCalico(object));
    for (const { kind, metadata } of objects.filter(isCalico)) {
      t.diagnostic(`${kind} ${metadata.name}: rendered only`);
    }
    const { stdout } = accepted(await dryRun(known));
    assert.equal(stdout.trimEnd().split("\n").length, known.length);
  });
}

test("Istio's own library finds nothing to say against the objects of a mesh", async () => {
  const objectsOfIstio = {
    "sidecar-tcp": 2,
    "sidecar-http": 2,
    "sidecar-policy": 3,
    "mtls-only": 2,
    "mtls-h1": 3,
    "mtls-h2": 3,
  };
  for (const [name, count] of Object.entries(objectsOfIstio)) {
    const done = await judged(renderedObjects(name, "k3s"));
    assert.equal(done.exitCode, 0, done.stderr);
    assert.equal(done.stdout.match(/: valid$/gm)?.length, count);
  }
});

test("Istio's library warns of the filter that full handshakes take, and of nothing else", async () => {
  const done = await judged(renderedObjects("mtls-only-full", "k3s"));
  assert.match(
    done.stderr.trim(),
    /^ztvalidate: EnvoyFilter ztbench\/full-handshakes: warning: EnvoyFilter exposes internal .*$/,
  );
  assert.equal(done.stdout.match(/: valid$/gm)?.length, 2);
});

test("with its sidecar each pod of a mesh is accepted, and is Guaranteed", async () => {
  for (const name of ["mtls-h1", "mtls-h2"]) {
    const pods = renderedObjects(name, "k3s").filter(({ kind }) => kind === "Pod");
    const whole = await injected(pods);
    assert.match(JSON.stringify(whole), /"name":"istio-proxy".*"name":"istio-init"/);
    const { stdout } = accepted(
      await dryRun(whole, "--output", "jsonpath={.items[*].status.qosClass}"),
    );
    assert.equal(stdout, "Guaranteed Guaranteed");
  }
});

test("pods go to the hosts of their roles and have room there", async (t) => {
  const inNamespace = ["--namespace", "ztbench"];
  // Else later dry runs would be changes of these pods.
  t.after(() => server.kubectl(["delete", "pods", ...inNamespace, "--all", "--force"]));
  const objects = renderedObjects("gateway", "kubernetes");
  accepted(await server.kubectl(["apply", "--server-side", "-f", "-"], listOf(objects)));
  const ready = ["wait", ...inNamespace, "--for=condition=Ready", "pod", "--all"];
  accepted(await server.kubectl([...ready, "--timeout=30s"]));
  const columns = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{'\\n'}{end}";
  const pods = ["get", "pods", ...inNamespace, "--output", columns];
  const { stdout } = accepted(await server.kubectl(pods));
  assert.deepEqual(stdout.trim().split("\n").sort(), [
    "gateway gateway",
    "load client",
    "service server",
  ]);
});

const [policy, rule, pod] = ["AuthorizationPolicy", "DestinationRule", "Pod"] as const;

/** One mistake in one kind of object, and who must find it. */
const mistakes = [
  ["a field that is not known", pod, /"restartPolicy"/, '"restartPolice"', /restartPolice/],
  ["requests above limits", pod, /("requests":\{"cpu":)"\d+m?"/, '$1"64"', /less than or equal/],
  ["a port out of range", pod, /"containerPort":8080/, '"containerPort":80800', /65535/],
  ["a choice that there is not", rule, /"ISTIO_MUTUAL"/, '"ISTIO_MUTABLE"', /ISTIO_MUTABLE/],
  ["an action that there is not", policy, /"ALLOW"/, '"ALLOWED"', /ALLOWED/],
] as const;

for (const [what, kind, from, to, message] of mistakes) {
  test(`${what} is refused by the API server`, async () => {
    const objects = renderedObjects("mtls-h2", "k3s").filter((object) => object.kind === kind);
    const spoilt = objects.map((object) => JSON.stringify(object).replace(from, to));
    assert.notDeepEqual(
      spoilt,
      objects.map((object) => JSON.stringify(object)),
    );
    const done = await dryRun(spoilt.map((text) => JSON.parse(text) as object));
    assert.notEqual(done.exitCode, 0);
    assert.match(done.stderr, message);
  });
}

const filter = "EnvoyFilter";
const judgedMistakes = [
  ["a field of a patch", filter, /"operation"/, '"operator"', /unknown field "operator"/],
  ["a field", rule, /"maxConnections"/, '"maxConnection"', /unknown field "maxConnection"/],
  ["a principal without a name", policy, /"cluster[^"]*"/, '""', /Principals/i],
] as const;

for (const [what, kind, from, to, message] of judgedMistakes) {
  test(`${what} is refused by Istio's own library`, async () => {
    const name = kind === filter ? "mtls-only-full" : "mtls-h2";
    const objects = renderedObjects(name, "k3s").filter((object) => object.kind === kind);
    const spoilt = objects.map((object) => JSON.stringify(object).replace(from, to));
    const done = await judged(spoilt.map((text) => JSON.parse(text) as object));
    assert.notEqual(done.exitCode, 0);
    assert.match(done.stderr, message);
  });
}

test("a sidecar with one quantity less is found, since its pod is not Guaranteed", async () => {
  const pods = renderedObjects("mtls-h2", "k3s").filter((object) => object.kind === pod);
  const spoilt = pods.map((object) => {
    const text = JSON.stringify(object).replace(/"sidecar.istio.io\/proxyMemoryLimit":"1Gi"/, "");
    return JSON.parse(text.replace(/,\}/g, "}")) as object;
  });
  const { stdout } = accepted(
    await dryRun(await injected(spoilt), "--output", "jsonpath={.items[*].status.qosClass}"),
  );
  assert.equal(stdout, "Burstable Burstable");
});
