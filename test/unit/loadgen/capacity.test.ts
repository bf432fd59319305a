/** Which searches a plan asks for, and in which order. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Plan, planSchema } from "../../../contracts/plan.ts";
import { orderSearches } from "../../../loadgen/capacity.ts";

const planOf = (treatments: unknown[], capacity: object = {}): Plan =>
  planSchema.parse({
    schema: "ztbench/plan/1",
    name: "capacity",
    purpose: "a test",
    seed: 7,
    blocks: 1,
    baseline: "baseline",
    treatments: [{ label: "baseline", topology: "baseline" }, ...treatments],
    load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 10, connections: 8 },
    capacity: { blocks: 2, sloMilliseconds: 10, startQps: 500, maxQps: 9000, ...capacity },
    equivalenceMargin: 0.05,
  });

const labelsOf = (plan: Plan, block: number) =>
  orderSearches(plan)
    .filter((search) => search.block === block)
    .map(({ label }) => label)
    .sort();

test("each block searches every steady treatment and the null server once", () => {
  const plan = planOf([
    { label: "jwt", topology: "jwt" },
    { label: "cold", topology: "jwt", condition: "cold-start" },
  ]);
  for (const block of [1, 2])
    assert.deepEqual(labelsOf(plan, block), ["baseline", "ceiling", "jwt"]);
  assert.deepEqual(
    orderSearches(plan).map(({ block, position }) => [block, position]),
    [1, 2].flatMap((block) => [1, 2, 3].map((position) => [block, position])),
  );
});

test("no treatment has the label of the search against the null server", () => {
  const refused = /must be another one, the search against the null server has it/;
  assert.throws(() => planOf([{ label: "ceiling", topology: "jwt" }]), refused);
});

test("treatments that differ in their rate only are searched once", () => {
  const plan = planOf([
    { label: "baseline-fast", topology: "baseline", rateQps: 200 },
    { label: "jwt-fast", topology: "jwt", rateQps: 200, baseline: "baseline-fast" },
    { label: "baseline-large", topology: "baseline", parameters: { bodyBytes: 4096 } },
  ]);
  assert.deepEqual(labelsOf(plan, 1), ["baseline", "baseline-large", "ceiling", "jwt-fast"]);
});

test("the same seed gives the same order, another one another", () => {
  const plan = planOf(
    ["jwt", "gateway", "mtls-h1", "mtls-h2"].map((name) => ({ label: name, topology: name })),
  );
  assert.deepEqual(orderSearches(plan), orderSearches(plan));
  assert.notDeepEqual(orderSearches(plan), orderSearches({ ...plan, seed: 8 }));
});

test("a plan without capacities, or without a ceiling, asks for none", () => {
  const without = { ...planOf([]) };
  delete without.capacity;
  assert.deepEqual(orderSearches(without), []);
  assert.deepEqual(labelsOf(planOf([], { ceiling: false }), 1), ["baseline"]);
});
