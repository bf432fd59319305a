/**
 * Opens a bundle, the directory that a campaign wrote: verifies it, then reads plan, manifest and
 * records by their schemas. Everything else in it is read later, as it is needed.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { documentBytesMax, parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { type Manifest, manifestSchema } from "../contracts/manifest.ts";
import { isBaseline, type Plan, planSchema } from "../contracts/plan.ts";
import { type RunDocument, type RunRecord, runDocumentSchema } from "../contracts/record.ts";
import { readBoundedText } from "./bounded-text.ts";
import { sha256Of, verifyChecksums } from "./checksum.ts";

/** Bounds what a sample file may take of memory. */
const textBytesMax = 256 * 1024 * 1024;

export type BundleRun = {
  /** Name of its directory under `runs/`. */
  readonly name: string;
  readonly record: RunDocument;
  /** Files of the run, relative to its directory. */
  readonly files: readonly string[];
};

export type Bundle = {
  readonly directory: string;
  readonly plan: Plan;
  readonly manifest: Manifest;
  /** sha256 of every file that SHA256SUMS lists, by path in the directory, in its order. */
  readonly sums: ReadonlyMap<string, string>;
  /** In the order in which they were made. */
  readonly runs: readonly BundleRun[];
};

/**
 * Verifies and opens a bundle.
 *
 * @throws Failure `document` if a file was changed, is missing or extra, or does not fit its schema
 */
export async function openBundle(directory: string): Promise<Bundle> {
  const info = await stat(directory).catch(() => undefined);
  if (info?.isDirectory() !== true) {
    throw new Failure("document", `bundle: must be a directory, found ${directory}`, {
      hint: "give the directory that a campaign wrote, e.g. results/NAME",
    });
  }
  const files = await verifyChecksums(directory);
  const plan = await readDocument(directory, "plan.yaml", planSchema);
  const manifest = await readDocument(directory, "manifest.json", manifestSchema);
  const planSha256 = await sha256Of(join(directory, "plan.yaml"));
  if (planSha256 !== manifest.planSha256) {
    throw new Failure(
      "document",
      `plan.yaml: must have the manifest's planSha256 ${manifest.planSha256}, found ${planSha256}`,
    );
  }
  checkManifest(manifest, plan);
  const entries = (await readdir(join(directory, "runs")).catch((): string[] => [])).sort();
  const names = entries.filter((name) => !name.startsWith(".partial-"));
  const runs: BundleRun[] = [];
  for (const name of names) runs.push(await openRun(directory, name, files));
  runs.sort((a, b) => a.record.run - b.record.run);
  checkOrder(runs, manifest);
  return { directory, plan, manifest, sums: files, runs };
}

/** Path of a file of a run, for readers that stream. */
export function runPath(bundle: Pick<Bundle, "directory">, run: BundleRun, file: string): string {
  return join(bundle.directory, "runs", run.name, file);
}

/** Name of a file of a run for messages: its path inside the bundle. */
export function runFileName(run: BundleRun, file: string): string {
  return `runs/${run.name}/${file}`;
}

/**
 * Reads a text file of a run.
 *
 * @throws Failure `document` if it is larger than a raw text may be
 */
export async function readRunText(
  bundle: Pick<Bundle, "directory">,
  run: BundleRun,
  file: string,
): Promise<string> {
  return readBoundedText(runPath(bundle, run, file), runFileName(run, file), textBytesMax);
}

async function openRun(
  directory: string,
  name: string,
  listed: ReadonlyMap<string, string>,
): Promise<BundleRun> {
  const prefix = `runs/${name}/`;
  const files = [...listed.keys()]
    .filter((file) => file.startsWith(prefix))
    .map((file) => file.slice(prefix.length));
  if (!files.includes("record.json")) {
    throw new Failure("document", `${prefix}record.json: is missing`, {
      hint: "the campaign broke off in this run; go on with ./ztbench campaign PLAN --resume",
    });
  }
  const record = await readDocument(directory, `${prefix}record.json`, runDocumentSchema);
  const expected = runName(record);
  if (name !== expected) {
    throw new Failure("document", `${prefix}record.json: belongs to ${expected}, found in ${name}`);
  }
  for (const [file, sha256] of Object.entries(record.files)) {
    const found = listed.get(prefix + file);
    if (found === sha256 && files.includes(file)) continue;
    const problem = files.includes(file)
      ? `must have sha256 ${sha256}, found ${String(found)}`
      : "is not in the bundle";
    throw new Failure("document", `${prefix}record.json: files: ${file} ${problem}`);
  }
  if (record.schema === "ztbench/record/1") checkRecord(record, files, `${prefix}record.json`);
  return { name, record, files };
}

/** What the schema cannot see: facts of one record that contradict each other. */
function checkRecord(record: RunRecord, files: readonly string[], at: string): void {
  const { treatment, deployment, measuredFromNs, measuredToNs, loadPlan } = record;
  const { offsetsFile } = loadPlan;
  const refuse = (key: string, wanted: string, found: string): never => {
    throw new Failure("document", `${at}: ${key}: must be ${wanted}, found ${found}`);
  };
  for (const key of ["topology", "runtime"] as const) {
    const [wanted, found] = [treatment[key], deployment[key]];
    if (found !== wanted) refuse(`deployment.${key}`, `${wanted} as treated`, found);
  }
  if (BigInt(measuredToNs) <= BigInt(measuredFromNs)) {
    refuse("measuredToNs", `later than measuredFromNs ${measuredFromNs}`, measuredToNs);
  }
  if (offsetsFile !== undefined && !files.includes(offsetsFile)) {
    refuse("loadPlan.offsetsFile", "a file of the run", offsetsFile);
  }
}

/** Name of a run's directory: `<number>-b<block>-<label>-<arm>`. */
export function runName(run: Pick<RunDocument, "run" | "block" | "label" | "arm">): string {
  return `${String(run.run).padStart(3, "0")}-b${run.block}-${run.label}-${run.arm}`;
}

/** The order must hold each cell of the plan once: what was cut out of it would not be missed. */
function checkManifest(manifest: Manifest, plan: Plan): void {
  if (manifest.seed !== plan.seed) {
    throw new Failure(
      "document",
      `manifest.json: seed: must be ${plan.seed} as planned, found ${manifest.seed}`,
    );
  }
  const missing = new Set<string>();
  for (let block = 1; block <= plan.blocks; block++) {
    for (const { label } of plan.treatments) {
      missing.add(cellKey({ block, label, arm: "a" }));
      if (isBaseline(plan, label)) missing.add(cellKey({ block, label, arm: "b" }));
    }
  }
  const planned = missing.size;
  const found = manifest.order.find((run) => !missing.delete(cellKey(run)));
  if (found === undefined && missing.size === 0) return;
  const problem =
    found === undefined
      ? `${[...missing][0] ?? ""} is missing`
      : `${cellKey(found)} comes twice or was not planned`;
  throw new Failure(
    "document",
    `manifest.json: order: must be the ${planned} runs of plan.yaml, each once, but ${problem}`,
  );
}

/** Each run must be a planned one; what broke off may have been repeated under a new number. */
function checkOrder(runs: readonly BundleRun[], manifest: Manifest): void {
  const planned = new Set(manifest.order.map(cellKey));
  const numbers = new Map<number, string>();
  for (const { name, record } of runs) {
    const at = `runs/${name}/record.json`;
    if (!planned.has(cellKey(record))) {
      throw new Failure(
        "document",
        `${at}: must be planned in manifest.json, found block ${record.block}, ` +
          `label ${record.label}, arm ${record.arm}`,
      );
    }
    const other = numbers.get(record.run);
    if (other !== undefined) {
      throw new Failure("document", `${at}: run: ${record.run} is already the number of ${other}`);
    }
    numbers.set(record.run, name);
  }
}

/** Which planned run it is: a repeat has another number, but the same cell. */
export function cellKey(run: Pick<RunDocument, "block" | "label" | "arm">): string {
  return `b${run.block}-${run.label}-${run.arm}`;
}

async function readDocument<S extends z.ZodType>(
  directory: string,
  file: string,
  schema: S,
): Promise<z.output<S>> {
  let text: string;
  try {
    text = await readBoundedText(join(directory, file), file, documentBytesMax);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("document", `${file}: is missing in the bundle`, { cause: error });
  }
  return parseDocument(schema, text, file);
}
