import assert from "node:assert/strict";
import { appendFile, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Failure } from "../../../contracts/failure.ts";
import { type Manifest, manifestSchema } from "../../../contracts/manifest.ts";
import { openBundle } from "../../../analysis/bundle.ts";
import { analyse } from "../../../analysis/report.ts";
import { makeBundle, removeBundle, sealBundle, startNs, steadyRows } from "../../support/bundle.ts";

const run = "runs/002-b1-gateway-a";
let directory: string;
const at = (file: string) => path.join(directory, file);

beforeEach(async () => {
  directory = await makeBundle({
    blocks: 1,
    rateQps: 20,
    durationSeconds: 2,
    content: (_, plan) => ({ rows: steadyRows(plan, () => 1000), cpuPerRequestUs: 100 }),
  });
});
afterEach(() => removeBundle(directory));

async function edit(file: string, change: (text: string) => string): Promise<void> {
  await writeFile(at(file), change(await readFile(at(file), "utf8")));
}

async function refuses(message: RegExp): Promise<void> {
  await assert.rejects(openBundle(directory), (error: unknown) => {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.code, "document");
    assert.match(error.message, message);
    return true;
  });
}

test("a whole bundle opens, its runs in order of execution", async () => {
  const bundle = await openBundle(directory);
  assert.deepEqual(
    bundle.runs.map(({ name }) => name),
    ["001-b1-baseline-a", "002-b1-gateway-a", "003-b1-baseline-b"],
  );
  assert.equal(bundle.plan.name, "synthetic");
  assert.ok(bundle.runs[0]?.files.includes("samples/client.txt"));
});

test("an edited byte is found, with file and line", async () => {
  const bytes = await readFile(at(`${run}/requests.csv.gz`));
  bytes[20] = (bytes[20] ?? 0) ^ 1;
  await writeFile(at(`${run}/requests.csv.gz`), bytes);
  await refuses(/^SHA256SUMS:\d+: runs\/002-b1-gateway-a\/requests\.csv\.gz: must have sha256/);
});

test("a missing file is found", async () => {
  await rm(at(`${run}/samples/client.txt`));
  await refuses(/^SHA256SUMS:\d+: runs\/.*client\.txt: is listed, but not in the bundle$/);
});

test("an extra file is found", async () => {
  await writeFile(at(`${run}/notes.txt`), "x");
  await refuses(/^runs\/002-b1-gateway-a\/notes\.txt: is in the bundle, but not in SHA256SUMS$/);
});

test("a wrong hash in the list is found, and every problem is told at once", async () => {
  await edit("SHA256SUMS", (text) => text.replace(/^[0-9a-f]{64}/, "0".repeat(64)));
  await writeFile(at("extra"), "x");
  await refuses(/^extra: is in the bundle.*\nSHA256SUMS:1: manifest\.json: must have sha256 0{64}/);
});

test("a path that leads out of the bundle is refused", async () => {
  for (const outside of ["../passwd", "/etc/passwd", "runs/../plan.yaml", "./plan.yaml"]) {
    await sealBundle(directory);
    await appendFile(at("SHA256SUMS"), `${"0".repeat(64)}  ${outside}\n`);
    await refuses(/^SHA256SUMS:\d+: .*: must be a path inside the bundle/);
  }
});

test("a symbolic link is refused, even in place of what analysis writes", async () => {
  await symlink("/etc", at("tables"));
  await refuses(/^tables: must be a plain file or a directory, found a symbolic link$/);
});

test("a line that is no checksum and a path listed twice are refused", async () => {
  await edit("SHA256SUMS", (text) => `${text}nonsense\n${text.split("\n")[0] ?? ""}\n`);
  await refuses(
    /^SHA256SUMS:24: must be a sha256, .*found "nonsense"\n.*already listed in line 1$/,
  );
});

test("a directory that is no bundle, and none at all, are refused", async () => {
  await rm(at("SHA256SUMS"));
  await refuses(/^bundle: has no SHA256SUMS/);
  await assert.rejects(openBundle(at("nowhere")), /^Failure: bundle: must be a directory/);
});

test("a document from the future is refused with its position", async () => {
  await edit(`${run}/record.json`, (text) => text.replace("ztbench/record/1", "ztbench/record/9"));
  await sealBundle(directory);
  await refuses(
    /^runs\/002-b1-gateway-a\/record\.json:2:13: schema: made by a newer ztbench, ztbench\/record\/9, this one reads ztbench\/record\/1 or ztbench\/failed-run\/1$/,
  );
});

test("a plan that is not the one of the manifest is refused", async () => {
  await edit("plan.yaml", (text) => text.replace("seed: 7", "seed: 8"));
  await sealBundle(directory);
  await refuses(/^plan\.yaml: must have the manifest's planSha256/);
});

test("a record in the wrong directory and an unplanned one are refused", async () => {
  await rename(at(run), at("runs/009-b1-gateway-a"));
  await sealBundle(directory);
  await refuses(/record\.json: belongs to 002-b1-gateway-a, found in 009-b1-gateway-a$/);
  await edit("runs/009-b1-gateway-a/record.json", (text) =>
    text.replace('"run": 2', '"run": 9').replace('"block": 1', '"block": 4'),
  );
  await rename(at("runs/009-b1-gateway-a"), at("runs/009-b4-gateway-a"));
  await sealBundle(directory);
  await refuses(/record\.json: must be planned in manifest\.json, found block 4, label gateway/);
});

test("what a crash left of the run in progress is no part of the bundle", async () => {
  await mkdir(at("runs/.partial-004-b2-gateway-a"));
  await writeFile(at("runs/.partial-004-b2-gateway-a/requests.csv.gz"), "half");
  assert.equal((await openBundle(directory)).runs.length, 3);
});

test("a run that broke off is kept, shown with its reason, and used in no number", async () => {
  const record = JSON.parse(await readFile(at(`${run}/record.json`), "utf8")) as object;
  const kept = [
    ...["run", "block", "position", "label", "arm", "treatment", "load"],
    ...["startedAt", "finishedAt", "phaseSeconds", "files"],
  ];
  const failed = {
    ...Object.fromEntries(Object.entries(record).filter(([key]) => kept.includes(key))),
    schema: "ztbench/failed-run/1",
    failure: "the gateway did not become ready",
  };
  await writeFile(at(`${run}/record.json`), JSON.stringify(failed));
  await sealBundle(directory);
  const { runs, comparison } = await analyse(directory);
  assert.equal(runs[1]?.verdict, "INVALID");
  assert.equal(runs[1].gates[0]?.measured, "the gateway did not become ready");
  assert.deepEqual(comparison.losses[0]?.ratios.responseP50, {
    kind: "none",
    reason: "no valid run",
  });
});

test("a planned run that is not there is named", async () => {
  await rm(at(run), { recursive: true });
  await sealBundle(directory);
  const { notRun, comparison } = await analyse(directory);
  assert.deepEqual(notRun, ["b1-gateway-a"]);
  assert.deepEqual(comparison.losses[0]?.ratios.responseP50, { kind: "none", reason: "not run" });
});

const recordCases: [name: string, from: RegExp, to: string, expected: RegExp][] = [
  [
    "offsets outside of the bundle",
    /("loadPlan": \{)/,
    '$1 "offsetsFile": "../../../plan.yaml",',
    /offsetsFile: must be the name of a file, without a directory, found "\.\.\/\.\.\/\.\./,
  ],
  [
    "offsets that are not there",
    /("loadPlan": \{)/,
    '$1 "offsetsFile": "none.gz",',
    /loadPlan\.offsetsFile: must be a file of the run, found none\.gz$/,
  ],
  [
    "more planned requests than memory holds",
    /"planned": \d+/,
    '"planned": 9007199254740991',
    /loadPlan\.planned: too big/,
  ],
  [
    "an end before its beginning",
    /"measuredToNs": "\d+"/,
    '"measuredToNs": "1000000000000000"',
    /measuredToNs: must be later than measuredFromNs \d+, found 1000000000000000$/,
  ],
  [
    "another topology deployed than treated",
    /("deployment": \{[^}]*"topology": )"gateway"/,
    '$1"jwt"',
    /deployment\.topology: must be gateway as treated, found jwt$/,
  ],
  [
    "the hash of other requests",
    /"files": \{\}/,
    `"files": { "requests.csv.gz": "${"0".repeat(64)}" }`,
    /files: requests\.csv\.gz must have sha256 0{64}, found [0-9a-f]{64}$/,
  ],
];
for (const [name, from, to, expected] of recordCases) {
  test(`a record with ${name} is refused, though its checksum is right`, async () => {
    await edit(`${run}/record.json`, (text) => {
      assert.match(text, from);
      return text.replace(from, to);
    });
    await sealBundle(directory);
    await refuses(expected);
  });
}

test("a manifest with runs cut out, doubled, or of another seed is refused", async () => {
  const original = await readFile(at("manifest.json"), "utf8");
  const change = async (edited: (manifest: Manifest) => object) => {
    const manifest = manifestSchema.parse(JSON.parse(original));
    await writeFile(at("manifest.json"), JSON.stringify({ ...manifest, ...edited(manifest) }));
    await sealBundle(directory);
  };
  await change(({ order }) => ({ order: order.slice(1) }));
  await refuses(/^manifest\.json: order: must be the 3 runs of plan\.yaml.*baseline-a is missing$/);
  await change(({ order }) => ({ order: [...order, ...order] }));
  await refuses(/order: must be the 3 runs of plan\.yaml.*baseline-a comes twice or was not/);
  await change(() => ({ seed: 99 }));
  await refuses(/^manifest\.json: seed: must be 7 as planned, found 99$/);
});

test("files in the place of what analysis writes are refused, not stumbled over", async () => {
  await writeFile(at("tables"), "");
  await mkdir(at("report.html"));
  await refuses(/report\.html: must be a plain file.*\ntables: must be a plain directory, which/);
});

test("documents larger than any of ours are refused before they are read", async () => {
  await edit("plan.yaml", (text) => `${text}# ${"x".repeat(5 * 1024 * 1024)}\n`);
  await sealBundle(directory);
  await refuses(/^plan\.yaml: must have 4194304 bytes at most, found \d+$/);
});

/** Requests of one run, put in the place of its own, with a checksum that is right. */
async function replaceRequests(bytes: Buffer): Promise<void> {
  await writeFile(at(`${run}/requests.csv.gz`), bytes);
  await sealBundle(directory);
}

async function refusesAnalysis(message: RegExp): Promise<void> {
  await assert.rejects(analyse(directory), (error: unknown) => {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.code, "document");
    assert.match(error.message, message);
    return true;
  });
}

const header = "seq,timestampNs,latencyNs,code,error\n";

test("compressed bombs are refused long before they are unpacked", async () => {
  const [blanks, digits] = [Buffer.alloc(2e8, "\n"), Buffer.alloc(2e8, "1")];
  for (const [bomb, message] of [
    [blanks, /requests\.csv\.gz:\d+: (size|header|seq): must be/],
    [digits, /requests\.csv\.gz:\d+: (size|header): must be/],
    [Buffer.concat([Buffer.from(header), blanks]), /requests\.csv\.gz:\d+: (size|seq): must be/],
  ] as const) {
    await replaceRequests(gzipSync(bomb, { level: 1 }));
    const before = process.memoryUsage().rss;
    const began = performance.now();
    await refusesAnalysis(message);
    assert.ok(process.memoryUsage().rss - before < 150e6, "memory");
    assert.ok(performance.now() - began < 20_000, "time");
  }
});

test("rows without end are refused at the first that was not planned", async () => {
  const rows = Array.from({ length: 200_000 }, (_, seq) => `${seq},${startNs},1,200,\n`);
  await replaceRequests(gzipSync(header + rows.join("")));
  await refusesAnalysis(
    /requests\.csv\.gz:\d+: (size: must be|seq: must be a number below the 40)/,
  );
});

test("a raw text of ten million lines is read in bounded memory", async () => {
  const head = `### ${startNs} unit x cpu.stat\n`;
  await writeFile(at(`${run}/samples/server.txt`), head + "usage_usec 1\n".repeat(1e7));
  await sealBundle(directory);
  const before = process.memoryUsage().rss;
  await analyse(directory);
  assert.ok(process.memoryUsage().rss - before < 1.2e9, "memory");
  await writeFile(at(`${run}/samples/server.txt`), "x\n".repeat(1e7));
  await sealBundle(directory);
  await refusesAnalysis(/samples\/server\.txt:1: must be "### <nanoseconds/);
});

test("a negative latency and a number that comes twice are refused with file and line", async () => {
  await replaceRequests(gzipSync(`${header}0,${startNs},5,200,\n1,${startNs},-5,200,\n`));
  await refusesAnalysis(
    /^runs\/002-b1-gateway-a\/requests\.csv\.gz:3: latencyNs: .*found "-5,200,"$/,
  );
  await replaceRequests(gzipSync(`${header}0,${startNs},5,200,\n0,${startNs},5,200,\n`));
  await refusesAnalysis(/requests\.csv\.gz:3: seq: must be each number once, found "0 again"$/);
});
