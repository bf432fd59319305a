/** The verb `verify`: checks a bundle's files and recomputes every cell of its tables. */
import path from "node:path";
import { type StoredTables, StoredComparison } from "../analysis/verification.ts";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { readCommit } from "./commit.ts";
import { deriveAll } from "./results.ts";
import { type Io, readArguments, type Verb } from "./verb.ts";

const usage = `./ztbench verify BUNDLE [--json]

Checks every file against SHA256SUMS, computes all tables from the raw files, and compares them
with those that are stored in the bundle, cell by cell. Writes nothing. Exit code 3 if anything
differs.`;

type Verification = {
  readonly schema: "ztbench/verification/1";
  readonly ok: boolean;
  /** Why nothing could be computed: the files are not those that were measured. */
  readonly problems: readonly string[];
  readonly checked?: {
    readonly files: number;
    readonly runs: number;
    readonly rows: number;
    readonly tables: StoredTables;
    readonly madeWith: string;
    readonly verifiedWith: string;
  };
  readonly seconds: number;
};

export const verify: Verb = {
  summary: "check a bundle's files and recompute every cell of its tables",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const bundleDir = path.resolve(positionals[0] ?? "");
    const found = await verifyBundle(bundleDir).catch((error: unknown) => {
      // Without --json the message says it all; with it, whoever reads wants JSON in any case.
      if (values.json !== true || !(error instanceof Failure)) throw error;
      if (error.code === "document") io.print(renderProblems(error));
      throw error;
    });
    if (values.json === true) io.print(JSON.stringify(found, null, 2));
    else show(found, io);
    return found.ok ? 0 : exitCodes.document;
  },
};

async function verifyBundle(bundleDir: string): Promise<Verification> {
  const began = performance.now();
  const stored = new StoredComparison(bundleDir);
  const { bundle, analysis } = await deriveAll(bundleDir, stored.take);
  const tables = await stored.finish();
  const { commit, dirty } = bundle.manifest;
  const now = await readCommit();
  return {
    schema: "ztbench/verification/1",
    ok: tables.differing === 0,
    problems: [],
    checked: {
      files: bundle.sums.size,
      runs: bundle.runs.length,
      rows: analysis.runs.reduce((sum, { latency }) => sum + (latency?.sent ?? 0), 0),
      tables,
      madeWith: spellCommit(commit, dirty),
      verifiedWith: spellCommit(now.id, now.dirty),
    },
    seconds: (performance.now() - began) / 1000,
  };
}

function spellCommit(id: string, dirty: boolean): string {
  return `${id}${dirty ? " with local changes" : ""}`;
}

function renderProblems({ message }: Failure): string {
  const found: Omit<Verification, "seconds"> = {
    schema: "ztbench/verification/1",
    ok: false,
    problems: message.split("\n"),
  };
  return JSON.stringify(found, null, 2);
}

function show({ checked, seconds }: Verification, io: Io): void {
  if (checked === undefined) return;
  const { files, runs, rows, tables, madeWith, verifiedWith } = checked;
  io.print(
    [
      `files: ${files}, each as SHA256SUMS lists it; plan.yaml as the manifest hashed it`,
      `requests: ${rows} rows of ${runs} runs read`,
      `tables: ${describeTables(tables)}`,
      ...tables.differences.map(
        ({ file, row, column, stored, recomputed }) =>
          `  ${file}: ${row}: ${column}: stored ${quote(stored)}, recomputed ${quote(recomputed)}`,
      ),
      ...(tables.differing > tables.differences.length
        ? [`  and ${tables.differing - tables.differences.length} more`]
        : []),
      ...(tables.differing > 0 && madeWith !== verifiedWith
        ? [`made with commit ${madeWith}, verified with ${verifiedWith}: check that one out`]
        : []),
      `time: ${seconds.toFixed(1)} s`,
    ].join("\n"),
  );
}

function describeTables({ present, files, cells, differing }: StoredTables): string {
  const computed = `${cells} cells of ${files} files recomputed`;
  if (!present) return `${computed}; the bundle stores none, so there is nothing to compare`;
  return differing === 0 ? `${computed}, all as stored` : `${computed}, ${differing} differ`;
}

function quote(text: string | undefined): string {
  return text === undefined ? "nothing" : JSON.stringify(text);
}
