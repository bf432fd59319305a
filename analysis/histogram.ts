/**
 * The one histogram configuration of ztbench, with the exact figures that a histogram rounds.
 * The WebAssembly build records six times as fast as the JavaScript one, but is not collected:
 * whoever makes a histogram destroys it.
 */
import { deflateSync } from "node:zlib";
import { initWebAssemblySync, WasmHistogram } from "hdr-histogram-js";

/** Nanoseconds; above any time-out, so that an overflow means a broken clock or a stuck driver. */
export const highestTrackableNs = 120_000_000_000;
const significantDigits = 3;
/** Cookie of the V2 compressed encoding, one byte words. */
const compressedCookie = 0x1c849314;

/** A line has some kilobytes: setting up the usual window would cost more than packing them. */
const compression = { windowBits: 12, memLevel: 5 } as const;

/** A histogram of nanoseconds at three digits; count, sum, least and greatest are exact. */
export class LatencyHistogram {
  count = 0;
  sumNs = 0;
  minNs = Number.POSITIVE_INFINITY;
  maxNs = 0;
  readonly #hdr: WasmHistogram;

  constructor() {
    initWebAssemblySync();
    this.#hdr = WasmHistogram.build({
      // Narrower counters wrap without a word, and packed ones are wrong above three digits.
      bitBucketSize: 64,
      autoResize: false,
      lowestDiscernibleValue: 1,
      highestTrackableValue: highestTrackableNs,
      numberOfSignificantValueDigits: significantDigits,
    });
  }

  /**
   * Records one value.
   *
   * @throws RangeError for one that is not whole or not in the range: the library would take text
   *   for another number, or NaN for none at all
   */
  record(valueNs: number): void {
    if (!Number.isSafeInteger(valueNs) || valueNs < 0 || valueNs > highestTrackableNs) {
      throw new RangeError(
        `histogram: must be whole, 0 to ${highestTrackableNs}, found ${valueNs}`,
      );
    }
    this.#hdr.recordValue(valueNs);
    this.count += 1;
    this.sumNs += valueNs;
    if (valueNs < this.minNs) this.minNs = valueNs;
    if (valueNs > this.maxNs) this.maxNs = valueNs;
  }

  /** Adds all values of another histogram; exact, since all share one configuration. */
  add(other: LatencyHistogram): void {
    this.#hdr.add(other.#hdr);
    this.count += other.count;
    this.sumNs += other.sumNs;
    this.minNs = Math.min(this.minNs, other.minNs);
    this.maxNs = Math.max(this.maxNs, other.maxNs);
  }

  /**
   * The value at a rank, 1 for the least and `count` for the greatest, within 0.1 %.
   *
   * @throws RangeError for a rank that does not exist
   */
  valueAtRank(rank: number): number {
    if (!Number.isInteger(rank) || rank < 1 || rank > this.count) {
      throw new RangeError(`histogram: rank must lie in 1..${this.count}, found ${rank}`);
    }
    if (rank === this.count) return this.maxNs;
    const bucketNs = this.#hdr.getValueAtPercentile((100 * rank) / this.count);
    return Math.min(Math.max(bucketNs, this.minNs), this.maxNs);
  }

  /** The histogram as other HdrHistogram readers take it: V2, compressed, base64. */
  encode(): string {
    const payload = Buffer.from(this.#hdr.encode());
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
    this.#hdr.reset();
    this.count = 0;
    this.sumNs = 0;
    this.minNs = Number.POSITIVE_INFINITY;
    this.maxNs = 0;
  }

  /** Gives its memory back; it must not be used after that. */
  destroy(): void {
    this.#hdr.destroy();
  }
}
