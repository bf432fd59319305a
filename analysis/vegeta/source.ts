/** Opens a file of vegeta results, tells its encoding by its first bytes, and streams its rows. */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Failure } from "../../contracts/failure.ts";
import { CsvResults } from "./csv.ts";
import { JsonResults } from "./json.ts";
import type { FileTotals, Instant, ResultParser, ResultSink } from "./rows.ts";

export type Format = "gob" | "csv" | "json";

export type ResultFile = {
  readonly path: string;
  /** For messages. */
  readonly name: string;
  readonly format: Format;
};

/**
 * Turns a file of gob records into the CSV of vegeta; leaving the loop ends the decoder.
 *
 * @throws Failure `document` for broken records, `testbed` without a decoder
 */
export type DecodeGob = (file: ResultFile) => AsyncIterable<Buffer>;

const headBytes = 512;
const chunkBytes = 1 << 18;
/** How gob describes the type of the records, before the first one. */
const gobType = Buffer.from("\u0006Result", "latin1");
const gzipMagic = Buffer.from([0x1f, 0x8b]);

/**
 * Looks at the beginning of a file.
 *
 * @throws Failure `document` if it is no plain file, is empty, or no result of vegeta
 */
export async function openResults(path: string, name: string): Promise<ResultFile> {
  return { path, name, format: formatOf(await readHead(path, name), name) };
}

async function readHead(path: string, name: string): Promise<Buffer> {
  try {
    const file = await open(path);
    try {
      // A pipe could be read only once, and what is read here comes twice.
      if (!(await file.stat()).isFile()) {
        throw new Failure("document", `${name}: must be a plain file`);
      }
      const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new Failure("document", `${name}: cannot be read, ${reason}`, { cause });
  }
}

function formatOf(head: Buffer, name: string): Format {
  if (head.length === 0) {
    throw new Failure("document", `${name}:1: is empty, must hold results of vegeta`, {
      hint: "the attack wrote nothing: see what it said",
    });
  }
  if (head.subarray(0, 2).equals(gzipMagic)) {
    throw new Failure("document", `${name}:1: is compressed, must be gob, CSV or JSON`, {
      hint: `gunzip --keep ${name}`,
    });
  }
  if (head.includes(gobType)) return "gob";
  const first = String.fromCharCode(head[0] ?? 0);
  if (first === "{") return "json";
  if (/\d/.test(first)) return "csv";
  const shown = JSON.stringify(head.toString("latin1", 0, 24));
  throw new Failure(
    "document",
    `${name}:1: must be vegeta's gob, CSV or JSON, found a file that begins with ${shown}`,
    { hint: "give what vegeta attack or vegeta encode wrote" },
  );
}

/**
 * Streams the requests of a file into `sink`, in the order of the file.
 *
 * @param origin undefined takes the first row's second as 0
 * @throws Failure `document` with file and line, or number of the record
 */
export async function readResults(
  file: ResultFile,
  decodeGob: DecodeGob,
  sink: ResultSink,
  origin?: Instant,
): Promise<FileTotals> {
  const parser = parserOf(file, sink, origin);
  const chunks =
    file.format === "gob"
      ? decodeGob(file)
      : (createReadStream(file.path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>);
  for await (const chunk of chunks) if (parser.push(chunk)) return parser.totals();
  parser.end();
  return parser.totals();
}

function parserOf(file: ResultFile, sink: ResultSink, origin?: Instant): ResultParser {
  if (file.format === "json") return new JsonResults(file.name, sink, origin);
  return new CsvResults(file.name, sink, origin, file.format === "gob");
}
