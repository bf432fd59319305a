/** Reads the CSV of `vegeta encode -to csv`: twelve columns, no header. */
import { ByteRows, comma, newline } from "../byte-rows.ts";
import { AttackTally, type FileTotals, type Instant, type ResultSink } from "./rows.ts";

/** Timestamp, status, latency, bytes out and in: 19 + 3 + 15 + 20 + 20 digits and five commas. */
const headBytesMax = 96;
const errorBytesMax = 65_536;
const nameBytesMax = 1024;
const urlBytesMax = 65_536;
/** Bodies and headers, in base64. */
const contentBytesMax = 8 * 1024 * 1024;
const rowBytesMax = 3 * contentBytesMax;

export class CsvResults extends ByteRows {
  readonly #sink: ResultSink;
  readonly #tally: AttackTally;
  #attack = "";
  readonly #where: () => string;

  /**
   * @param origin undefined takes the first row's second
   * @param byRecord names positions by record instead of line, for files that are no text
   */
  constructor(name: string, sink: ResultSink, origin?: Instant, byRecord = false) {
    super(name, { rowBytesMax, bytesMax: Number.POSITIVE_INFINITY });
    this.#sink = sink;
    this.#tally = new AttackTally(origin);
    this.#where = byRecord
      ? () => `${name}: record ${this.#tally.rows + 1}`
      : () => `${name}:${this.line}`;
  }

  override position(): string {
    return this.#where();
  }

  totals(): FileTotals {
    return this.#tally.totals();
  }

  protected readRow(): boolean {
    if (!this.has(headBytesMax)) return false;
    const start = this.at;
    const { line } = this;
    const seconds = this.digits("timestamp", 10, 10, -1);
    const ns = this.digits("timestamp", 9, 9, comma);
    const code = this.digits("code", 1, 3, comma);
    const latencyNs = this.digits("latency", 1, 15, comma);
    this.digits("bytes out", 1, 20, comma);
    this.digits("bytes in", 1, 20, comma);
    const error = this.#next("error", comma, errorBytesMax);
    const isWhole =
      error !== undefined && this.#skip("body", comma, contentBytesMax) && this.#readAttack();
    if (!isWhole || !this.has(2 * headBytesMax)) return this.#rewind(start, line);
    const seq = this.digits("seq", 1, 10, comma);
    const isRest =
      this.#skip("method", comma, nameBytesMax) &&
      this.#skip("url", comma, urlBytesMax) &&
      this.#skip("headers", newline, contentBytesMax);
    if (!isRest) return this.#rewind(start, line);
    const outcome = this.#tally.take(this.#where, seq, code, error, this.#attack);
    const sentNs = this.#tally.since(seconds, ns);
    this.stopped = this.#sink(seq, sentNs, latencyNs, outcome) === true;
    this.line += 1;
    return true;
  }

  /** The row is not here to its end: it is read again with the next bytes. */
  #rewind(start: number, line: number): false {
    this.at = start;
    this.line = line;
    return false;
  }

  #next(field: string, after: number, most: number): string | undefined {
    if (this.bytes[this.at] === after) {
      this.at += 1;
      return "";
    }
    const end = this.fieldEnd(field, after, most);
    return end === -1 ? undefined : this.takeField(end);
  }

  #skip(field: string, after: number, most: number): boolean {
    if (this.bytes[this.at] === after) {
      this.at += 1;
      return true;
    }
    const end = this.fieldEnd(field, after, most);
    if (end === -1) return false;
    this.skipField(end);
    return true;
  }

  #readAttack(): boolean {
    const attack = this.#next("attack", comma, nameBytesMax);
    if (attack === undefined) return false;
    this.#attack = attack;
    return true;
  }
}
