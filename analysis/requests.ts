/**
 * Reads `requests.csv.gz`, one row a request, as a stream: memory stays flat whatever the length.
 * Every field is checked; nothing is skipped. Judges nothing.
 */
import { createReadStream } from "node:fs";
import { ByteRows, comma, newline } from "./byte-rows.ts";
import { inflated } from "./inflate.ts";
import { RowTally, type RowTotals } from "./tally.ts";

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

export type RequestsSource = {
  readonly path: string;
  /** Name for messages. */
  readonly name: string;
  /** Nanoseconds since 1970 that count as 0 for `sentNs`. */
  readonly originNs: string;
  /** Number of planned requests; sequence numbers lie below it. */
  readonly planned: number;
};

const errorBytesMax = 65_536;
/** No row without its error field is longer: 10 + 19 + 15 + 3 digits and four commas. */
const headBytesMax = 64;
/** What rows may come to on average: even if all failed, with the longest error texts of Go. */
const meanRowBytesMax = 1024;
const chunkBytes = 1 << 18;

/**
 * Streams the rows of one file into `sink`.
 *
 * @throws Failure `document` with `file:line:` for a bad field, a duplicate or unplanned sequence
 *   number, a missing header, a cut-off row, a damaged gzip stream or one that grows beyond what
 *   the planned rows can need
 */
export async function readRequests(source: RequestsSource, sink: RequestSink): Promise<RowTotals> {
  const rows = new RequestRows(source, sink);
  const file = createReadStream(source.path, { highWaterMark: chunkBytes });
  for await (const chunk of inflated(file, () => rows.position())) {
    if (rows.push(chunk)) return rows.totals();
  }
  rows.end();
  return rows.totals();
}

class RequestRows extends ByteRows {
  readonly #source: RequestsSource;
  readonly #sink: RequestSink;
  readonly #originSeconds: number;
  readonly #originRestNs: number;
  readonly #tally: RowTally;
  #headerRead = false;

  constructor(source: RequestsSource, sink: RequestSink) {
    super(source.name, {
      rowBytesMax: errorBytesMax + 2 * headBytesMax,
      bytesMax: errorBytesMax + source.planned * meanRowBytesMax,
    });
    this.#source = source;
    this.#sink = sink;
    this.#originSeconds = Number(source.originNs.slice(0, -9));
    this.#originRestNs = Number(source.originNs.slice(-9));
    this.#tally = new RowTally(source.planned);
  }

  override end(): void {
    if (!this.#headerRead) {
      this.fail("header", requestsHeader, this.text(this.at, this.at + headBytesMax));
    }
    super.end();
  }

  totals(): RowTotals {
    return this.#tally.totals();
  }

  protected readRow(): boolean {
    if (!this.#headerRead) return this.#readHeader();
    if (!this.has(headBytesMax)) return false;
    const start = this.at;
    const seq = this.digits("seq", 1, 10, comma);
    const seconds = this.digits("timestampNs", 10, 10, -1);
    const restNs = this.digits("timestampNs", 9, 9, comma);
    const latencyNs = this.digits("latencyNs", 1, 15, comma);
    const code = this.digits("code", 1, 3, comma);
    let error = "";
    if (this.bytes[this.at] === newline) {
      this.at += 1;
    } else {
      const end = this.fieldEnd("error", newline, errorBytesMax);
      if (end === -1) {
        this.at = start;
        return false;
      }
      error = this.takeField(end);
    }
    this.#claim(seq);
    const ok = this.#tally.count(code, error) === "ok";
    const sentNs = (seconds - this.#originSeconds) * 1e9 + (restNs - this.#originRestNs);
    this.stopped = this.#sink(seq, sentNs, latencyNs, ok) === true;
    this.line += 1;
    return true;
  }

  #readHeader(): boolean {
    const end = this.bytes.indexOf(newline, this.at);
    if (end === -1 && this.bytes.length - this.at <= requestsHeader.length) return false;
    const found = this.bytes.toString("latin1", this.at, end === -1 ? headBytesMax : end);
    if (found !== requestsHeader) this.fail("header", requestsHeader, found);
    this.#headerRead = true;
    this.at = end + 1;
    this.line = 2;
    return true;
  }

  /** Each sequence number may come once, and only if it was planned. */
  #claim(seq: number): void {
    const { planned } = this.#source;
    if (seq >= planned) this.fail("seq", `a number below the ${planned} planned`, String(seq));
    if (!this.#tally.claim(seq)) this.fail("seq", "each number once", `${seq} again`);
  }
}
