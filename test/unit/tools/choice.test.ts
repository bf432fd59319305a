import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { chooseRecipes } from "../../../tools/choice.ts";
import { kubernetesRecipes } from "../../../tools/kubernetes.ts";
import { toolPaths } from "../../../tools/paths.ts";
import type { ProgramGroup, Recipe } from "../../../tools/programs.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const go = { command: "go", version: "go1.26.0", os: "linux", architecture: "amd64" };

const recipe = (name: string, groups?: readonly ProgramGroup[]) => ({
  name,
  key: `key of ${name}`,
  ...(groups && { groups }),
});
const recipes = [
  recipe("vegeta"),
  recipe("kube-apiserver", ["tests", "cluster"]),
  recipe("kwok", ["tests"]),
  recipe("kubelet", ["cluster"]),
];
const none = new Set<string>();
const names = (chosen: readonly { readonly name: string }[]) => chosen.map(({ name }) => name);

test("without options a new checkout gets nothing that takes long", () => {
  assert.deepEqual(names(chooseRecipes(recipes, new Set(), none, none).wanted), ["vegeta"]);
});

test("each option adds its own, and what both need", () => {
  const tests = chooseRecipes(recipes, new Set(["tests"] as const), none, none);
  assert.deepEqual(names(tests.wanted), ["vegeta", "kube-apiserver", "kwok"]);
  const cluster = chooseRecipes(recipes, new Set(["cluster"] as const), none, none);
  assert.deepEqual(names(cluster.wanted), ["vegeta", "kube-apiserver", "kubelet"]);
});

test("a later run without options keeps what is current, and names what is not", () => {
  const before = new Set(["vegeta", "kube-apiserver", "kubelet"]);
  const cached = new Set(["key of kubelet", "key of kwok"]);
  const { wanted, dropped } = chooseRecipes(recipes, new Set(), before, cached);
  assert.deepEqual(names(wanted), ["vegeta", "kubelet"]);
  assert.deepEqual(names(dropped), ["kube-apiserver"]);
});

const optional = await kubernetesRecipes(root, go);
const filesOf = (group: ProgramGroup) =>
  optional.filter(({ groups }) => groups?.includes(group)).flatMap(({ files }) => files);

test("nothing of Kubernetes goes to hosts that do not run it", () => {
  const files = optional.flatMap((r) => r.files);
  assert.deepEqual(
    files.filter((file) => file.startsWith("host-bin/")),
    [],
  );
  assert.ok(optional.every(({ groups }) => groups !== undefined && groups.length > 0));
});

test("what checks manifests and what runs a cluster is all there", () => {
  const api = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
  const plugin = path.relative(toolPaths(root).tools, toolPaths(root).kubernetesPlugin);
  const shared = [...api.map((name) => `cluster-bin/${name}`), "bin/kubectl", plugin];
  assert.deepEqual(filesOf("tests").sort(), [...shared, "bin/kwok"].sort());
  const nodes = ["kubelet", "kube-proxy", "kube-router"].map((name) => `cluster-bin/${name}`);
  assert.deepEqual(filesOf("cluster").sort(), [...shared, ...nodes].sort());
});

test("a long build says how long it takes", () => {
  const quiet = (task: string) => !/about \d+ min/.test(task);
  const long = optional.filter(({ name }: Recipe) => /apiserver|kwok|router|resource/.test(name));
  assert.equal(long.length, 4);
  assert.deepEqual(
    long.map(({ task }) => task).filter((task) => quiet(task)),
    [],
  );
});
