/** Reads text files that others may have made: never more than a bound of bytes, never a device. */
import { open } from "node:fs/promises";
import { Failure } from "../contracts/failure.ts";

/**
 * The text of a plain file.
 *
 * @param name for messages
 * @throws Failure `document` if it is no plain file or larger than `bytesMax`; what the operating
 *   system refuses is passed on
 */
export async function readBoundedText(
  path: string,
  name: string,
  bytesMax: number,
): Promise<string> {
  const file = await open(path);
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new Failure("document", `${name}: must be a plain file`);
    if (info.size > bytesMax) {
      throw new Failure(
        "document",
        `${name}: must have ${bytesMax} bytes at most, found ${info.size}`,
      );
    }
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}
