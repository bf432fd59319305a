/** Counts rows by status and error, and sees to it that each planned request comes once at most. */

const errorKindsMax = 50;
const errorTextMax = 160;
/** How Go and vegeta word that time ran out. */
const timeout = /time-?d? ?-?out|deadline exceeded/i;

export type Outcome = "ok" | "failed" | "timedOut";

export type RowTotals = {
  readonly rows: number;
  readonly failed: number;
  /** Of the failed ones, those whose error says that time ran out. */
  readonly timedOut: number;
  /** Highest sequence number seen, -1 without rows. */
  readonly seqMax: number;
  /** Rows by HTTP status; 0 stands for no answer. */
  readonly codes: ReadonlyMap<number, number>;
  /** Rows by error text, shortened; at most `errorKindsMax` kinds and one for the rest. */
  readonly errors: ReadonlyMap<string, number>;
};

/** Memory grows with the highest sequence number, one bit each. */
export class RowTally {
  readonly #codes = new Uint32Array(1000);
  readonly #errors = new Map<string, number>();
  #seen: Uint8Array;
  #rows = 0;
  #failed = 0;
  #timedOut = 0;
  #seqMax = -1;

  /** @param expected sequence numbers to provide for; more are possible */
  constructor(expected: number) {
    this.#seen = new Uint8Array((expected >> 3) + 1);
  }

  get rows(): number {
    return this.#rows;
  }

  /** Marks a sequence number as seen; false if it was already. */
  claim(seq: number): boolean {
    const index = seq >> 3;
    if (index >= this.#seen.length) {
      const larger = new Uint8Array(Math.max(index + 1, this.#seen.length * 2));
      larger.set(this.#seen);
      this.#seen = larger;
    }
    const bit = 1 << (seq & 7);
    const seen = this.#seen[index] ?? 0;
    if ((seen & bit) !== 0) return false;
    this.#seen[index] = seen | bit;
    if (seq > this.#seqMax) this.#seqMax = seq;
    return true;
  }

  /**
   * Counts a row by its status below 1000 and its error, "" if it had none. Only a 2xx answer
   * without an error is `ok`.
   */
  count(code: number, error: string): Outcome {
    this.#codes[code] = (this.#codes[code] ?? 0) + 1;
    this.#rows += 1;
    if (error === "" && code >= 200 && code < 300) return "ok";
    this.#failed += 1;
    if (error === "") return "failed";
    const text = error.slice(0, errorTextMax);
    const kind = this.#errors.has(text) || this.#errors.size < errorKindsMax ? text : "other";
    this.#errors.set(kind, (this.#errors.get(kind) ?? 0) + 1);
    if (!timeout.test(error)) return "failed";
    this.#timedOut += 1;
    return "timedOut";
  }

  totals(): RowTotals {
    const codes = new Map<number, number>();
    this.#codes.forEach((count, code) => {
      if (count > 0) codes.set(code, count);
    });
    return {
      rows: this.#rows,
      failed: this.#failed,
      timedOut: this.#timedOut,
      seqMax: this.#seqMax,
      codes,
      errors: this.#errors,
    };
  }
}
