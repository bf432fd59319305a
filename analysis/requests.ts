/**
 * Reads `requests.csv.gz`, one row a request, as a stream: memory stays flat whatever the length.
 * Every field is checked; nothing is skipped. Judges nothing.
 */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Failure } from "../contracts/failure.ts";

/** Header of the file, which fixes the order of its fields. */
export const requestsHeader = "seq,timestampNs,latencyNs,code,error";

/**
 * Receives one request. `sentNs` counts from the origin given to the reader; `ok` means a 2xx
 * answer without an error. Returns true to stop reading.
 */
export type RequestSink = (
  seq: number,
  sentNs: number,
  latencyNs: number,
  ok: boolean,
) => boolean | undefined;

export type RequestTotals = {
  readonly rows: number;
  readonly failed: number;
  /** Highest sequence number seen, -1 without rows. */
  readonly seqMax: number;
  /** Rows by HTTP status; 0 stands for no answer. */
  readonly codes: ReadonlyMap<number, number>;
  /** Rows by error text, shortened; at most `errorKindsMax` kinds and one for the rest. */
  readonly errors: ReadonlyMap<string, number>;
};

export type RequestsSource = {
  readonly path: string;
  /** Name for messages. */
  readonly name: string;
  /** Nanoseconds since 1970 that count as 0 for `sentNs`. */
  readonly originNs: string;
  /** Number of planned requests; sequence numbers lie below it. */
  readonly planned: number;
};

const errorKindsMax = 50;
const errorTextMax = 160;
const errorBytesMax = 65_536;
/** No row without its error field is longer: 10 + 19 + 15 + 3 digits and four commas. */
const rowBytesMax = 64;
const chunkBytes = 1 << 18;
const comma = 0x2c;
const newline = 0x0a;
const quote = 0x22;
const zero = 0x30;

/**
 * Streams the rows of one file into `sink`.
 *
 * @throws Failure `document` with `file:line:` for a bad field, a duplicate or unplanned sequence
 *   number, a missing header, a cut-off row or a damaged gzip stream
 */
export async function readRequests(
  source: RequestsSource,
  sink: RequestSink,
): Promise<RequestTotals> {
  const parser = new RowParser(source, sink);
  // Leaving the loop early makes the stream fail by itself; what the parser or the sink threw is
  // kept, so that this does not hide it.
  const refused: unknown[] = [];
  try {
    await pipeline(
      createReadStream(source.path, { highWaterMark: chunkBytes }),
      createGunzip({ chunkSize: chunkBytes }),
      async (chunks: AsyncIterable<Buffer>) => {
        try {
          for await (const chunk of chunks) if (parser.push(chunk)) return;
          parser.end();
        } catch (error) {
          refused.push(error);
          throw error;
        }
      },
    );
  } catch (error) {
    if (parser.stopped) return parser.totals();
    const [first = error] = refused;
    if (!isZlibError(first)) throw first;
    throw new Failure(
      "document",
      `${source.name}:${parser.line}: cannot be decompressed: ${first.message}`,
      { cause: first, hint: "the file is damaged or cut off; fetch the bundle anew" },
    );
  }
  return parser.totals();
}

function isZlibError(error: unknown): error is Error {
  return error instanceof Error && ((error as NodeJS.ErrnoException).code ?? "").startsWith("Z_");
}

/** Cuts bytes into rows. Works on bytes, since strings per row would cost most of the time. */
class RowParser {
  stopped = false;
  line = 1;
  readonly #source: RequestsSource;
  readonly #sink: RequestSink;
  readonly #originSeconds: number;
  readonly #originRestNs: number;
  readonly #seen: Uint8Array;
  readonly #codes = new Uint32Array(1000);
  readonly #errors = new Map<string, number>();
  #rest: Buffer = Buffer.alloc(0);
  #headerRead = false;
  #bytes: Buffer = this.#rest;
  #at = 0;
  #rows = 0;
  #failed = 0;
  #seqMax = -1;

  constructor(source: RequestsSource, sink: RequestSink) {
    this.#source = source;
    this.#sink = sink;
    this.#originSeconds = Number(source.originNs.slice(0, -9));
    this.#originRestNs = Number(source.originNs.slice(-9));
    this.#seen = new Uint8Array((source.planned >> 3) + 1);
  }

  /** Takes the next bytes; returns true once the sink has had enough. */
  push(chunk: Buffer): boolean {
    this.#bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#at = 0;
    if (!this.#headerRead && !this.#readHeader()) return false;
    while (this.#readRow());
    this.#rest = this.#bytes.subarray(this.#at);
    return this.stopped;
  }

  end(): void {
    if (!this.#headerRead) this.#fail("header", requestsHeader, this.#rest.toString("latin1"));
    if (this.#rest.length > 0) {
      this.#fail("row", "a line end after the last row", this.#rest.toString("latin1"));
    }
  }

  totals(): RequestTotals {
    const codes = new Map<number, number>();
    this.#codes.forEach((count, code) => {
      if (count > 0) codes.set(code, count);
    });
    return {
      rows: this.#rows,
      failed: this.#failed,
      seqMax: this.#seqMax,
      codes,
      errors: this.#errors,
    };
  }

  #readHeader(): boolean {
    const end = this.#bytes.indexOf(newline);
    if (end === -1 && this.#bytes.length <= requestsHeader.length) {
      this.#rest = this.#bytes;
      return false;
    }
    const found = this.#bytes.toString("latin1", 0, end === -1 ? rowBytesMax : end);
    if (found !== requestsHeader) this.#fail("header", requestsHeader, found);
    this.#headerRead = true;
    this.#at = end + 1;
    this.line = 2;
    return true;
  }

  /** Reads one row; false if the bytes at hand end within it or reading shall stop. */
  #readRow(): boolean {
    const bytes = this.#bytes;
    const start = this.#at;
    if (bytes.length - start < rowBytesMax && bytes.indexOf(newline, start) === -1) return false;
    const seq = this.#digits("seq", 1, 10, comma);
    const seconds = this.#digits("timestampNs", 10, 10, -1);
    const restNs = this.#digits("timestampNs", 9, 9, comma);
    const latencyNs = this.#digits("latencyNs", 1, 15, comma);
    const code = this.#digits("code", 1, 3, comma);
    let ok = code >= 200 && code < 300;
    if (bytes[this.#at] === newline) {
      this.#at += 1;
    } else {
      const end = this.#errorEnd();
      if (end === -1) {
        this.#at = start;
        return false;
      }
      ok = this.#countError(end) && ok;
    }
    this.#claim(seq);
    this.#codes[code] = (this.#codes[code] ?? 0) + 1;
    this.#rows += 1;
    if (!ok) this.#failed += 1;
    const sentNs = (seconds - this.#originSeconds) * 1e9 + (restNs - this.#originRestNs);
    this.stopped = this.#sink(seq, sentNs, latencyNs, ok) === true;
    this.line += 1;
    return !this.stopped;
  }

  /** A whole number of `least` to `most` digits, followed by `after` unless that is -1. */
  #digits(field: string, least: number, most: number, after: number): number {
    const bytes = this.#bytes;
    const start = this.#at;
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
    this.#at = after === -1 ? at : at + 1;
    return value;
  }

  /** Marks a sequence number as seen: each may come once, and only if it was planned. */
  #claim(seq: number): void {
    if (seq >= this.#source.planned) {
      this.#fail("seq", `a number below the ${this.#source.planned} planned`, String(seq));
    }
    const index = seq >> 3;
    const bit = 1 << (seq & 7);
    const seen = this.#seen[index] ?? 0;
    if ((seen & bit) !== 0) this.#fail("seq", "each number once", `${seq} again`);
    this.#seen[index] = seen | bit;
    if (seq > this.#seqMax) this.#seqMax = seq;
  }

  /** Index of the newline that ends the error field, -1 if it is not here yet. */
  #errorEnd(): number {
    const bytes = this.#bytes;
    const start = this.#at;
    let end: number;
    if (bytes[start] === quote) {
      let closing = start + 1;
      for (;;) {
        closing = bytes.indexOf(quote, closing);
        if (closing === -1 || closing + 1 >= bytes.length) break;
        if (bytes[closing + 1] !== quote) break;
        closing += 2;
      }
      end = closing === -1 || closing + 1 >= bytes.length ? -1 : closing + 1;
      if (end !== -1 && bytes[end] !== newline) {
        this.#fail("error", "a line end after the closing quote", this.#text(start, end + 1));
      }
    } else {
      end = bytes.indexOf(newline, start);
      const misplaced = bytes.subarray(start, end === -1 ? bytes.length : end);
      if (misplaced.includes(quote) || misplaced.includes(comma)) {
        this.#fail("error", "a quoted field", misplaced.toString("utf8"));
      }
    }
    if ((end === -1 ? bytes.length : end) - start > errorBytesMax) {
      this.#fail("error", `at most ${errorBytesMax} bytes`, this.#text(start, start + 60));
    }
    return end;
  }

  /** Counts the error text that ends at `end` and goes on behind it; true if it is empty. */
  #countError(end: number): boolean {
    const raw = this.#text(this.#at, end);
    const text = raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw;
    this.#at = end + 1;
    for (const character of text) if (character === "\n") this.line += 1;
    if (text === "") return true;
    const known = this.#errors.has(text.slice(0, errorTextMax));
    const kind = known || this.#errors.size < errorKindsMax ? text.slice(0, errorTextMax) : "other";
    this.#errors.set(kind, (this.#errors.get(kind) ?? 0) + 1);
    return false;
  }

  #text(from: number, to: number): string {
    return this.#bytes.toString("utf8", from, to);
  }

  #failDigits(field: string, least: number, most: number): never {
    const wanted =
      field === "timestampNs"
        ? "nanoseconds since 1970 of 19 digits"
        : `a whole number of ${least} to ${most} digits`;
    const end = this.#bytes.indexOf(newline, this.#at);
    this.#fail(field, wanted, this.#text(this.#at, end === -1 ? this.#at + 40 : end));
  }

  #fail(field: string, wanted: string, found: string): never {
    const shown = JSON.stringify(found.length > 60 ? `${found.slice(0, 57)}...` : found);
    throw new Failure(
      "document",
      `${this.#source.name}:${this.line}: ${field}: must be ${wanted}, found ${shown}`,
    );
  }
}
