/** Reads the planned offsets of a load plan whose arrivals are not uniform. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { Failure } from "../contracts/failure.ts";

const header = "seq,offsetNs";

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
  const offsets = new Float64Array(planned);
  const fail = (line: number, problem: string, cause?: unknown): never => {
    throw new Failure("document", `${name}:${line}: ${problem}`, { cause });
  };
  let line = 0;
  let latest = 0;
  const bytes = createReadStream(path);
  const inflated = bytes.pipe(createGunzip());
  bytes.on("error", (error) => inflated.destroy(error));
  const damaged = new Promise<never>((_, reject) => inflated.on("error", reject));
  const read = async (): Promise<void> => {
    for await (const text of createInterface({ input: inflated })) {
      line += 1;
      if (line === 1) {
        if (text !== header) fail(line, `must be ${header}, found ${JSON.stringify(text)}`);
        continue;
      }
      const [, seq, offset] = /^(\d{1,9}),(\d{1,15})$/.exec(text) ?? [];
      if (Number(seq) !== line - 2 || line - 2 >= planned) {
        fail(line, `must be sequence number ${line - 2} of ${planned}, found ${text}`);
      }
      if (Number(offset) < latest) fail(line, `must not be due before ${latest}, found ${text}`);
      latest = Number(offset);
      offsets[line - 2] = latest;
    }
  };
  try {
    await Promise.race([read(), damaged]);
  } catch (error) {
    if (error instanceof Failure) throw error;
    fail(line + 1, "cannot be decompressed", error);
  }
  if (line - 1 !== planned) fail(line, `must have ${planned} rows, found ${Math.max(line - 1, 0)}`);
  return offsets;
}
