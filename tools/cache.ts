/**
 * The content-addressed cache of built and fetched programs, outside every checkout. An entry
 * appears whole or not at all, and is never changed afterwards.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { withLock } from "./lock.ts";

const entrySchema = z.strictObject({
  schema: z.literal("ztbench/cache-entry/1"),
  sha256: z.string(),
  bytes: z.int().positive(),
  /** What made it, e.g. "go1.26.8 linux/amd64". */
  builder: z.string(),
  seconds: z.number().nonnegative(),
});
type EntryFile = z.infer<typeof entrySchema>;

/** One program in the cache. */
export type CachedProgram = EntryFile & { readonly key: string; readonly file: string };

/** `$ZTBENCH_CACHE`, else `$XDG_CACHE_HOME/ztbench`, else `~/.cache/ztbench`. */
export function cacheRoot(environment: NodeJS.ProcessEnv, home: string): string {
  const own = environment["ZTBENCH_CACHE"];
  if (own !== undefined && own !== "") return path.resolve(own);
  const shared = environment["XDG_CACHE_HOME"];
  const base = shared !== undefined && path.isAbsolute(shared) ? shared : path.join(home, ".cache");
  return path.join(base, "ztbench");
}

/** Digest of everything that determines a program; the order of object keys does not matter. */
export function cacheKey(determinants: Readonly<Record<string, unknown>>): string {
  const sorted = (_: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return createHash("sha256").update(JSON.stringify(determinants, sorted)).digest("hex");
}

/** Entries that no checkout asked for in this time are removed. */
const keptForMs = 30 * 24 * 3600 * 1000;

/**
 * Removes entries that were not looked up for 30 days before `nowMs` (since the epoch). Checkouts
 * keep what they have: theirs are hard links or copies.
 */
export async function prune(root: string, nowMs: number): Promise<void> {
  const programs = path.join(root, "programs");
  const shelves = await readdir(programs).catch(() => []);
  for (const shelf of shelves) {
    for (const key of await readdir(path.join(programs, shelf))) {
      const directory = path.join(programs, shelf, key);
      const used = await stat(path.join(directory, "entry.json")).catch(() => undefined);
      if (used !== undefined && nowMs - used.mtimeMs < keptForMs) continue;
      await rm(directory, { recursive: true, force: true });
    }
  }
}

/** The entry for `key`, or undefined if there is none or it was damaged. */
export async function lookUp(root: string, key: string): Promise<CachedProgram | undefined> {
  const directory = entryDirectory(root, key);
  try {
    const text = await readFile(path.join(directory, "entry.json"), "utf8");
    const entry = entrySchema.parse(JSON.parse(text));
    const file = path.join(directory, "program");
    if ((await stat(file)).size !== entry.bytes) return undefined;
    const now = new Date();
    await utimes(path.join(directory, "entry.json"), now, now); // see prune
    return { ...entry, key, file };
  } catch {
    return undefined; // absent, or left by another version: either way it is made anew
  }
}

/** Makes the program at the path it is given and says what made it. */
export type Maker = (target: string) => Promise<string>;

/**
 * The entry for `key`, made by `make` if it is missing. Of several processes one makes it and
 * the others wait. An interrupted one leaves only a folder that the next one removes.
 *
 * @param onWait called once if another process is making it
 */
export async function obtain(
  root: string,
  key: string,
  make: Maker,
  onWait: () => void,
): Promise<CachedProgram> {
  const known = await lookUp(root, key);
  if (known !== undefined) return known;
  return withLock(path.join(root, "locks", key), onWait, async () => {
    const meanwhile = await lookUp(root, key);
    if (meanwhile !== undefined) return meanwhile;
    const parts = path.join(root, "partial", key);
    await rm(parts, { recursive: true, force: true }); // of a run that was killed
    await mkdir(parts, { recursive: true });
    try {
      const entry = await makeEntry(await mkdtemp(path.join(parts, "e-")), make);
      const directory = entryDirectory(root, key);
      await mkdir(path.dirname(directory), { recursive: true });
      await rm(directory, { recursive: true, force: true });
      await rename(entry.directory, directory);
      return { ...entry.content, key, file: path.join(directory, "program") };
    } finally {
      await rm(parts, { recursive: true, force: true });
    }
  });
}

async function makeEntry(directory: string, make: Maker) {
  const file = path.join(directory, "program");
  const started = performance.now();
  const builder = await make(file);
  const seconds = Number(((performance.now() - started) / 1000).toFixed(1));
  await chmod(file, 0o555); // checkouts hold hard links to it
  const content: EntryFile = {
    schema: "ztbench/cache-entry/1",
    sha256: await sha256OfFile(file),
    bytes: (await stat(file)).size,
    builder,
    seconds,
  };
  await writeFile(path.join(directory, "entry.json"), JSON.stringify(content, null, 2) + "\n");
  return { directory, content };
}

function entryDirectory(root: string, key: string): string {
  return path.join(root, "programs", key.slice(0, 2), key);
}

/** SHA-256 of a file's content, in hex. */
export async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
