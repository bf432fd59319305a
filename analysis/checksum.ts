/** Checks that a bundle holds just the files its SHA256SUMS lists, byte by byte. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Failure } from "../contracts/failure.ts";
import { readBoundedText } from "./bounded-text.ts";

export const sumsFile = "SHA256SUMS";
/** What analysis itself writes into a bundle, after the sums were made, and what it must be. */
const derived = new Map<string, "file" | "directory">([
  [sumsFile, "file"],
  ["tables", "directory"],
  ["report.html", "file"],
  ["ro-crate-metadata.json", "file"],
  ["test-result.intoto.json", "file"],
]);

/** Runs and searches that a crash broke off; they never became part of the bundle. */
const inProgress = ["runs/.partial-", "capacity/.partial-"];

const sumsBytesMax = 16 * 1024 * 1024;
const depthMax = 8;
const problemsMax = 20;
const filesAtOnce = 16;
/** Smaller files are read at once, since setting up a stream takes longer. */
const wholeBytesMax = 1024 * 1024;

type Entry = { readonly sha256: string; readonly path: string; readonly line: number };

/**
 * Verifies every file of a bundle against its list; reads each file once, as a stream.
 *
 * @returns sha256 of all listed files by path in the directory, in the order of the list
 * @throws Failure `document` naming file and line of each problem: a hash that differs, a file
 *   that is missing, unlisted, listed twice or outside of the bundle, or that is no plain file
 */
export async function verifyChecksums(directory: string): Promise<ReadonlyMap<string, string>> {
  const problems: string[] = [];
  const entries = parseSums(await readSums(directory), problems);
  const present = await listFiles(directory, "", 0, problems);
  for (const path of present) {
    if (!entries.has(path)) problems.push(`${path}: is in the bundle, but not in ${sumsFile}`);
  }
  problems.push(...(await checkAll(directory, [...entries.values()], present)));
  if (problems.length > 0) {
    throw new Failure("document", problems.slice(0, problemsMax).join("\n"), {
      hint:
        "the bundle was changed or not copied whole: fetch it anew; if its campaign broke off, " +
        "go on with ./ztbench campaign PLAN --resume",
    });
  }
  return new Map([...entries.values()].map(({ path, sha256 }) => [path, sha256]));
}

/** Problems of the files that are listed, in the order of the list. */
async function checkAll(
  directory: string,
  entries: readonly Entry[],
  present: ReadonlySet<string>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  // A handful at once: small files would else mostly wait for the disk and its threads.
  for (let from = 0; from < entries.length && problems.length < problemsMax; from += filesAtOnce) {
    const some = entries.slice(from, from + filesAtOnce);
    const found = await Promise.all(some.map((entry) => check(directory, entry, present)));
    problems.push(...found.filter((problem) => problem !== undefined));
  }
  return problems;
}

async function check(
  directory: string,
  { path, sha256, line }: Entry,
  present: ReadonlySet<string>,
): Promise<string | undefined> {
  const at = `${sumsFile}:${line}: ${path}`;
  if (!present.has(path)) return `${at}: is listed, but not in the bundle`;
  const found = await sha256Of(join(directory, path));
  return found === sha256 ? undefined : `${at}: must have sha256 ${sha256}, found ${found}`;
}

/** sha256 of a file, in hexadecimal. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  const { size } = await stat(path);
  if (size > wholeBytesMax) await pipeline(createReadStream(path), hash);
  else hash.update(await readFile(path));
  return hash.digest("hex");
}

async function readSums(directory: string): Promise<string> {
  try {
    return await readBoundedText(join(directory, sumsFile), sumsFile, sumsBytesMax);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("document", `bundle: has no ${sumsFile}, in ${directory}`, {
      cause: error,
      hint: "give the directory that a campaign wrote, e.g. results/NAME",
    });
  }
}

function parseSums(text: string, problems: string[]): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  const lines = text.split("\n");
  if (lines.pop() !== "") problems.push(`${sumsFile}:${lines.length + 1}: has no line end`);
  lines.forEach((content, index) => {
    const line = index + 1;
    const at = `${sumsFile}:${line}`;
    const match = /^([0-9a-f]{64}) [ *](.+)$/.exec(content);
    const [, sha256, path] = match ?? [];
    if (sha256 === undefined || path === undefined) {
      const shown = JSON.stringify(content.slice(0, 60));
      problems.push(`${at}: must be a sha256, two spaces and a path, found ${shown}`);
      return;
    }
    const first = entries.get(path);
    if (!isInside(path)) {
      problems.push(`${at}: ${path}: must be a path inside the bundle, without "." and ".."`);
    } else if (first !== undefined) {
      problems.push(`${at}: ${path}: is already listed in line ${first.line}`);
    } else {
      entries.set(path, { sha256, path, line });
    }
  });
  return entries;
}

function isInside(path: string): boolean {
  const segments = path.split("/");
  return !path.includes("\\") && !segments.some((s) => s === "" || s === "." || s === "..");
}

/** Paths of all plain files under a directory; anything else is a problem. */
async function listFiles(
  root: string,
  below: string,
  depth: number,
  problems: string[],
): Promise<Set<string>> {
  const files = new Set<string>();
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    const wanted = derived.get(path);
    if (wanted === "file" ? entry.isFile() : wanted === "directory" && entry.isDirectory())
      continue;
    if (wanted !== undefined && !entry.isSymbolicLink()) {
      problems.push(`${path}: must be a plain ${wanted}, which ztbench writes anew`);
      continue;
    }
    if (!entry.isSymbolicLink() && inProgress.some((prefix) => path.startsWith(prefix))) continue;
    if (entry.isFile()) files.add(path);
    else if (!entry.isDirectory()) {
      const kind = entry.isSymbolicLink() ? "a symbolic link" : "a special file";
      problems.push(`${path}: must be a plain file or a directory, found ${kind}`);
    } else if (depth >= depthMax) problems.push(`${path}: lies too deep, allowed ${depthMax}`);
    else for (const file of await listFiles(root, path, depth + 1, problems)) files.add(file);
  }
  return files;
}
