import assert from "node:assert/strict";
import { test } from "node:test";
import { capacitySchema } from "../../../contracts/capacity.ts";
import { durationOf } from "../../../loadgen/duration.ts";
import { examplePlan } from "./example.ts";

test("runs take what their own treatment takes, and the baseline runs twice", () => {
  const plan = examplePlan(["baseline", "jwt"]);
  // 2 s of pre-warming, 1 s of warm-up, 2 s of load and 10 s for all else, three times a block.
  assert.equal(durationOf({ ...plan, blocks: 4 }).runSeconds, 4 * 3 * 15);
  const [baseline, jwt] = plan.treatments;
  assert.ok(baseline !== undefined && jwt !== undefined);
  const cold = { ...plan, treatments: [baseline, { ...jwt, condition: "cold-start" as const }] };
  // The cold start has neither pre-warming nor warm-up.
  assert.equal(durationOf(cold).runSeconds, 2 * 15 + 12);
});

test("searches follow the rule by which they will be made", () => {
  const capacity = capacitySchema.parse({
    blocks: 2,
    sloMilliseconds: 10,
    startQps: 100,
    maxQps: 10_000,
    precision: 0.5,
    settleSeconds: 1,
    probeSeconds: 4,
    cooldownSeconds: 5,
    confirmations: 3,
    confirmSeconds: 14,
    ladder: { steps: 5, secondsPerStep: 2 },
    ceiling: false,
  });
  const found = durationOf({ ...examplePlan(["baseline", "jwt"]), capacity });
  // 100, 150, 225, 338, 507, 761 hold for an assumed 1000, 1142 does not: half as much again and a
  // little more, so 932 in the middle is tried, too.
  const search = 8 * (1 + 4 + 5) + 3 * (1 + 14 + 5) + 2 * 5 * (1 + 2 + 5) + 10;
  assert.deepEqual(
    [found.searches, found.searchSeconds, found.seconds - found.runSeconds],
    [4, 4 * search, 4 * search],
  );
});
