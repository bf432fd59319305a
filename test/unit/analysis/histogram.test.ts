import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { decodeFromCompressedBase64 } from "hdr-histogram-js";
import { LatencyHistogram } from "../../../analysis/histogram.ts";

const valuesNs = fc.array(fc.integer({ min: 0, max: 120_000_000_000 }), {
  minLength: 1,
  maxLength: 200,
});

function filled(values: readonly number[]): LatencyHistogram {
  const histogram = new LatencyHistogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

test("every rank is within a thousandth of the sorted values", () => {
  fc.assert(
    fc.property(valuesNs, (values) => {
      const histogram = filled(values);
      const sorted = [...values].sort((a, b) => a - b);
      sorted.forEach((exact, index) => {
        const error = Math.abs(histogram.valueAtRank(index + 1) - exact);
        assert.ok(error <= exact * 1e-3, `rank ${index + 1}: off by ${error} of ${exact}`);
      });
      histogram.destroy();
    }),
    { numRuns: 100 },
  );
});

test("merging histograms equals recording all values into one", () => {
  fc.assert(
    fc.property(valuesNs, valuesNs, (a, b) => {
      const [merged, other, whole] = [filled(a), filled(b), filled([...a, ...b])];
      merged.add(other);
      assert.equal(merged.encode(), whole.encode());
      assert.deepEqual(
        [merged.count, merged.sumNs, merged.minNs, merged.maxNs],
        [whole.count, whole.sumNs, whole.minNs, whole.maxNs],
      );
      for (const histogram of [merged, other, whole]) histogram.destroy();
    }),
    { numRuns: 50 },
  );
});

test("count, sum, least and greatest are exact", () => {
  const histogram = filled([99_699_003, 1, 77]);
  assert.deepEqual(
    [histogram.count, histogram.sumNs, histogram.minNs, histogram.maxNs],
    [3, 99_699_081, 1, 99_699_003],
  );
  assert.equal(histogram.valueAtRank(3), 99_699_003);
  histogram.destroy();
});

test("counts beyond 32 bits of narrow counters do not wrap", () => {
  const histogram = new LatencyHistogram();
  for (let n = 0; n < 70_000; n += 1) histogram.record(500);
  assert.equal(histogram.valueAtRank(35_000), 500);
  assert.equal(histogram.count, 70_000);
  histogram.destroy();
});

test("the encoded form decodes to the same values, with a normalizing offset of zero", () => {
  const values = [180_000, 181_000, 250_000, 1_100_000_000];
  const histogram = filled(values);
  const text = histogram.encode();
  const decoded = decodeFromCompressedBase64(text, 64);
  assert.equal(decoded.totalCount, 4);
  assert.equal(decoded.getValueAtPercentile(50), histogram.valueAtRank(2));
  assert.equal(decoded.highestTrackableValue, 120_000_000_000);
  assert.equal(decoded.numberOfSignificantValueDigits, 3);
  histogram.destroy();
});

test("an emptied histogram is as a new one", () => {
  const histogram = filled([5, 6]);
  histogram.reset();
  assert.equal(histogram.count, 0);
  histogram.record(9);
  assert.deepEqual([histogram.minNs, histogram.maxNs, histogram.valueAtRank(1)], [9, 9, 9]);
  histogram.destroy();
});

test("a rank that does not exist and use after destruction are refused", () => {
  const histogram = filled([5]);
  for (const rank of [0, 2, 0.5]) assert.throws(() => histogram.valueAtRank(rank), RangeError);
  histogram.destroy();
  assert.throws(() => {
    histogram.record(1);
  }, /destroyed/);
});

test("values that are no whole numbers of the range are refused, text too", () => {
  const histogram = filled([5]);
  const text: unknown = "77";
  for (const bad of [Number.NaN, Infinity, -1, 0.5, 120_000_000_001, text as number]) {
    assert.throws(() => {
      histogram.record(bad);
    }, /^RangeError: histogram: must be whole, 0 to 120000000000, found/);
  }
  assert.deepEqual([histogram.count, histogram.valueAtRank(1)], [1, 5]);
  histogram.destroy();
});

test("quantiles are not rounded to digits, unlike the library's own summary", () => {
  const histogram = filled([1_733_631, 9_000_000]);
  assert.ok(Math.abs(histogram.valueAtRank(1) - 1_733_631) <= 1024, "a bucket");
  assert.notEqual(histogram.valueAtRank(1), 1_730_000);
  histogram.destroy();
});

test("the greatest value is exact, though its encoded form knows but the bucket", () => {
  const histogram = filled([1, 99_699_003]);
  assert.equal(histogram.maxNs, 99_699_003);
  assert.notEqual(decodeFromCompressedBase64(histogram.encode(), 64).maxValue, 99_699_003);
  histogram.destroy();
});

test("an empty histogram has no rank, and its encoded form no count", () => {
  const histogram = new LatencyHistogram();
  assert.throws(() => histogram.valueAtRank(1), /rank must lie in 1\.\.0/);
  assert.deepEqual([histogram.count, histogram.sumNs, histogram.maxNs], [0, 0, 0]);
  assert.equal(decodeFromCompressedBase64(histogram.encode(), 64).totalCount, 0);
  histogram.destroy();
});

test("histograms that are destroyed give their memory back", () => {
  const cycle = (): void => {
    const histogram = filled([1, 1e9]);
    histogram.destroy();
  };
  for (let n = 0; n < 200; n += 1) cycle();
  const before = process.memoryUsage().rss;
  for (let n = 0; n < 3000; n += 1) cycle();
  // Without destroying them it would be 660 MB.
  assert.ok(process.memoryUsage().rss - before < 100e6);
});

test("one file alone makes histograms, so that all have one configuration and can be added", () => {
  const root = path.resolve(import.meta.dirname, "../../..");
  const places = ["analysis", "cli", "loadgen", "bench", "stacks", "hosts", "tools"];
  const users = places.flatMap((place) =>
    readdirSync(path.join(root, place), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => path.posix.join(place, name))
      .filter((file) => readFileSync(path.join(root, file), "utf8").includes('"hdr-histogram-js"')),
  );
  const makers = users.filter((file) => !file.startsWith("tools/"));
  assert.deepEqual(makers, ["analysis/histogram.ts"]);
  const text = readFileSync(path.join(root, "analysis/histogram.ts"), "utf8");
  // Packed counters of more than three digits are wrong by all but a percent, without a word.
  assert.doesNotMatch(text, /packed:/);
  assert.match(text, /bitBucketSize: 64/);
  assert.equal(/const significantDigits = (\d)/.exec(text)?.[1], "3");
  assert.equal(text.match(/\.build\(/g)?.length, 1);
});
