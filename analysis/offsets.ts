/** Reads the planned offsets of a load plan whose arrivals are not uniform. */
import { createReadStream } from "node:fs";
import { ByteRows, comma, newline } from "./byte-rows.ts";
import { inflated } from "./inflate.ts";

const header = "seq,offsetNs";
/** 9 + 15 digits, comma and line end. */
const rowBytesMax = 26;

/**
 * Reads `*.offsets.csv.gz`, whose rows stand in order of their sequence number.
 *
 * @param planned number of rows that there must be
 * @returns nanoseconds after the start by sequence number
 * @throws Failure `document` with `file:line:` for a bad row, a wrong count or a damaged stream
 */
export async function readOffsets(
  path: string,
  name: string,
  planned: number,
): Promise<Float64Array> {
  const rows = new OffsetRows(name, planned);
  for await (const chunk of inflated(createReadStream(path), () => rows.position())) {
    rows.push(chunk);
  }
  rows.end();
  return rows.offsets;
}

class OffsetRows extends ByteRows {
  readonly offsets: Float64Array;
  #latest = 0;
  #count = -1;

  constructor(name: string, planned: number) {
    // One row more than planned fits, so that it is refused as a row and not as bytes.
    super(name, { rowBytesMax: 2 * rowBytesMax, bytesMax: (planned + 2) * rowBytesMax });
    this.offsets = new Float64Array(planned);
  }

  override end(): void {
    super.end();
    const planned = this.offsets.length;
    if (this.#count < 0) this.fail("header", header, "");
    if (this.#count < planned) this.fail("rows", String(planned), String(this.#count));
  }

  protected readRow(): boolean {
    if (!this.has(rowBytesMax)) return false;
    if (this.#count < 0) this.#readHeader();
    else this.#readOffset();
    this.#count += 1;
    this.line += 1;
    return true;
  }

  #readHeader(): void {
    const end = this.bytes.indexOf(newline, this.at);
    const found = this.text(this.at, end === -1 ? this.at + rowBytesMax : end);
    if (found !== header) this.fail("header", header, found);
    this.at = end + 1;
  }

  #readOffset(): void {
    const seq = this.digits("seq", 1, 9, comma);
    const planned = this.offsets.length;
    if (seq !== this.#count || seq >= planned) {
      this.fail("seq", `${this.#count} of ${planned}`, String(seq));
    }
    const offset = this.digits("offsetNs", 1, 15, newline);
    if (offset < this.#latest) {
      this.fail("offsetNs", `due not before ${this.#latest}`, String(offset));
    }
    this.#latest = offset;
    this.offsets[seq] = offset;
  }
}
