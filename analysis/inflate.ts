/** Decompresses a gzip stream piece by piece, and says where it is damaged. */
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { Failure } from "../contracts/failure.ts";

const chunkBytes = 1 << 18;

/**
 * The decompressed bytes of `source`, as they are asked for. Leaving the loop ends both streams.
 *
 * @param position where the consumer stands, for messages
 * @throws Failure `document` if the stream is no gzip, damaged or cut off
 */
export async function* inflated(
  source: Readable,
  position: () => string,
): AsyncGenerator<Buffer, void> {
  const gunzip = createGunzip({ chunkSize: chunkBytes });
  source.on("error", (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  const chunks = gunzip[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const next = await chunks.next().catch((error: unknown) => {
        throw asFailure(error, position());
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    gunzip.destroy();
    source.destroy();
  }
}

function asFailure(error: unknown, at: string): unknown {
  if (!(error instanceof Error)) return error;
  if (!((error as NodeJS.ErrnoException).code ?? "").startsWith("Z_")) return error;
  return new Failure("document", `${at}: cannot be decompressed: ${error.message}`, {
    cause: error,
    hint: "the file is damaged or cut off; fetch it anew",
  });
}
