import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { artifactOf, artifactsSchema } from "../../../contracts/artifacts.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { fetchSet, planFiles } from "../../../tools/artifact-set.ts";
import { completeArtifacts, readArtifacts } from "../../../tools/artifacts.ts";
import { setOf } from "../../../tools/version-sets.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "set-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const addresses = (url: string) => Promise.resolve(Buffer.from(`content of ${url}`));

test("the era set is fetched from where its makers publish it", () => {
  assert.deepEqual(
    planFiles("era", "amd64").flatMap(({ urls }) => urls),
    [
      "https://github.com/k3s-io/k3s/releases/download/v1.28.5%2Bk3s1/k3s",
      "https://raw.githubusercontent.com/projectcalico/calico/v3.26.4/manifests/tigera-operator.yaml",
      "https://istio-release.storage.googleapis.com/charts/base-1.20.2.tgz",
      "https://istio-release.storage.googleapis.com/charts/istiod-1.20.2.tgz",
    ],
  );
  assert.match(planFiles("era", "arm64")[0]?.urls[0] ?? "", /\/k3s-arm64$/);
});

for (const set of ["era", "current"] as const) {
  test(`what is written for the ${set} set is a document that is complete and of that set`, async () => {
    const text = await fetchSet(set, "amd64", directory, addresses);
    const { k3s, calico, istio } = parseDocument(artifactsSchema, text, "artifacts.yaml");
    assert.equal(setOf({ kubernetes: k3s, calico, ...(istio && { istio }) }), set);
    const store = await readArtifacts(path.join(directory, "artifacts.yaml"));
    await completeArtifacts(store);
    assert.ok(artifactOf(store.artifacts, "istiod"));
  });
}

test("definitions that are a file of their own come first in the one manifest", async () => {
  const text = await fetchSet("current", "amd64", directory, addresses);
  const manifest = await readFile(path.join(directory, "tigera-operator-3.32.4.yaml"), "utf8");
  assert.match(manifest, /operator-crds\.yaml\n---\ncontent of \S+tigera-operator\.yaml$/);
  const { files } = parseDocument(artifactsSchema, text, "artifacts.yaml");
  assert.equal(files.find(({ role }) => role === "calico-operator")?.url, undefined);
});

test("no two sets or processors share the name of a file that differs", () => {
  const names = (["era", "current"] as const).flatMap((set) =>
    planFiles(set, "amd64").map(({ name }) => name),
  );
  assert.equal(new Set(names).size, names.length);
  assert.notEqual(planFiles("era", "amd64")[0]?.name, planFiles("era", "arm64")[0]?.name);
});

test("a document that is there is never written over", async () => {
  await writeFile(path.join(directory, "artifacts.yaml"), "mine");
  await assert.rejects(
    fetchSet("era", "amd64", directory, () => assert.fail("fetched")),
    (error: unknown) => error instanceof Failure && error.message.includes("is there already"),
  );
  assert.equal(await readFile(path.join(directory, "artifacts.yaml"), "utf8"), "mine");
});

test("a fetch that fails leaves no document and no half file", async () => {
  const failing = (url: string) =>
    url.includes("istio") ? Promise.reject(new Error("no way out")) : addresses(url);
  await assert.rejects(fetchSet("era", "amd64", directory, failing), /no way out/);
  const text = await fetchSet("era", "amd64", directory, (url) => {
    assert.match(url, /istio/, "what is there is fetched again");
    return addresses(url);
  });
  assert.match(text, /^# The era set/);
});
