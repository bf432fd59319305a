import assert from "node:assert/strict";
import { test } from "node:test";
import { minorVersion, requireTested, untestedParts } from "../../../contracts/compatibility.ts";
import { Failure } from "../../../contracts/failure.ts";
import { manifestSchema } from "../../../contracts/manifest.ts";
import { versionSets } from "../../../tools/version-entry.ts";
import { chooseSet, clusterVersions, setOf } from "../../../tools/version-sets.ts";

const strict = { allowUntested: false, where: "in the artifacts document" };

test("releases that their makers test together pass", () => {
  requireTested({ kubernetes: "1.28.5+k3s1", calico: "3.26.4", istio: "1.20.2" }, strict);
  requireTested({ kubernetes: "1.29.15+k3s1", calico: "3.27.3", istio: "1.20.8" }, strict);
  requireTested({ kubernetes: "1.28.15" }, strict);
});

test("an untested pair is refused, naming what the release may be on", () => {
  const tuple = { kubernetes: "1.29.15+k3s1", calico: "3.26.4", istio: "1.20.2" };
  assert.throws(
    () => {
      requireTested(tuple, strict);
    },
    (error: unknown) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.code, "document");
      assert.equal(
        error.message,
        "calico 3.26.4: not tested with Kubernetes 1.29, allowed are 1.24, 1.25, 1.26, 1.27, 1.28",
      );
      assert.match(error.hint ?? "", /allowUntested: true in the artifacts document/);
      return true;
    },
  );
  requireTested(tuple, { ...strict, allowUntested: true });
});

test("a release that is not in the table is refused, naming those for its Kubernetes", () => {
  assert.deepEqual(untestedParts({ kubernetes: "1.28.5", calico: "3.20.0", istio: "1.31.0" }), [
    "calico 3.20.0: not tested with Kubernetes 1.28, allowed are releases 3.26, 3.27",
    "istio 1.31.0: not tested with Kubernetes 1.28, allowed are releases 1.20",
  ]);
});

test("a Kubernetes that nothing is tested with names all there is", () => {
  const table = { calico: { "9.1": ["7.1", "7.2"] }, istio: {} };
  assert.deepEqual(untestedParts({ kubernetes: "7.3.0", calico: "9.0.0" }, table), [
    "calico 9.0.0: not tested with Kubernetes 7.3, allowed are 9.1 with Kubernetes 7.1 7.2",
  ]);
});

test("a minor version has two numbers, and 1.3 is not 1.30", () => {
  assert.equal(minorVersion("1.28.5+k3s1"), "1.28");
  assert.equal(untestedParts({ kubernetes: "1.28.5", istio: "1.2.0" }).length, 1);
});

test("the sets of official releases are tested tuples; the lab's is not, and says so", () => {
  assert.deepEqual(untestedParts(clusterVersions("era")), []);
  assert.deepEqual(untestedParts(clusterVersions("current")), []);
  assert.match(untestedParts(clusterVersions("lab")).join(), /^istio 1\.31\.0: not tested/);
});

test("the era set is what the articles name", () => {
  const { kubernetes, istio, envoy } = clusterVersions("era");
  assert.deepEqual([kubernetes, istio, envoy], ["1.28.5+k3s1", "1.20.2", "1.28.0"]);
});

test("a choice of versions is known by its set, and anything else is none", () => {
  for (const set of versionSets) assert.equal(setOf(clusterVersions(set)), set);
  const era = clusterVersions("era");
  assert.equal(setOf({ ...era, calico: "3.27.3" }), undefined);
  assert.equal(setOf({ ...era, istio: "1.20.8" }), undefined);
});

test("a lab cannot have official releases, nor metal the lab's builds", () => {
  assert.equal(chooseSet("lab", "lab"), "lab");
  assert.equal(chooseSet("current", "metal"), "current");
  const refused = (message: RegExp) => (error: unknown) =>
    error instanceof Failure && error.code === "document" && message.test(error.message);
  assert.throws(() => chooseSet("era", "lab"), refused(/^version set: era on a lab .* are lab$/));
  assert.throws(() => chooseSet("lab", "metal"), refused(/allowed are era, current$/));
  assert.throws(() => chooseSet("new", "metal"), refused(/new, allowed are lab, era, current$/));
});

test("every set can be written into the manifest of a bundle", () => {
  const allowed: readonly string[] = manifestSchema.shape.versionSet.options;
  assert.deepEqual(
    versionSets.filter((set) => !allowed.includes(set)),
    [],
  );
});
