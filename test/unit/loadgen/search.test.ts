/** The search for a capacity against servers whose capacity is known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ladderRates, nextStep, probesMax, type Tried } from "../../../loadgen/search.ts";

const rules = { startQps: 500, maxQps: 100_000, precision: 0.02, confirmations: 3 };

/** Drives a search to its end against what a server would show. */
function searched(holds: (rateQps: number, tried: readonly Tried[]) => boolean, given = rules) {
  const tried: Tried[] = [];
  while (tried.length < probesMax) {
    const step = nextStep(given, tried);
    if (step.next === "done") return { because: step.because, tried };
    const passed = holds(step.rateQps, tried);
    tried.push({ purpose: step.next, rateQps: step.rateQps, passed });
  }
  throw new Error("the search does not end");
}

const confirmed = (tried: readonly Tried[]) =>
  tried.filter(({ purpose, passed }) => purpose === "confirm" && passed).at(-1)?.rateQps ?? 0;

for (const capacity of [37, 498, 500, 501, 18_000, 42_000]) {
  test(`a server of ${capacity}/s is found from below, within the precision`, () => {
    const { because, tried } = searched((rate) => rate <= capacity);
    assert.equal(because, "confirmed");
    const found = confirmed(tried);
    assert.ok(found <= capacity, `${found} is above ${capacity}`);
    assert.ok(found >= Math.floor(capacity / 1.02) - 1, `${found} is far below ${capacity}`);
    assert.equal(tried.filter(({ purpose }) => purpose === "confirm").length, 3);
    assert.ok(tried.length <= 25, `${tried.length} probes`);
  });
}

test("a candidate that does not hold when confirmed is lowered until one holds three times", () => {
  const { tried } = searched((rate, so) =>
    so.some(({ purpose }) => purpose === "confirm") ? rate <= 970 : rate <= 1000,
  );
  const found = confirmed(tried);
  assert.ok(found <= 970 && found > 950, String(found));
  const last = tried.slice(-3);
  assert.deepEqual(
    last.map(({ rateQps, passed }) => [rateQps, passed]),
    [found, found, found].map((rate) => [rate, true]),
  );
});

test("a server that outruns the highest rate is told as at most that rate", () => {
  const { because, tried } = searched(() => true, { ...rules, maxQps: 3000 });
  assert.equal(because, "at most");
  assert.equal(confirmed(tried), 3000);
});

test("a server that holds nothing ends the search with nothing", () => {
  const { because, tried } = searched(() => false);
  assert.equal(because, "none holds");
  assert.ok(tried.every(({ passed }) => !passed));
});

test("noise that lets a rate hold above one that failed confirms the lower end", () => {
  const tried: Tried[] = [
    { purpose: "search", rateQps: 500, passed: true },
    { purpose: "search", rateQps: 750, passed: false },
    { purpose: "search", rateQps: 612, passed: true },
  ];
  assert.deepEqual(nextStep(rules, tried), { next: "search", rateQps: 677 });
  const contrary = [...tried, { purpose: "search", rateQps: 760, passed: true } as const];
  assert.deepEqual(nextStep(rules, contrary), { next: "confirm", rateQps: 760 });
});

test("a ladder goes in geometric steps from one share of the capacity to another", () => {
  assert.deepEqual(
    ladderRates(1000, { steps: 3, from: 0.25, to: 1, secondsPerStep: 1 }),
    [250, 500, 1000],
  );
  const rates = ladderRates(18_000, { steps: 10, from: 0.1, to: 1.1, secondsPerStep: 1 });
  assert.equal(rates.length, 10);
  assert.deepEqual([rates[0], rates.at(-1)], [1800, 19_800]);
});

test("a ladder of a tiny capacity has no rate twice", () => {
  const rates = ladderRates(3, { steps: 10, from: 0.1, to: 1.1, secondsPerStep: 1 });
  assert.equal(new Set(rates).size, rates.length);
});
