/**
 * Makes the directory of an artifacts document complete and checks every file in it: what is
 * missing is fetched where the document gives an address, and nothing passes without its digest.
 */
import { createWriteStream, existsSync } from "node:fs";
import { readdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Artifact, type Artifacts, artifactsSchema } from "../contracts/artifacts.ts";
import { parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { sha256OfFile } from "./cache.ts";

/** The largest file has some 250 MB; this is 3 Mbit/s. */
const fetchMs = 600_000;

const partialSuffix = ".partial";

export type ArtifactStore = {
  readonly artifacts: Artifacts;
  /** Absolute path of the directory that holds the files and the document itself. */
  readonly directory: string;
  /** Name of the document in there. */
  readonly document: string;
};

/**
 * Reads an artifacts document.
 *
 * @throws Failure `document` if it cannot be read or is not one
 */
export async function readArtifacts(file: string): Promise<ArtifactStore> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new Failure("document", `cluster.artifacts: cannot be read, found ${file}`, {
      cause,
      hint: "make one: node --import tsx tools/fetch-set.ts era DIRECTORY",
    });
  });
  const artifacts = parseDocument(artifactsSchema, text, file);
  return { artifacts, directory: path.dirname(path.resolve(file)), document: path.basename(file) };
}

/**
 * Fetches what is missing and checks everything. A second call only checks.
 *
 * @throws Failure `testbed` naming every file that is missing, damaged or not in the document
 */
export async function completeArtifacts(store: ArtifactStore): Promise<void> {
  const problems: string[] = [];
  for (const file of store.artifacts.files) {
    const problem = await problemOf(store.directory, file);
    if (problem !== undefined) problems.push(problem);
  }
  const known = new Set([store.document, ...store.artifacts.files.map(({ name }) => name)]);
  for (const name of await readdir(store.directory)) {
    // Of a fetch that was killed.
    if (name.endsWith(partialSuffix)) await rm(path.join(store.directory, name));
    else if (!known.has(name)) problems.push(`artifact ${name}: not named by ${store.document}`);
  }
  if (problems.length === 0) return;
  throw new Failure("testbed", problems.join("\n"), {
    hint: `put the right files into ${store.directory}, or correct ${store.document}`,
  });
}

async function problemOf(directory: string, file: Artifact): Promise<string | undefined> {
  const target = path.join(directory, file.name);
  if (!existsSync(target)) {
    if (file.url === undefined) {
      return `artifact ${file.name}: missing in ${directory}, and no url says where it is`;
    }
    return fetchFile(target, file, file.url);
  }
  return digestProblem(target, file);
}

async function digestProblem(target: string, file: Artifact): Promise<string | undefined> {
  const found = await sha256OfFile(target);
  if (found === file.sha256) return undefined;
  return (
    `artifact ${file.name}: not the file that was meant, SHA-256 ${found}, ` +
    `expected ${file.sha256}`
  );
}

/** Only a file whose digest is right gets its name. */
async function fetchFile(target: string, file: Artifact, url: string): Promise<string | undefined> {
  const partial = `${target}${partialSuffix}`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(fetchMs) });
    if (!answer.ok || answer.body === null) {
      return `artifact ${file.name}: cannot be fetched, ${url} answered ${answer.status}`;
    }
    await pipeline(Readable.fromWeb(answer.body), createWriteStream(partial));
    const problem = await digestProblem(partial, file);
    if (problem === undefined) await rename(partial, target);
    return problem;
  } catch (error) {
    return `artifact ${file.name}: cannot be fetched from ${url}, ${reasonOf(error)}`;
  } finally {
    await rm(partial, { force: true });
  }
}

/** What `fetch` throws says only "fetch failed"; the reason is its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return (cause as NodeJS.ErrnoException).code ?? cause.message;
  return error.message;
}
