import assert from "node:assert/strict";
import { test } from "node:test";
import { Estimate, plannedRunSeconds } from "../../../loadgen/progress.ts";
import { examplePlan } from "./example.ts";

test("the time left follows the plan until a run has ended, then the mean of those that did", () => {
  const plan = examplePlan(["baseline"]);
  const estimate = new Estimate(plan);
  assert.equal(estimate.secondsFor(3), 3 * plannedRunSeconds(plan.load));
  estimate.learn(2);
  estimate.learn(4);
  assert.deepEqual(
    [estimate.secondsFor(3), estimate.secondsFor(1), estimate.secondsFor(0)],
    [9, 3, 0],
  );
});
