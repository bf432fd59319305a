/** Asks the installed programs of Kubernetes for their versions. Needs `--with-tests`. */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { $ } from "zx";
import { readToolsManifest } from "../../tools/manifest.ts";
import { toolPaths } from "../../tools/paths.ts";
import { versions } from "../../tools/versions.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { bin, clusterBin } = toolPaths(root);
const { kubernetes, etcd, kwok } = versions;

const expected: readonly (readonly [string, readonly string[], string])[] = [
  ["kube-apiserver", ["--version"], `Kubernetes v${kubernetes.version}\n`],
  ["kube-controller-manager", ["--version"], `Kubernetes v${kubernetes.version}\n`],
  ["kube-scheduler", ["--version"], `Kubernetes v${kubernetes.version}\n`],
  ["kubectl", ["version", "--client"], `Client Version: v${kubernetes.version}\n`],
  ["etcd", ["--version"], `etcd Version: ${etcd.version}\n`],
];

for (const [name, words, start] of expected) {
  test(`${name} is the version of the table`, async () => {
    const spawn = $({ quiet: true, timeout: "60s", env: { HOME: "/nonexistent" } });
    const { stdout } = await spawn`${path.join(clusterBin, name)} ${words}`;
    assert.ok(stdout.startsWith(start), stdout);
  });
}

test("kwok is the version of the table", async () => {
  const spawn = $({ quiet: true, timeout: "60s", env: { HOME: "/nonexistent" } });
  const { stdout } = await spawn`${path.join(bin, "kwok")} --version`;
  assert.match(stdout, new RegExp(`\\bv?${kwok.version.replaceAll(".", "\\.")}\\b`));
});

test("the Kubernetes provider is upstream's, with a start of our own, and says so", async () => {
  const { programs } = await readToolsManifest(root);
  const provider = programs.find(({ name }) => name === "pulumi-resource-kubernetes");
  assert.equal(provider?.version, versions["pulumi-resource-kubernetes"].version);
  assert.match(provider.provenance, /^github\.com\/pulumi\/pulumi-kubernetes\S+ v\S+, own start/);
});

test("pulumi finds the Kubernetes provider among its plugins", async () => {
  const spawn = $({
    quiet: true,
    timeout: "60s",
    env: { ...process.env, PULUMI_HOME: toolPaths(root).pulumiHome },
  });
  const { stdout } = await spawn`${toolPaths(root).pulumi} plugin ls --json`;
  const plugins = JSON.parse(stdout) as { name: string; version: string }[];
  const found = plugins.filter(({ name }) => name === "kubernetes").map(({ version }) => version);
  assert.deepEqual(found, [versions["pulumi-resource-kubernetes"].version]);
});
