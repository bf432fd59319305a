import assert from "node:assert/strict";
import { test } from "node:test";
import {
  geometricMean,
  meanInterval,
  median,
  minimumDetectable,
} from "../../../analysis/statistics.ts";
import {
  estimateDifference,
  estimateNoise,
  estimateRatio,
  judgeRatio,
} from "../../../analysis/loss.ts";
import { normal, seeded } from "../../support/bundle.ts";

const near = (found: number, expected: number, tolerance: number): void => {
  assert.ok(Math.abs(found - expected) <= tolerance, `${found}, not ${expected}`);
};

/** Two-sided 95 % points of Student's distribution, by degrees of freedom, as tables print them. */
const tTable: readonly (readonly [number, number])[] = [
  [1, 12.706],
  [2, 4.303],
  [3, 3.182],
  [4, 2.776],
  [5, 2.571],
  [9, 2.262],
  [19, 2.093],
  [29, 2.045],
];

test("interval half-widths follow the printed t table", () => {
  for (const [freedom, t] of tTable) {
    // Values with mean 0 and standard deviation 1: the half-width is t / sqrt(n).
    const n = freedom + 1;
    const raw = Array.from({ length: n }, (_, index) => index - (n - 1) / 2);
    const sd = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0) / (n - 1));
    const { low, high } = meanInterval(raw.map((x) => x / sd));
    near(high * Math.sqrt(n), t, 5e-4);
    near(low, -high, 1e-12);
  }
});

test("a mean interval worked by hand comes out", () => {
  // 2, 4, 6: mean 4, sd 2, half-width 4.3027 * 2 / sqrt(3) = 4.9683.
  const { mean, sd, low, high } = meanInterval([2, 4, 6]);
  assert.deepEqual([mean, sd], [4, 2]);
  near(low, -0.9683, 1e-4);
  near(high, 8.9683, 1e-4);
});

test("one value has no interval", () => {
  assert.throws(() => meanInterval([1]), RangeError);
});

test("median and geometric mean of small sets", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  near(geometricMean([2, 8]), 4, 1e-12);
});

test("the detectable effect is that of the printed tables", () => {
  // n = 6: t(0.975, 5) = 2.571, t(0.80, 5) = 0.920.
  near(minimumDetectable(0.1, 6), ((2.571 + 0.92) * 0.1) / Math.sqrt(6), 1e-4);
});

test("intervals cover the truth in 93 to 97 % of simulated campaigns", () => {
  const random = seeded(1);
  for (const blocks of [5, 10]) {
    let covered = 0;
    for (let draw = 0; draw < 4000; draw += 1) {
      const pairs = Array.from({ length: blocks }, (_, block) => {
        const shared = 0.1 * normal(random);
        const noisy = (truth: number): number => truth * Math.exp(shared + 0.05 * normal(random));
        const baseline = [noisy(1), noisy(1)] as const;
        return { block, baseline, treatment: noisy(1.3) };
      });
      const estimate = estimateRatio(pairs, 0.05);
      if (estimate.kind === "estimate" && estimate.low <= 1.3 && 1.3 <= estimate.high) covered += 1;
    }
    const share = covered / 4000;
    assert.ok(share >= 0.93 && share <= 0.97, `${blocks} blocks: ${share}`);
  }
});

test("noise alone is called a loss or gain in at most 5 % of simulated campaigns", () => {
  const random = seeded(2);
  let wrong = 0;
  for (let draw = 0; draw < 4000; draw += 1) {
    const baselines = Array.from(
      { length: 6 },
      () => [Math.exp(0.1 * normal(random)), Math.exp(0.1 * normal(random))] as const,
    );
    const estimate = estimateNoise(baselines, 0.02);
    if (estimate.kind === "estimate" && /loss|gain/.test(estimate.verdict)) wrong += 1;
  }
  assert.ok(wrong / 4000 <= 0.05, String(wrong / 4000));
});

const pairOf = (block: number, treatment: number, a = 1, b = 1) => ({
  block,
  treatment,
  baseline: [a, b] as const,
});

test("a block's baseline is the geometric mean of its two runs", () => {
  const estimate = estimateRatio([pairOf(1, 6, 2, 8), pairOf(2, 6, 4, 4)], 0.05);
  assert.equal(estimate.kind, "estimate");
  near(estimate.ratio, 1.5, 1e-12);
  near(estimate.sdLog, 0, 1e-12);
  assert.equal(estimate.verdict, "loss");
});

test("ratios worked by hand come out", () => {
  // Log-ratios 0.1, 0.2, 0.3: mean 0.2, sd 0.1, half-width 4.3027 * 0.1 / sqrt(3) = 0.24841.
  const estimate = estimateRatio(
    [0.1, 0.2, 0.3].map((d, i) => pairOf(i, Math.exp(d))),
    0.05,
  );
  assert.equal(estimate.kind, "estimate");
  near(estimate.ratio, Math.exp(0.2), 1e-12);
  near(Math.log(estimate.low), 0.2 - 0.24841, 1e-5);
  near(Math.log(estimate.high), 0.2 + 0.24841, 1e-5);
  assert.equal(estimate.pairs, 3);
  assert.equal(estimate.verdict, "inconclusive");
});

test("one block gives a ratio without interval and no conclusion", () => {
  assert.deepEqual(estimateRatio([pairOf(1, 2)], 0.05), {
    kind: "point",
    ratio: 2,
    pairs: 1,
    verdict: "inconclusive",
    reason: "one block",
  });
  assert.deepEqual(estimateDifference([pairOf(1, 2)]), { kind: "point", mean: 1, pairs: 1 });
});

test("no block and a ratio to zero give a reason", () => {
  assert.deepEqual(estimateRatio([], 0.05), { kind: "none", reason: "no complete block" });
  assert.deepEqual(estimateRatio([pairOf(1, 1, 0, 0), pairOf(2, 1)], 0.05), {
    kind: "none",
    reason: "zero has no ratio",
  });
});

test("differences are against the arithmetic mean of the two baselines", () => {
  const estimate = estimateDifference([pairOf(1, 5, 1, 3), pairOf(2, 9, 4, 6)]);
  assert.equal(estimate.kind, "estimate");
  assert.equal(estimate.mean, 3.5);
  assert.equal(estimate.pairs, 2);
});

test("verdicts follow the margin, which lies symmetric in the logarithm", () => {
  const verdicts: readonly (readonly [number, number, string])[] = [
    [1.06, 1.2, "loss"],
    [1.05, 1.2, "inconclusive"],
    [0.9, 0.95, "gain"],
    [0.9, 0.953, "inconclusive"],
    [0.953, 1.05, "equivalent"],
    [0.952, 1.05, "inconclusive"],
    [1.01, 1.04, "equivalent"],
    [0.9, 1.2, "inconclusive"],
  ];
  for (const [low, high, verdict] of verdicts) {
    assert.equal(judgeRatio(low, high, 0.05), verdict, `[${low}, ${high}]`);
  }
});
