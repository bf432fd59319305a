import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { cellsOf } from "../../../analysis/grid.ts";
import { StoredComparison, type StoredTables } from "../../../analysis/verification.ts";
import { deriveAll, deriveResults } from "../../../cli/results.ts";
import {
  makeBundle,
  removeBundle,
  renderRows,
  sealBundle,
  steadyRows,
} from "../../support/bundle.ts";

const root = path.resolve(import.meta.dirname, "../../..");
let home: string;
let original: string;

before(async () => {
  home = await mkdtemp(path.join(tmpdir(), "ztbench-verify-"));
  original = await makeBundle({
    blocks: 2,
    durationSeconds: 1,
    content: ({ label }, plan) => ({
      rows: steadyRows(plan, () => (label === "gateway" ? 250_000 : 200_000)),
      cpuPerRequestUs: label === "gateway" ? 150 : 100,
    }),
  });
  await deriveResults(original, false);
});
after(async () => {
  await removeBundle(original);
  await rm(home, { recursive: true });
});

let copies = 0;
async function copyOf(): Promise<string> {
  const copy = path.join(home, String((copies += 1)));
  await cp(original, copy, { recursive: true });
  return copy;
}

async function verified(bundle: string): Promise<StoredTables> {
  const stored = new StoredComparison(bundle);
  await deriveAll(bundle, stored.take);
  return stored.finish();
}

async function edit(bundle: string, file: string, from: string | RegExp, to: string) {
  const text = await readFile(path.join(bundle, file), "utf8");
  const edited = text.replace(from, to);
  assert.notEqual(edited, text);
  await writeFile(path.join(bundle, file), edited);
}

test("tables that a report has just written are all as recomputed", async () => {
  const { present, differing, files, cells } = await verified(original);
  assert.deepEqual([present, differing], [true, 0]);
  // Four renderings, four exports, three of claims, the page and a log for each of six runs.
  assert.ok(files >= 4 + 4 + 3 + 1 + 6, String(files));
  assert.ok(cells > 1000, String(cells));
});

const edits: [name: string, file: string, from: RegExp, to: string, row: RegExp, column: string][] =
  [
    [
      "a number of loss.csv",
      "tables/loss.csv",
      /^(summary,gateway,responseP50,ns,)270000/m,
      "$1170000",
      /^summary gateway responseP50$/,
      "value",
    ],
    [
      "a verdict in loss.json",
      "tables/loss.json",
      /"verdict": "VALID"/,
      '"verdict": "WARN"',
      /^runs\[0\]$/,
      "verdict",
    ],
    [
      "a cell of loss.md",
      "tables/loss.md",
      /^(\| gateway \| p50 \| )\S+/m,
      "$1+1",
      /^line \d+$/,
      "loss",
    ],
    ["a line of the page", "report.html", /<title>/, "<title>Better ", /^line \d+$/, "1"],
    [
      "a length in an interval log",
      "tables/hlog/001-b1-baseline-a.hlog",
      /,1\.000,/,
      ",2.000,",
      /^line 4$/,
      "3",
    ],
    ["a figure for CI systems", "tables/metrics.txt", /^# EOF/m, "# EOI", /^line \d+$/, "1"],
  ];
for (const [name, file, from, to, row, column] of edits) {
  test(`${name} that was edited is named with file, row and column`, async () => {
    const bundle = await copyOf();
    await edit(bundle, file, from, to);
    const { differing, differences } = await verified(bundle);
    const [first] = differences;
    assert.equal(differing, 1, JSON.stringify(differences));
    assert.equal(first?.file, file);
    assert.match(first.row, row);
    assert.equal(first.column, column);
    assert.notEqual(first.stored, first.recomputed);
  });
}

test("the stored and the recomputed value of a cell are both told", async () => {
  const bundle = await copyOf();
  await edit(bundle, "tables/loss.csv", /^(summary,gateway,responseP50,ns,)\d+/m, "$11");
  const { differences } = await verified(bundle);
  // Answered after 250 µs, sent 20 µs late.
  assert.equal(differences[0]?.stored, "1");
  assert.equal(differences[0].recomputed, "270000");
});

test("a file that differs in its layout alone is no longer ours", async () => {
  const bundle = await copyOf();
  await edit(bundle, "tables/loss.json", "{\n", "{\n\n");
  const { differences } = await verified(bundle);
  assert.deepEqual(
    differences.map(({ column }) => column),
    ["layout"],
  );
});

test("a table too many, one too few, a link and a giant are all told", async () => {
  const bundle = await copyOf();
  const tables = path.join(bundle, "tables");
  await writeFile(path.join(tables, "more.csv"), "x\n");
  await rm(path.join(tables, "loss.md"));
  await rm(path.join(tables, "loss.txt"));
  await symlink("/etc/hostname", path.join(tables, "loss.txt"));
  await writeFile(path.join(tables, "claims.txt"), "x".repeat(4 * 1024 * 1024));
  const { differences } = await verified(bundle);
  assert.deepEqual(
    differences.map(({ file, stored }) => [file, stored]),
    [
      ["tables/loss.txt", "no plain file"],
      ["tables/loss.md", undefined],
      ["tables/claims.txt", "4194304 bytes"],
      ["tables/more.csv", "a file"],
    ],
  );
});

test("JSON that is none, or is nested without end, is a difference and no crash", async () => {
  const bundle = await copyOf();
  await writeFile(path.join(bundle, "tables/claims.json"), "[".repeat(200_000));
  await writeFile(path.join(bundle, "tables/loss.json"), `${"[".repeat(500)}${"]".repeat(500)}`);
  const { differences } = await verified(bundle);
  assert.deepEqual(
    differences.map(({ file }) => file),
    ["tables/loss.json", "tables/claims.json"],
  );
  for (const { stored } of differences) assert.match(stored ?? "", /^cannot be read: /);
});

test("a bundle without tables has nothing to compare, and says so", async () => {
  const bundle = await copyOf();
  await rm(path.join(bundle, "tables"), { recursive: true });
  await rm(path.join(bundle, "report.html"));
  for (const file of ["ro-crate-metadata.json", "test-result.intoto.json"]) {
    await rm(path.join(bundle, file), { force: true });
  }
  const { present, differing } = await verified(bundle);
  assert.deepEqual([present, differing], [false, 0]);
  const ended = await ztbench("verify", bundle);
  assert.match(ended.stdout, /the bundle stores none, so there is nothing to compare/);
  assert.equal(ended.code, 0);
});

test("rows that were replaced and sealed anew no longer give the stored tables", async () => {
  const bundle = await copyOf();
  const rows = Array.from({ length: 1000 }, (_, seq) => {
    return { seq, sentNs: seq * 1_000_000 + 20_000, latencyNs: 100_000 };
  });
  await writeFile(path.join(bundle, "runs/002-b1-gateway-a/requests.csv.gz"), renderRows(rows));
  await rm(path.join(bundle, "SHA256SUMS"));
  const kept = path.join(home, "kept");
  await cp(path.join(bundle, "tables"), kept, { recursive: true });
  for (const file of ["tables", "report.html", "ro-crate-metadata.json"]) {
    await rm(path.join(bundle, file), { recursive: true, force: true });
  }
  await rm(path.join(bundle, "test-result.intoto.json"), { force: true });
  await sealBundle(bundle);
  await cp(kept, path.join(bundle, "tables"), { recursive: true });
  const { differences } = await verified(bundle);
  const csv = differences.filter(({ file }) => file === "tables/loss.csv");
  assert.ok(
    csv.some(({ row }) => row === "summary gateway responseP50"),
    JSON.stringify(csv),
  );
});

type Ended = { code: number; stdout: string; stderr: string };
function ztbench(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(path.join(root, "ztbench"), args, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

test("the verb says what was checked, and ends with exit code 0 or 3", async () => {
  const good = await ztbench("verify", original);
  assert.equal(good.code, 0, good.stderr);
  // Plan, manifest and, of each run, record, rows, two samples, connections and two statistics.
  assert.match(good.stdout, /^files: 44, each as SHA256SUMS lists it/);
  assert.match(good.stdout, /^requests: 6000 rows of 6 runs read$/m);
  assert.match(good.stdout, /^tables: \d+ cells of \d+ files recomputed, all as stored$/m);
  assert.match(good.stdout, /^time: \d+\.\d s$/m);
  const bundle = await copyOf();
  await edit(bundle, "tables/loss.csv", /^(summary,gateway,responseP50,ns,)\d+/m, "$11");
  const bad = await ztbench("verify", bundle, "--json");
  assert.equal(bad.code, 3, bad.stderr);
  const found = JSON.parse(bad.stdout) as { ok: boolean; checked: { tables: StoredTables } };
  assert.equal(found.ok, false);
  assert.equal(found.checked.tables.differences[0]?.row, "summary gateway responseP50");
});

test("a raw file with one byte changed ends with exit code 3 and its name, as JSON too", async () => {
  const bundle = await copyOf();
  await edit(bundle, "runs/001-b1-baseline-a/samples/server.txt", "usage_usec", "usage_usek");
  const bad = await ztbench("verify", bundle, "--json");
  assert.equal(bad.code, 3);
  assert.match(bad.stderr, /001-b1-baseline-a\/samples\/server\.txt: must have sha256/);
  const found = JSON.parse(bad.stdout) as { ok: boolean; problems: string[] };
  assert.equal(found.ok, false);
  assert.match(found.problems[0] ?? "", /samples\/server\.txt/);
});

test("cells are called after what they are in", () => {
  assert.deepEqual(cellsOf("a.json", '{"a":[{"b":1.50}],"c":"x","d":[]}'), [
    { row: "a[0]", column: "b", text: "1.5" },
    { row: "document", column: "c", text: '"x"' },
    { row: "document", column: "d", text: "[]" },
  ]);
  assert.deepEqual(cellsOf("a.csv", 'h,i\n"a,""b""",2\n').slice(2), [
    { row: 'a,"b" 2', column: "h", text: 'a,"b"' },
    { row: 'a,"b" 2', column: "i", text: "2" },
  ]);
  assert.deepEqual(
    cellsOf("a.txt", "p50  1.5 ms\np50  2").map(
      ({ row, column, text }) => `${row}/${column}/${text}`,
    ),
    ["line 1/1/p50", "line 1/2/1.5 ms", "line 2/1/p50", "line 2/2/2"],
  );
});
