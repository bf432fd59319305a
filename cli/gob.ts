/**
 * Decodes vegeta's gob records with `ztload rows`, which holds vegeta's own library of the pinned
 * version. Not by zx, which would keep all that the decoder prints in memory.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { DecodeGob } from "../analysis/vegeta/source.ts";
import { Failure } from "../contracts/failure.ts";

/** Exit code of our programs for a command that they do not know. */
const exitUsage = 2;
const messageBytesMax = 16_384;

/** @param program where `ztload` is installed */
export function gobDecoder(program: string): DecodeGob {
  return async function* decode({ path: file, name }) {
    if (!existsSync(program)) {
      throw new Failure("testbed", `${name}: gob needs ztload to be decoded, not installed`, {
        hint: "make tools, or give the file as CSV: vegeta encode -to csv FILE",
      });
    }
    const decoder = spawn(program, ["rows", "-in", file], { stdio: ["ignore", "pipe", "pipe"] });
    const closed = once(decoder, "close");
    let said = "";
    decoder.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-messageBytesMax);
    });
    try {
      for await (const chunk of decoder.stdout as AsyncIterable<Buffer>) yield chunk;
    } finally {
      // Whoever has read enough, or refuses what it read, does not wait for the rest.
      if (!decoder.stdout.readableEnded) decoder.kill("SIGKILL");
      await closed;
    }
    refuse(
      program,
      decoder.exitCode,
      said
        .trim()
        .replace(/^ztload: /, "")
        .replaceAll(file, name),
    );
  };
}

function refuse(program: string, exitCode: number | null, said: string): void {
  if (exitCode === 0) return;
  if (exitCode === exitUsage) {
    throw new Failure("testbed", `${program}: is older than this checkout: ${said}`, {
      hint: "make tools",
    });
  }
  throw new Failure("document", said, {
    hint: "the file is damaged or cut off, and what is whole in it is no whole attack",
  });
}
