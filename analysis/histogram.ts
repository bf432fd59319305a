/**
 * The one histogram configuration of ztbench, with the exact figures that a histogram rounds.
 * Counts lie in an array of our own by HdrHistogram's buckets, since each call into the library's
 * WebAssembly costs more than all else that a row needs; the library writes the encoded form.
 * Arrays are lent again: whoever makes a histogram destroys it.
 */
import { deflateSync } from "node:zlib";
import { initWebAssemblySync, WasmHistogram } from "hdr-histogram-js";

/** Nanoseconds; above any time-out, so that an overflow means a broken clock or a stuck driver. */
export const highestTrackableNs = 120_000_000_000;
const significantDigits = 3;
/** Buckets an octave: the least power of two that tells apart as much as so many digits. */
const perOctave = 2 ** Math.ceil(Math.log2(10 ** significantDigits));
/** Leading zeros, of 32 bits, of the greatest value that has a bucket of its own. */
const exactZeros = Math.clz32(2 * perOctave - 1);
const bucketsMax = bucketOf(highestTrackableNs) + 1;
/** Cookie of the V2 compressed encoding, one byte words. */
const compressedCookie = 0x1c849314;

/** A line has some kilobytes: setting up the usual window would cost more than packing them. */
const compression = { windowBits: 12, memLevel: 5 } as const;

/** Arrays of destroyed histograms, all zeros. */
const spare: Float64Array[] = [];
let encoder: WasmHistogram | undefined;

/** A histogram of nanoseconds at three digits; count, sum, least and greatest are exact. */
export class LatencyHistogram {
  count = 0;
  sumNs = 0;
  minNs = Number.POSITIVE_INFINITY;
  maxNs = 0;
  /** Doubles, since counters of 32 bits would wrap without a word. */
  #counts: Float64Array | undefined = spare.pop() ?? new Float64Array(bucketsMax);

  /**
   * Records one value.
   *
   * @throws RangeError for one that is not whole or not in the range
   */
  record(valueNs: number): void {
    if (!Number.isSafeInteger(valueNs) || valueNs < 0 || valueNs > highestTrackableNs) {
      throw new RangeError(
        `histogram: must be whole, 0 to ${highestTrackableNs}, found ${valueNs}`,
      );
    }
    const counts = this.#held();
    const bucket = bucketOf(valueNs);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    this.count += 1;
    this.sumNs += valueNs;
    if (valueNs < this.minNs) this.minNs = valueNs;
    if (valueNs > this.maxNs) this.maxNs = valueNs;
  }

  /** Adds all values of another histogram; exact, since all share one configuration. */
  add(other: LatencyHistogram): void {
    const [counts, added] = [this.#held(), other.#held()];
    for (let bucket = other.#first(), end = other.#end(); bucket < end; bucket += 1) {
      counts[bucket] = (counts[bucket] ?? 0) + (added[bucket] ?? 0);
    }
    this.count += other.count;
    this.sumNs += other.sumNs;
    this.minNs = Math.min(this.minNs, other.minNs);
    this.maxNs = Math.max(this.maxNs, other.maxNs);
  }

  /**
   * The value at a rank, 1 for the least and `count` for the greatest, within 0.1 %: the upper end
   * of its bucket.
   *
   * @throws RangeError for a rank that does not exist
   */
  valueAtRank(rank: number): number {
    if (!Number.isInteger(rank) || rank < 1 || rank > this.count) {
      throw new RangeError(`histogram: rank must lie in 1..${this.count}, found ${rank}`);
    }
    const counts = this.#held();
    let bucket = this.#first();
    for (let below = counts[bucket] ?? 0; below < rank; below += counts[bucket] ?? 0) bucket += 1;
    return Math.min(leastOf(bucket + 1) - 1, this.maxNs);
  }

  /** The histogram as other HdrHistogram readers take it: V2, compressed, base64. */
  encode(): string {
    const counts = this.#held();
    const hdr = emptyEncoder();
    for (let bucket = this.#first(), end = this.#end(); bucket < end; bucket += 1) {
      const count = counts[bucket] ?? 0;
      if (count > 0) hdr.recordValueWithCount(leastOf(bucket), count);
    }
    const payload = Buffer.from(hdr.encode());
    // The library writes a normalizing offset of 1, which some readers take for a shifted bucket.
    payload.writeInt32BE(0, 8);
    const compressed = deflateSync(payload, compression);
    const head = Buffer.alloc(8);
    head.writeInt32BE(compressedCookie, 0);
    head.writeInt32BE(compressed.length, 4);
    return Buffer.concat([head, compressed]).toString("base64");
  }

  /** Empties it for another use. */
  reset(): void {
    this.#held().fill(0, this.#first(), this.#end());
    this.count = 0;
    this.sumNs = 0;
    this.minNs = Number.POSITIVE_INFINITY;
    this.maxNs = 0;
  }

  /** Gives its memory back; it must not be used after that. */
  destroy(): void {
    if (this.#counts === undefined) return;
    this.reset();
    spare.push(this.#counts);
    this.#counts = undefined;
  }

  #held(): Float64Array {
    if (this.#counts === undefined) throw new Error("histogram: was destroyed");
    return this.#counts;
  }

  /** The first bucket that holds something, and the one after the last; nothing if it is empty. */
  #first(): number {
    return this.count === 0 ? 0 : bucketOf(this.minNs);
  }

  #end(): number {
    return this.count === 0 ? 0 : bucketOf(this.maxNs) + 1;
  }
}

/**
 * Number of a value's bucket: below 2048 each value has its own, from there on 1024 buckets share
 * each octave (HdrHistogram's `countsArrayIndex`).
 */
function bucketOf(ns: number): number {
  // Bit operations take 32 bits. From 2^31 on buckets are wider than the 16 bits that are dropped.
  const isWide = ns >= 2 ** 31;
  const high = isWide ? Math.floor(ns / 2 ** 16) : ns;
  const shift = Math.max(0, exactZeros - Math.clz32(high));
  return (isWide ? shift + 16 : shift) * perOctave + (high >>> shift);
}

/** The least value of a bucket. */
function leastOf(bucket: number): number {
  const shift = Math.max(0, Math.floor(bucket / perOctave) - 1);
  return (bucket - shift * perOctave) * (1 << shift);
}

/** One for all, since it is large and takes long to set up. */
function emptyEncoder(): WasmHistogram {
  if (encoder !== undefined) {
    encoder.reset();
    return encoder;
  }
  initWebAssemblySync();
  encoder = WasmHistogram.build({
    // Narrower counters wrap without a word, and packed ones are wrong above three digits.
    bitBucketSize: 64,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: highestTrackableNs,
    numberOfSignificantValueDigits: significantDigits,
  });
  return encoder;
}
