/** Files of a bundle: written whole or not at all, and hashed. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, rename } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { pipeline } from "node:stream/promises";

/** Relative path to sha256, hexadecimal. */
export type Sums = Map<string, string>;

/** Writes a file so that a reader, also after a power cut, sees the old one or the new one. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const part = `${path}.part`;
  const file = await open(part, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(part, path);
  await syncDirectory(dirname(path));
}

/** Makes renames in a directory last. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export function sha256Text(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export async function sha256File(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** Hashes of all files below a directory, by path relative to it, sorted. */
export async function hashTree(directory: string): Promise<Sums> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .sort();
  const sums: Sums = new Map();
  for (const path of paths) sums.set(path, await sha256File(join(directory, path)));
  return sums;
}

/** The text that `sha256sum --check` reads. */
export function renderSums(sums: Sums): string {
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, sum]) => `${sum}  ${path}\n`)
    .join("");
}

/** Lines that are not of that form are returned as well, by number, to be complained about. */
export function parseSums(text: string): { sums: Sums; badLines: number[] } {
  const sums: Sums = new Map();
  const badLines: number[] = [];
  text
    .split("\n")
    .filter((line, index, all) => line !== "" || index < all.length - 1)
    .forEach((line, index) => {
      const [, sum, path] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
      if (sum === undefined || path === undefined) badLines.push(index + 1);
      else sums.set(path, sum);
    });
  return { sums, badLines };
}
