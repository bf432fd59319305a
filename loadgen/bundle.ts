/** The bundle of a campaign: a directory that grows run by run and is whole after each of them. */
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Failure } from "../contracts/failure.ts";
import { parseDocument } from "../contracts/document.ts";
import type { CapacitySearch } from "../contracts/capacity-search.ts";
import { type Manifest, manifestSchema } from "../contracts/manifest.ts";
import type { FailedRun, RunDocument, RunRecord } from "../contracts/record.ts";
import {
  hashTree,
  renderSums,
  type Sums,
  syncDirectory,
  sha256File,
  sha256Text,
  writeWhole,
} from "./bundle-files.ts";
import { type Checked, checkBundle } from "./bundle-check.ts";
import type { Attempt, PlannedRun } from "./order.ts";

const partialPrefix = ".partial-";

/** Directory of the capacity searches in a bundle. */
const searchesDirectory = "capacity";

/** A record before its files are hashed. */
export type Draft = Omit<RunRecord, "files"> | Omit<FailedRun, "files">;

export class Bundle {
  readonly directory: string;
  readonly #sums: Sums;
  readonly #attempts: Attempt[];
  readonly #searches: string[];
  #manifest: Manifest;

  private constructor(
    directory: string,
    manifest: Manifest,
    { sums, attempts, searches }: Checked,
  ) {
    this.directory = directory;
    this.#manifest = manifest;
    this.#sums = sums;
    this.#attempts = attempts;
    this.#searches = searches;
  }

  /**
   * Makes a new bundle: plan and manifest are on disk before the first request is sent.
   *
   * @throws Failure `usage` if the directory holds anything
   */
  static async create(directory: string, planText: string, manifest: Manifest): Promise<Bundle> {
    await refuseUsedDirectory(directory);
    await mkdir(join(directory, "runs"), { recursive: true });
    await writeWhole(join(directory, "plan.yaml"), planText);
    const bundle = new Bundle(directory, manifest, { sums: new Map(), attempts: [], searches: [] });
    bundle.#sums.set("plan.yaml", sha256Text(planText));
    await bundle.#writeManifest();
    return bundle;
  }

  /**
   * Opens a bundle to go on with it. What a crash left of the run in progress is removed.
   *
   * @throws Failure `usage` if there is no bundle, `comparison` if it was made from another plan,
   *   `document` if any of its files is not what was written
   */
  static async resume(directory: string, planText: string): Promise<Bundle> {
    const path = join(directory, "manifest.json");
    const text = await readFile(path, "utf8").catch((cause: unknown) => {
      throw new Failure("usage", `bundle ${directory}: nothing to resume, no manifest.json in it`, {
        cause,
        hint: "start the campaign without --resume",
      });
    });
    const manifest = parseDocument(manifestSchema, text, path);
    const planSha256 = sha256Text(planText);
    if (manifest.planSha256 !== planSha256) {
      throw new Failure(
        "comparison",
        `bundle ${directory}: made from another plan, ` +
          `sha256 ${manifest.planSha256} in the bundle, ${planSha256} now`,
        { hint: `resume with the plan in ${join(directory, "plan.yaml")}, or start a new bundle` },
      );
    }
    await removeParts(directory);
    const bundle = new Bundle(directory, manifest, await checkBundle(directory));
    await bundle.#writeSums();
    return bundle;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Finished runs, failed ones as well, in order of execution. */
  get attempts(): readonly Attempt[] {
    return this.#attempts;
  }

  /** An empty directory for the files of a run; it becomes part of the bundle by `finishRun`. */
  async beginRun(run: PlannedRun): Promise<string> {
    const directory = join(this.directory, "runs", partialPrefix + runDirectory(run));
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    return directory;
  }

  /** Hashes the files of a run, writes its record, and makes all of it part of the bundle. */
  async finishRun(run: PlannedRun, draft: Draft): Promise<void> {
    const name = runDirectory(run);
    const partial = join(this.directory, "runs", partialPrefix + name);
    const files = await hashTree(partial);
    const document: RunDocument = { ...draft, files: Object.fromEntries(files) };
    const text = renderJson(document);
    await writeWhole(join(partial, "record.json"), text);
    await rename(partial, join(this.directory, "runs", name));
    await syncDirectory(join(this.directory, "runs"));
    files.set("record.json", sha256Text(text));
    for (const [path, sum] of files) this.#sums.set(`runs/${name}/${path}`, sum);
    this.#attempts.push({
      block: run.block,
      label: run.label,
      arm: run.arm,
      failed: draft.failure !== undefined,
    });
    await this.#writeSums();
  }

  /** A finished run is of no use, by its place: it counts as an attempt that failed. */
  rejectAt(index: number): void {
    const attempt = this.#attempts[index];
    if (attempt !== undefined) this.#attempts[index] = { ...attempt, failed: true };
  }

  /** Keeps the tuning as read back at the end of a block; of a block read twice the last counts. */
  async keepReadback(block: number, tuning: RunRecord["tuning"]): Promise<void> {
    const others = (this.#manifest.readbacks ?? []).filter((kept) => kept.block !== block);
    const at = new Date().toISOString();
    this.#manifest = { ...this.#manifest, readbacks: [...others, { block, at, tuning }] };
    await this.#writeManifest();
  }

  /** Notes that the plan's stopping rule is met: blocks after this one are not run. */
  async stopAfter(afterBlock: number, because: string): Promise<void> {
    this.#manifest = { ...this.#manifest, stopped: { afterBlock, because } };
    await this.#writeManifest();
  }

  /** Forgets the run in progress. */
  async dropRun(run: PlannedRun): Promise<void> {
    const path = join(this.directory, "runs", partialPrefix + runDirectory(run));
    await rm(path, { recursive: true, force: true });
  }

  /** Finished capacity searches, by name. */
  get searches(): readonly string[] {
    return this.#searches;
  }

  /** An empty directory for the files of a search; part of the bundle by `finishSearch`. */
  async beginSearch(name: string): Promise<string> {
    const directory = this.#partialSearch(name);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    return directory;
  }

  /** Hashes the files of a search, writes its document, and makes all of it part of the bundle. */
  async finishSearch(name: string, draft: Omit<CapacitySearch, "files">): Promise<void> {
    const partial = this.#partialSearch(name);
    const files = await hashTree(partial);
    const search: CapacitySearch = { ...draft, files: Object.fromEntries(files) };
    const text = renderJson(search);
    await writeWhole(join(partial, "search.json"), text);
    await rename(partial, join(this.directory, searchesDirectory, name));
    await syncDirectory(join(this.directory, searchesDirectory));
    files.set("search.json", sha256Text(text));
    for (const [path, sum] of files) this.#sums.set(`${searchesDirectory}/${name}/${path}`, sum);
    this.#searches.push(name);
    await this.#writeSums();
  }

  /** Forgets the search in progress. */
  async dropSearch(name: string): Promise<void> {
    await rm(this.#partialSearch(name), { recursive: true, force: true });
  }

  #partialSearch(name: string): string {
    return join(this.directory, searchesDirectory, partialPrefix + name);
  }

  /** Adds what a reader must know to the manifest; what is there already is not repeated. */
  async warn(warnings: readonly string[]): Promise<void> {
    const fresh = warnings.filter((warning) => !this.#manifest.warnings.includes(warning));
    if (fresh.length === 0) return;
    this.#manifest = { ...this.#manifest, warnings: [...this.#manifest.warnings, ...fresh] };
    await this.#writeManifest();
  }

  async #writeManifest(): Promise<void> {
    const path = join(this.directory, "manifest.json");
    await writeWhole(path, renderJson(this.#manifest));
    this.#sums.set("manifest.json", await sha256File(path));
    await this.#writeSums();
  }

  async #writeSums(): Promise<void> {
    await writeWhole(join(this.directory, "SHA256SUMS"), renderSums(this.#sums));
  }
}

/** `007-b2-gateway-a`: order of execution, block, label and arm; for people, never parsed. */
export function runDirectory(run: PlannedRun): string {
  const number = String(run.run).padStart(3, "0");
  return `${number}-b${run.block}-${run.label}-${run.arm}`;
}

function renderJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function refuseUsedDirectory(directory: string): Promise<void> {
  const found = await readdir(directory).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new Failure(
      "usage",
      `bundle ${basename(directory)}: not a directory that can be read in ${dirname(directory)}`,
      { cause: error },
    );
  });
  if (found.length > 0) {
    throw new Failure("usage", `bundle ${directory}: must be a new or empty directory`, {
      hint: "add --resume to go on with it, or name another directory",
    });
  }
}

/** Of the run in progress, and of a file that was being written. */
async function removeParts(directory: string): Promise<void> {
  const files = (await readdir(directory)).filter((name) => name.endsWith(".part"));
  for (const name of files) await rm(join(directory, name), { force: true });
  for (const place of ["runs", searchesDirectory]) {
    const entries = await readdir(join(directory, place)).catch(() => []);
    for (const entry of entries.filter((name) => name.startsWith(partialPrefix))) {
      await rm(join(directory, place, entry), { recursive: true, force: true });
    }
  }
}
