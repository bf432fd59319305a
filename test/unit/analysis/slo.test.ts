/** Objectives against counts whose answer is known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeProbe, overMax, type ProbeCounts } from "../../../analysis/slo.ts";

test("as many requests may be late as the binomial table says", () => {
  // Published with the method: BinCDF(t; N, 0.01) <= 0.01.
  const table = [
    [10_000, 77],
    [30_000, 260],
    [100_000, 927],
    [600_000, 5820],
    [459, 0],
  ] as const;
  for (const [count, most] of table) assert.equal(overMax(count, 0.01), most, String(count));
});

test("fewer than 459 requests cannot show a p99, even if none is late", () => {
  assert.equal(overMax(458, 0.01), -1);
  const verdict = judgeProbe(objective, counts({ planned: 458 }));
  assert.deepEqual(verdict.reasons, ["458 requests are too few to tell"]);
});

const objective = { share: 0.01, sloMilliseconds: 10, failedShareMax: 0.001 };

function counts(given: Partial<ProbeCounts> = {}): ProbeCounts {
  const planned = given.planned ?? 10_000;
  const windows = Array.from({ length: 10 }, () => ({ planned: planned / 10, over: 0 }));
  return { planned, sent: planned, failed: 0, over: 0, windows, ...given };
}

test("a probe without a late request passes", () => {
  assert.deepEqual(judgeProbe(objective, counts()), { passed: true, reasons: [] });
});

const faults = [
  ["requests that were never sent", { sent: 9949, over: 51 }, /^sent 9949 of 10000$/],
  ["failed requests", { failed: 11, over: 11 }, /^11 of 10000 failed or unsent$/],
  ["late requests", { over: 78 }, /^78 over 10 ms, 77 of 10000 may be$/],
] as const;
for (const [name, given, reason] of faults) {
  test(`${name} are no pass, and are named`, () => {
    const { passed, reasons } = judgeProbe(objective, counts(given));
    assert.equal(passed, false);
    assert.match(reasons[0] ?? "", reason);
  });
}

test("late requests that come in two bursts are no pass, though few in all", () => {
  const windows = counts().windows.map((window, index) =>
    index === 3 || index === 7 ? { ...window, over: 30 } : window,
  );
  const { reasons } = judgeProbe(objective, counts({ over: 60, windows }));
  assert.deepEqual(reasons, ["8 of 10 parts hold the objective, 9 must"]);
  const [once] = [
    windows.map((window, index) => (index === 7 ? { planned: 1000, over: 0 } : window)),
  ];
  assert.equal(judgeProbe(objective, counts({ over: 30, windows: once })).passed, true);
});
