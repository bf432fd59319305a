import assert from "node:assert/strict";
import { test } from "node:test";
import { stampOf } from "../../../analysis/stamp.ts";
import type { Manifest } from "../../../contracts/manifest.ts";
import { planSchema } from "../../../contracts/plan.ts";
import { articleVersion } from "../../../tools/versions.ts";

const plan = planSchema.parse({
  schema: "ztbench/plan/1",
  name: "tiny",
  purpose: "a test",
  seed: 1,
  blocks: 1,
  baseline: "base",
  treatments: [{ label: "base", topology: "baseline" }],
  load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 2, connections: 4 },
  equivalenceMargin: 0.05,
});

function manifestWith(programs: Manifest["programs"]): Manifest {
  return {
    schema: "ztbench/manifest/1",
    campaign: "tiny",
    createdAt: "2026-09-21T13:30:00Z",
    planSha256: "0".repeat(64),
    seed: 1,
    versionSet: "lab",
    programs,
    commit: "0".repeat(40),
    dirty: false,
    testbed: { name: "t", class: "lab", scheduling: "rr" },
    facts: {},
    order: [],
    warnings: [],
  };
}

const program = (name: string, version: string): Manifest["programs"][number] => {
  const articles = articleVersion(name);
  const shared = { name, version, sha256: "0".repeat(64), provenance: "upstream: test" };
  return articles === undefined ? shared : { ...shared, articles };
};

test("versions stand beside those of the articles, tools do not stand there at all", () => {
  const { versions } = stampOf(
    plan,
    manifestWith([
      program("envoy", "1.36.2"),
      program("vegeta", "12.11.0"),
      program("ztistiod", "0.0.0-20260827124520-eed52ebb66ad"),
      program("pulumi", "3.248.0"),
    ]),
    new Set(["rr"]),
  );
  assert.deepEqual(versions, [
    "Envoy 1.36.2 (articles: 1.28.0)",
    "vegeta 12.11.0",
    "ztistiod build of 2026-08-27 (articles: 1.20.2)",
  ]);
});

test("real-time scheduling that a host refused is told, and not claimed", () => {
  const refused = stampOf(plan, manifestWith([]), new Set(["rr", "other"]));
  assert.equal(refused.scheduling, "other");
  assert.match(refused.warnings.join("\n"), /SCHED_RR was asked for and refused/);
  const granted = stampOf(plan, manifestWith([]), new Set(["rr"]));
  assert.deepEqual([granted.scheduling, granted.warnings], ["rr", []]);
});
