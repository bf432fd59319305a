import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Plan } from "../../../contracts/plan.ts";
import {
  type Attempt,
  nextRun,
  orderRuns,
  type PlannedRun,
  runsLeft,
} from "../../../loadgen/order.ts";
import { seededDraw, splitMix64 } from "../../../loadgen/random.ts";
import { examplePlan } from "./example.ts";

const labels = ["baseline", "jwt", "gateway", "mtls-h1", "mtls-h2"];

const plans: fc.Arbitrary<Plan> = fc
  .record({
    seed: fc.nat(),
    blocks: fc.integer({ min: 1, max: 12 }),
    treatments: fc.integer({ min: 1, max: labels.length }),
  })
  .map(({ seed, blocks, treatments }) => ({
    ...examplePlan(labels.slice(0, treatments)),
    seed,
    blocks,
  }));

const names = (runs: readonly PlannedRun[]) => runs.map((run) => `${run.label}/${run.arm}`);

test("draws the published first numbers of SplitMix64 for seed 1234567", () => {
  const next = splitMix64(1234567n);
  assert.deepEqual(
    [next(), next(), next(), next(), next()],
    [
      6457827717110365317n,
      3203168211198807973n,
      9817491932198370423n,
      4593380528125082431n,
      16408922859458223821n,
    ],
  );
});

test("draws every number below the bound about equally often", () => {
  const draw = seededDraw(7);
  const counts = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < 12_000; i++) {
    const value = draw(6);
    counts[value] = (counts[value] ?? 0) + 1;
  }
  for (const count of counts) assert.ok(Math.abs(count - 2000) < 200, `counts ${counts.join(" ")}`);
});

test("orders three treatments of seed 1 in the known way", () => {
  const plan = { ...examplePlan(["baseline", "jwt", "gateway"]), seed: 1, blocks: 3 };
  assert.deepEqual(names(orderRuns(plan)), [
    "jwt/a",
    "gateway/a",
    "baseline/b",
    "baseline/a",
    "jwt/a",
    "baseline/b",
    "gateway/a",
    "baseline/a",
    "baseline/b",
    "gateway/a",
    "jwt/a",
    "baseline/a",
  ]);
});

test("holds every treatment once and the baseline twice in each block", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const order = orderRuns(plan);
      assert.deepEqual(
        order.map((run) => run.run),
        order.map((_, index) => index + 1),
      );
      const cells = plan.treatments.map(({ label }) => `${label}/a`);
      const wanted = [...cells, `${plan.baseline}/b`].sort();
      for (let block = 1; block <= plan.blocks; block++) {
        const runs = order.filter((run) => run.block === block);
        assert.deepEqual(names(runs).sort(), wanted);
        assert.deepEqual(
          runs.map((run) => run.position),
          runs.map((_, index) => index + 1),
        );
      }
    }),
  );
});

test("keeps the first blocks when a plan gets more blocks", () => {
  fc.assert(
    fc.property(plans, fc.integer({ min: 1, max: 5 }), (plan, more) => {
      const short = orderRuns(plan);
      const long = orderRuns({ ...plan, blocks: plan.blocks + more });
      assert.deepEqual(long.slice(0, short.length), short);
    }),
  );
});

test("gives another order for another seed", () => {
  const plan = { ...examplePlan(labels), blocks: 6 };
  assert.notDeepEqual(
    names(orderRuns({ ...plan, seed: 1 })),
    names(orderRuns({ ...plan, seed: 2 })),
  );
});

/** Executes an order as the campaign does, failing where told. */
function execute(order: PlannedRun[], fails: (executed: number) => boolean): PlannedRun[] {
  const attempts: Attempt[] = [];
  const executed: PlannedRun[] = [];
  for (;;) {
    const next = nextRun(order, attempts);
    if (next === undefined) return executed;
    executed.push(next);
    attempts.push({ ...next, failed: fails(executed.length) });
  }
}

test("executes exactly the planned order when nothing fails", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const order = orderRuns(plan);
      assert.deepEqual(
        execute(order, () => false),
        order,
      );
    }),
  );
});

test("repeats a failed run once, at the end of its block, with the next run number", () => {
  const order = orderRuns({ ...examplePlan(["baseline", "jwt", "gateway"]), blocks: 2 });
  const executed = execute(order, (n) => n === 2);
  assert.equal(executed.length, order.length + 1);
  const repeat = executed[4];
  assert.deepEqual(repeat, { ...order[1], run: 5, position: 5 });
  assert.deepEqual(executed[5], { ...order[4], run: 6 });
});

test("tries each planned run twice at most, and never leaves its block", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const order = orderRuns(plan);
      const executed = execute(order, () => true);
      assert.equal(executed.length, 2 * order.length);
      const blocks = executed.map((run) => run.block);
      assert.deepEqual(
        blocks,
        [...blocks].sort((a, b) => a - b),
      );
      for (const block of new Set(blocks)) {
        const places = executed.filter((run) => run.block === block).map((run) => run.position);
        assert.deepEqual(
          places,
          places.map((_, index) => index + 1),
        );
      }
    }),
  );
});

test("counts what is left, repeats of failed runs included", () => {
  const order = orderRuns({ ...examplePlan(["baseline", "jwt"]), blocks: 2 });
  const [first, second] = order;
  assert.ok(first && second);
  assert.equal(runsLeft(order, []), 6);
  assert.equal(runsLeft(order, [{ ...first, failed: false }]), 5);
  assert.equal(runsLeft(order, [{ ...first, failed: true }]), 6);
  assert.equal(
    runsLeft(order, [
      { ...first, failed: true },
      { ...second, failed: false },
    ]),
    5,
  );
});
