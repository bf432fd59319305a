/**
 * Cuts a stream of bytes into rows of comma-separated fields (RFC 4180). Works on bytes, since
 * strings per row would cost most of the time; memory is bounded by the longest row.
 */
import { Failure } from "../contracts/failure.ts";

export const comma = 0x2c;
export const newline = 0x0a;
const quote = 0x22;
const zero = 0x30;

export type RowLimits = {
  /** A row that is longer is refused; so much is held at a time. */
  readonly rowBytesMax: number;
  /** What the whole stream may come to, so that a compressed bomb ends early. */
  readonly bytesMax: number;
};

/** What a reader of rows shares with others: chunks, positions, numbers and quoted fields. */
export abstract class ByteRows {
  /** True once the consumer has had enough. */
  stopped = false;
  line = 1;
  protected bytes: Buffer = Buffer.alloc(0);
  protected at = 0;
  protected readonly name: string;
  readonly #limits: RowLimits;
  #total = 0;
  #rest: Buffer = this.bytes;

  constructor(name: string, limits: RowLimits) {
    this.name = name;
    this.#limits = limits;
  }

  /** Reads one row; false if the bytes at hand end within it or reading shall stop. */
  protected abstract readRow(): boolean;

  /** Where the row stands, for messages. */
  position(): string {
    return `${this.name}:${this.line}`;
  }

  /**
   * Takes the next bytes; returns true once the consumer has had enough.
   *
   * @throws Failure `document` for a bad row, with its position
   */
  push(chunk: Buffer): boolean {
    this.#total += chunk.length;
    const { bytesMax, rowBytesMax } = this.#limits;
    if (this.#total > bytesMax) {
      throw new Failure("document", `${this.position()}: size: must be ${bytesMax} bytes at most`, {
        hint: "the file holds more than its rows can need",
      });
    }
    this.bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.at = 0;
    while (!this.stopped && this.readRow());
    this.#rest = this.bytes.subarray(this.at);
    if (!this.stopped && this.#rest.length > rowBytesMax) {
      this.fail("row", `at most ${rowBytesMax} bytes`, this.text(this.at, this.at + 60));
    }
    return this.stopped;
  }

  /**
   * Says that no more bytes come.
   *
   * @throws Failure `document` if the last row has no end
   */
  end(): void {
    if (this.#rest.length === 0) return;
    this.fail("row", "a line end after the last row", this.#rest.toString("latin1", 0, 80));
  }

  /** True if a row's next fields, of `most` bytes together, can be read without looking again. */
  protected has(most: number): boolean {
    return this.bytes.length - this.at >= most || this.bytes.indexOf(newline, this.at) !== -1;
  }

  /** A whole number of `least` to `most` digits, followed by `after` unless that is -1. */
  protected digits(field: string, least: number, most: number, after: number): number {
    const bytes = this.bytes;
    const start = this.at;
    let at = start;
    let value = 0;
    for (const last = start + most; at < last; at += 1) {
      const digit = (bytes[at] ?? 0) - zero;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at - start < least || (after !== -1 && bytes[at] !== after)) {
      this.#failDigits(field, least, most);
    }
    this.at = after === -1 ? at : at + 1;
    return value;
  }

  /**
   * Index of the byte that ends the field which begins here: `after`, behind a closing quote if it
   * is quoted. -1 if that byte is not here yet.
   */
  protected fieldEnd(field: string, after: number, bytesMax: number): number {
    const bytes = this.bytes;
    const start = this.at;
    if (bytes[start] === quote) return this.#quotedEnd(field, after, bytesMax);
    let end = start;
    for (const length = bytes.length; end < length; end += 1) {
      const byte = bytes[end] ?? 0;
      // All that can end a field lies below almost all that can be in one.
      if (byte > comma) continue;
      if (byte === after) break;
      if (byte === newline || byte === comma || byte === quote) this.#failPlain(field, after);
    }
    if (end - start > bytesMax) this.#failLong(field, bytesMax);
    return end === bytes.length ? -1 : end;
  }

  /** Text of the field that ends at `end`, without its quotes; goes on behind it. */
  protected takeField(end: number): string {
    const raw = this.text(this.at, end);
    const isQuoted = raw.startsWith('"');
    const text = isQuoted ? raw.slice(1, -1).replaceAll('""', '"') : raw;
    this.at = end + 1;
    if (isQuoted) this.#countLines(text);
    return text;
  }

  /** The same without the text. */
  protected skipField(end: number): void {
    if (this.bytes[this.at] === quote) this.takeField(end);
    else this.at = end + 1;
  }

  protected text(from: number, to: number): string {
    return this.bytes.toString("utf8", from, to);
  }

  protected fail(field: string, wanted: string, found: string): never {
    const shown = JSON.stringify(found.length > 60 ? `${found.slice(0, 57)}...` : found);
    throw new Failure(
      "document",
      `${this.position()}: ${field}: must be ${wanted}, found ${shown}`,
    );
  }

  #countLines(text: string): void {
    for (const character of text) if (character === "\n") this.line += 1;
  }

  #quotedEnd(field: string, after: number, bytesMax: number): number {
    const bytes = this.bytes;
    const start = this.at;
    let closing = start + 1;
    for (;;) {
      closing = bytes.indexOf(quote, closing);
      if (closing === -1 || closing + 1 >= bytes.length) break;
      if (bytes[closing + 1] !== quote) break;
      closing += 2;
    }
    const isOpen = closing === -1 || closing + 1 >= bytes.length;
    if ((isOpen ? bytes.length : closing) - start > bytesMax) this.#failLong(field, bytesMax);
    if (isOpen) return -1;
    if (bytes[closing + 1] !== after) {
      const wanted = after === newline ? "a line end" : "a comma";
      this.fail(field, `${wanted} after the closing quote`, this.text(start, closing + 2));
    }
    return closing + 1;
  }

  #failPlain(field: string, after: number): never {
    const end = this.bytes.indexOf(newline, this.at);
    const found = this.text(this.at, end === -1 ? this.at + 60 : end);
    const isCut = after === comma && !found.includes(",") && !found.includes('"');
    this.fail(field, isCut ? "followed by further fields" : "a quoted field", found);
  }

  #failLong(field: string, bytesMax: number): never {
    this.fail(field, `at most ${bytesMax} bytes`, this.text(this.at, this.at + 60));
  }

  #failDigits(field: string, least: number, most: number): never {
    const wanted =
      least === most
        ? "nanoseconds since 1970 of 19 digits"
        : `a whole number of ${least} to ${most} digits`;
    const end = this.bytes.indexOf(newline, this.at);
    this.fail(field, wanted, this.text(this.at, end === -1 ? this.at + 40 : end));
  }
}
