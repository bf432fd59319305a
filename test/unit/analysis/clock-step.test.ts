import assert from "node:assert/strict";
import { test } from "node:test";
import { findClockStep } from "../../../analysis/clock-step.ts";
import { analyse } from "../../../analysis/report.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";

test("a clock that steps inside a run makes just that run invalid, forward and back", async () => {
  for (const [stepNs, measured] of [
    [40_000_000, "a step forward of 40.020 ms in second 4"],
    [-40_000_000, "-39.980 ms at least"],
  ] as const) {
    const directory = await makeBundle({
      blocks: 1,
      content: ({ label }, plan) => ({
        cpuPerRequestUs: 100,
        rows: steadyRows(plan, () => 200_000).map((row) =>
          label === "gateway" && row.seq >= 4000 ? { ...row, sentNs: row.sentNs + stepNs } : row,
        ),
      }),
    });
    try {
      const { runs } = await analyse(directory);
      const clocks = runs.map(({ gates }) => gates.find(({ id }) => id === "clock"));
      assert.deepEqual(
        clocks.map((gate) => gate?.outcome),
        ["pass", "invalid", "pass"],
      );
      assert.equal(clocks[1]?.measured, measured);
    } finally {
      await removeBundle(directory);
    }
  }
});

const ms = (...lags: readonly number[]) => lags.map((lag) => lag * 1e6);

test("what a driver does that is late and catches up is no step", () => {
  for (const lags of [
    ms(0, 0, 0, 0, 0),
    ms(0, 30, 60, 90, 120, 150),
    ms(0, 50, 50, 50, 0),
    ms(50, 50, 50, 50, 50),
    ms(0, 0, 0, 50, 50),
    ms(0, 5, 5, 5, 5, 5),
    [],
  ]) {
    assert.equal(findClockStep(lags), undefined, JSON.stringify(lags));
  }
});

test("the second of a step and its size are told, across seconds without requests", () => {
  assert.deepEqual(findClockStep(ms(0, 1, 50, 52, 51)), { second: 2, ns: 50e6 });
  assert.deepEqual(findClockStep(ms(0, Infinity, 50, Infinity, 50, 50)), { second: 2, ns: 50e6 });
  assert.deepEqual(findClockStep(ms(0, 0, -20, 0)), { second: 2, ns: -20e6 });
});
