import assert from "node:assert/strict";
import { before, test } from "node:test";
import { inflateSync } from "node:zlib";
import fc from "fast-check";
import {
  build,
  encodeIntoCompressedBase64,
  type Histogram,
  initWebAssembly,
} from "hdr-histogram-js";
import { highestTrackableNs, LatencyHistogram } from "../../../analysis/histogram.ts";

before(initWebAssembly);

/** Ends of buckets, ends of octaves, and the value at which numbers outgrow 32 bits. */
const edges = [0, 1, 1023, 1024, 2047, 2048, 2049, 4095, 4096, 2 ** 31 - 1, 2 ** 31, 2 ** 32];
const value = fc.oneof(
  fc.integer({ min: 0, max: highestTrackableNs }),
  fc.integer({ min: 0, max: 5000 }),
  fc.integer({ min: 2 ** 31 - 2 ** 21, max: 2 ** 31 + 2 ** 21 }),
  fc.constantFrom(...edges, highestTrackableNs),
);
const values = fc.array(value, { minLength: 1, maxLength: 300 });

function both(recorded: readonly number[]): { ours: LatencyHistogram; library: Histogram } {
  const ours = new LatencyHistogram();
  const library = build({
    bitBucketSize: 64,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: highestTrackableNs,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: true,
  });
  for (const ns of recorded) {
    ours.record(ns);
    library.recordValue(ns);
  }
  return { ours, library };
}

/** What is compressed, without the normalizing offset, which the library writes as 1. */
function payloadOf(encoded: string): Buffer {
  const payload = inflateSync(Buffer.from(encoded, "base64").subarray(8));
  payload.writeInt32BE(0, 8);
  return payload;
}

test("the encoded form has the bytes that the library makes of the same values", () => {
  fc.assert(
    fc.property(values, (recorded) => {
      const { ours, library } = both(recorded);
      assert.deepEqual(
        payloadOf(ours.encode()),
        payloadOf(encodeIntoCompressedBase64(library)),
        "buckets",
      );
      ours.destroy();
      library.destroy();
    }),
    { numRuns: 200 },
  );
});

test("the value at each rank is the library's, or the exact greatest one", () => {
  fc.assert(
    fc.property(values, (recorded) => {
      const { ours, library } = both(recorded);
      for (let rank = 1; rank <= recorded.length; rank += 1) {
        // Half a rank less, since the library rounds up what may be a little more than the rank.
        const upper = library.getValueAtPercentile((100 * (rank - 0.5)) / recorded.length);
        assert.equal(ours.valueAtRank(rank), Math.min(upper, Math.max(...recorded)));
      }
      ours.destroy();
      library.destroy();
    }),
    { numRuns: 100 },
  );
});

test("a histogram that takes over the memory of another one holds nothing of it", () => {
  const first = new LatencyHistogram();
  for (const ns of [...edges, highestTrackableNs]) first.record(ns);
  first.destroy();
  const second = new LatencyHistogram();
  second.record(5);
  second.record(highestTrackableNs);
  const { ours } = both([5, highestTrackableNs]);
  assert.equal(second.encode(), ours.encode());
  second.destroy();
  ours.destroy();
});
