import assert from "node:assert/strict";
import { test } from "node:test";
import { bootstrapMean } from "../../../analysis/bootstrap.ts";
import { estimateNoise, estimateRatio, holdFamily } from "../../../analysis/loss.ts";
import { holm, quantile, spearman } from "../../../analysis/statistics.ts";
import { mannKendall, startupLength } from "../../../analysis/steady.ts";
import { normal, seeded } from "../../support/bundle.ts";

const near = (found: number, expected: number, tolerance: number): void => {
  assert.ok(Math.abs(found - expected) <= tolerance, `${found}, not ${expected}`);
};
const noisy = (length: number, seed: number, sd: number, mean: (at: number) => number) => {
  const random = seeded(seed);
  return Array.from({ length }, (_, at) => mean(at) + sd * normal(random));
};

test("Mann-Kendall of ten rising values has S 45 and variance 125", () => {
  const { z, p } = mannKendall([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  near(z, 44 / Math.sqrt(125), 1e-12);
  near(p, 8.3e-5, 1e-6);
});

test("Mann-Kendall corrects for ties, and of equal values finds nothing", () => {
  assert.equal(mannKendall([3, 3, 3, 3]).z, 0);
  // S = 5 of 1, 1, 2, 3; variance (4*3*13 - 2*1*9) / 18.
  near(mannKendall([1, 1, 2, 3]).z, 4 / Math.sqrt((156 - 18) / 18), 1e-12);
});

test("Mann-Kendall sees a drift of 13 % in 120 s, and one series in a hundred without any", () => {
  const share = (drift: number) => {
    let seen = 0;
    for (let i = 0; i < 1000; i += 1) {
      const logs = noisy(120, i + 1, 0.1, (at) => (Math.log(1 + drift) * at) / 120);
      if (Math.abs(mannKendall(logs).z) > 2.58) seen += 1;
    }
    return seen / 1000;
  };
  assert.ok(share(0) < 0.02, "false alarms");
  assert.ok(share(0.13) > 0.5, "power");
});

test("MSER-5 finds the end of a start-up, to a batch, and none in a steady series", () => {
  const starting = noisy(120, 3, 0.01, (at) => (at < 40 ? 1 : 0));
  const cut = startupLength(starting) ?? -1;
  assert.ok(cut >= 40 && cut <= 60, `cut after ${cut}`);
  assert.equal(startupLength(new Array<number>(120).fill(1)), 0);
  assert.equal(startupLength([1, 2, 3]), undefined);
});

test("Holm's adjustment and ranks worked by hand come out", () => {
  assert.deepEqual(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
  const found = spearman([
    [1, 2],
    [2, 1],
    [3, 4],
    [4, 3],
    [5, 5],
  ]);
  near(found?.r ?? 0, 0.8, 1e-12);
  near(found?.p ?? 0, 0.104, 5e-4);
  assert.equal(quantile([1, 2, 3, 4], 0.5), 2.5);
});

test("intervals of five and of ten pairs cover the truth in 93 to 97 of 100 campaigns", () => {
  for (const blocks of [5, 10]) {
    const random = seeded(blocks);
    let covered = 0;
    for (let i = 0; i < 2000; i += 1) {
      const pairs = Array.from({ length: blocks }, (_, block) => {
        const level = Math.exp(0.1 * normal(random));
        const run = () => level * Math.exp(0.05 * normal(random));
        return { block, treatment: 3 * run(), baseline: [run(), run()] as const };
      });
      const found = estimateRatio(pairs, 0.05);
      if (found.kind === "estimate" && found.low <= 3 && found.high >= 3) covered += 1;
    }
    assert.ok(covered >= 1860 && covered <= 1940, `${covered} of 2000 at ${blocks} blocks`);
  }
});

test("five treatments that cost nothing give a loss or gain in at most one campaign of twenty", () => {
  const random = seeded(11);
  let wrong = 0;
  for (let i = 0; i < 1000; i += 1) {
    const family = Array.from({ length: 5 }, () =>
      estimateRatio(
        Array.from({ length: 6 }, (_, block) => {
          const run = () => Math.exp(0.05 * normal(random));
          return { block, treatment: run(), baseline: [run(), run()] as const };
        }),
        0.0001,
      ),
    );
    const verdicts = holdFamily(family).map((e) => (e.kind === "estimate" ? e.verdict : ""));
    if (verdicts.some((verdict) => verdict === "loss" || verdict === "gain")) wrong += 1;
  }
  assert.ok(wrong <= 50 + 20, `${wrong} of 1000`);
});

test("noise does not widen the margin: a noisy baseline is inconclusive, not equivalent", () => {
  const found = estimateNoise(
    [
      [1, 1.5],
      [1.4, 1],
      [1, 1.2],
    ],
    0.05,
  );
  assert.equal(found.kind === "estimate" && found.verdict, "inconclusive");
});

test("the bootstrap interval of a symmetric sample is near that of t, and always the same", () => {
  const values = noisy(40, 9, 1, () => 10);
  const first = bootstrapMean(values);
  assert.deepEqual(bootstrapMean(values), first);
  near(first.high - first.low, (2 * 1.96) / Math.sqrt(40), 0.15);
  assert.throws(() => bootstrapMean([1, 2, 3]), RangeError);
});
