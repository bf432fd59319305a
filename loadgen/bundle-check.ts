/** Reads back what a campaign wrote before it goes on: every file must be as it was written. */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { runDocumentSchema } from "../contracts/record.ts";
import { hashTree, parseSums, sha256File, type Sums } from "./bundle-files.ts";
import type { Attempt } from "./order.ts";

export type Checked = {
  readonly sums: Sums;
  readonly attempts: Attempt[];
  /** Names of finished capacity searches. */
  readonly searches: string[];
};

/**
 * Compares a bundle with its SHA256SUMS. A run that was finished but not yet listed there, because
 * of a crash between the two, is checked by its record and taken in.
 *
 * @throws Failure `document`, one line for each file that is missing, changed or unknown
 */
export async function checkBundle(directory: string): Promise<Checked> {
  const { sums, badLines } = parseSums(await readText(directory, "SHA256SUMS"));
  const problems = badLines.map(
    (line) => `${directory}/SHA256SUMS:${line}:1: not a line "sha256  path"`,
  );
  for (const [path, wanted] of sums) {
    const found = await sha256File(join(directory, path)).catch(() => undefined);
    if (found === undefined) problems.push(`${directory}/${path}: missing, listed in SHA256SUMS`);
    else if (found !== wanted) {
      problems.push(`${directory}/${path}: changed, sha256 ${found} found, ${wanted} recorded`);
    }
  }
  refuse(problems);
  const runs: { run: number; attempt: Attempt }[] = [];
  for (const name of (await readdir(join(directory, "runs")).catch(() => [])).sort()) {
    runs.push(await checkRun(directory, name, sums, problems));
  }
  refuse(problems);
  runs.sort((a, b) => a.run - b.run);
  const attempts = runs.map(({ attempt }) => attempt);
  return { sums, attempts, searches: await checkSearches(directory, sums) };
}

/** A search that a crash kept from being listed is not worth checking: it is made anew. */
async function checkSearches(directory: string, sums: Sums): Promise<string[]> {
  const names = (await readdir(join(directory, "capacity")).catch(() => [])).sort();
  const listed = names.filter((name) => sums.has(`capacity/${name}/search.json`));
  for (const name of names.filter((other) => !listed.includes(other))) {
    await rm(join(directory, "capacity", name), { recursive: true, force: true });
  }
  return listed;
}

async function checkRun(directory: string, name: string, sums: Sums, problems: string[]) {
  const path = `runs/${name}/record.json`;
  const file = join(directory, path);
  const record = parseDocument(runDocumentSchema, await readText(directory, path), file);
  const found = await hashTree(join(directory, "runs", name));
  const recorded = new Map(Object.entries(record.files));
  for (const [inner, sum] of found) {
    const outer = `runs/${name}/${inner}`;
    const isRecord = inner === "record.json";
    if (!isRecord && recorded.get(inner) !== sum) {
      problems.push(`${directory}/${outer}: not the file that record.json names`);
    }
    sums.set(outer, sum);
  }
  for (const inner of recorded.keys()) {
    if (!found.has(inner)) problems.push(`${directory}/runs/${name}/${inner}: missing`);
  }
  const { run, block, label, arm, failure } = record;
  return { run, attempt: { block, label, arm, failed: failure !== undefined } };
}

async function readText(directory: string, path: string): Promise<string> {
  return readFile(join(directory, path), "utf8").catch((cause: unknown) => {
    throw new Failure("document", `${directory}/${path}: missing or unreadable`, { cause });
  });
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new Failure("document", problems.join("\n"), {
    hint: "a bundle is never edited: restore the files, or start a new one",
  });
}
