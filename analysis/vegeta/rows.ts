/** What every reader of vegeta's results hands on, whatever the encoding. */
import { Failure } from "../../contracts/failure.ts";
import { type Outcome, RowTally, type RowTotals } from "../tally.ts";

/** Receives one request; `sentNs` counts from the reader's origin. Returns true to stop. */
export type ResultSink = (
  seq: number,
  sentNs: number,
  latencyNs: number,
  outcome: Outcome,
) => boolean | undefined;

/** Sequence numbers lie below it: one bit of memory each. */
export const requestsMax = 360_000_000;

/** Takes bytes, gives requests. */
export type ResultParser = {
  readonly totals: () => FileTotals;
  readonly position: () => string;
  /** @throws Failure `document` with file and line; returns true once the sink has had enough */
  readonly push: (chunk: Buffer) => boolean;
  readonly end: () => void;
};

export type FileTotals = RowTotals & {
  /** Name that the attack was given, "" for none. */
  readonly attack: string;
  /** What `sentNs` counts from. */
  readonly origin: Instant;
};

/** Tallies one file, and refuses what cannot come from one attack. */
export class AttackTally {
  readonly #tally = new RowTally(1 << 16);
  #attack: string | undefined;
  #origin: Instant | undefined;

  /** @param origin undefined takes the first row's second */
  constructor(origin: Instant | undefined) {
    this.#origin = origin;
  }

  get rows(): number {
    return this.#tally.rows;
  }

  /** @throws Failure `document` for a number that came before or cannot be, or a mixed attack */
  take(at: () => string, seq: number, code: number, error: string, attack: string): Outcome {
    this.#attack ??= attack;
    if (attack !== this.#attack) {
      const names = [this.#attack, attack].map((name) => JSON.stringify(name)).join(" and ");
      throw new Failure("document", `${at()}: attack: must be one in a file, found ${names}`, {
        hint: "give the result of each attack as a file of its own",
      });
    }
    if (seq >= requestsMax) {
      throw new Failure(
        "document",
        `${at()}: seq: must be a number below ${requestsMax}, found "${seq}"`,
      );
    }
    if (!this.#tally.claim(seq)) {
      throw new Failure(
        "document",
        `${at()}: seq: must be each number once, found "${seq} again"`,
        {
          hint: "several attacks in one file cannot be told apart: give each as a file of its own",
        },
      );
    }
    return this.#tally.count(code, error);
  }

  /** Nanoseconds from the origin to an instant, exact over a hundred days. */
  since(seconds: number, ns: number): number {
    this.#origin ??= { seconds };
    return (seconds - this.#origin.seconds) * 1e9 + ns;
  }

  totals(): FileTotals {
    const origin = this.#origin ?? { seconds: 0 };
    return { ...this.#tally.totals(), attack: this.#attack ?? "", origin };
  }
}

/** A whole second since 1970 that nanoseconds count from, since one number cannot hold both. */
export type Instant = { readonly seconds: number };
