import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import type { Manifest } from "../../../contracts/manifest.ts";
import { Bundle, type Draft } from "../../../loadgen/bundle.ts";
import { parseSums, renderSums, sha256Text } from "../../../loadgen/bundle-files.ts";
import { orderRuns, type PlannedRun } from "../../../loadgen/order.ts";
import { examplePlan } from "./example.ts";

const plan = examplePlan(["baseline", "jwt"]);
const planText = "schema: ztbench/plan/1\n";
const order = orderRuns(plan);
const [first, second] = order;
assert.ok(first && second);

const manifest: Manifest = {
  schema: "ztbench/manifest/1",
  campaign: "example",
  createdAt: "2026-01-01T00:00:00.000Z",
  planSha256: sha256Text(planText),
  seed: 1,
  versionSet: "lab",
  programs: [],
  commit: "0".repeat(40),
  dirty: false,
  testbed: { name: "example", class: "lab", scheduling: "rr" },
  facts: {},
  order,
  warnings: [],
};

const draftOf = (run: PlannedRun): Draft => {
  const treatment = plan.treatments.find(({ label }) => label === run.label);
  assert.ok(treatment);
  return {
    schema: "ztbench/failed-run/1",
    ...run,
    treatment,
    load: plan.load,
    startedAt: "2026-01-01T00:00:00.000Z",
    finishedAt: "2026-01-01T00:00:01.000Z",
    phaseSeconds: {},
    failure: "a test",
  };
};

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "ztbench-test-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function addRun(bundle: Bundle, run: PlannedRun): Promise<void> {
  const partial = await bundle.beginRun(run);
  await writeFile(join(partial, "requests.csv.gz"), `rows of ${run.run}`);
  await bundle.finishRun(run, draftOf(run));
}

/** As `sha256sum --check` sees it: every listed file is there and is the one listed. */
const check = () =>
  execFileSync("sha256sum", ["--check", "--strict", "--quiet", "SHA256SUMS"], { cwd: directory });

test("has plan and manifest with their sums on disk before the first run", async () => {
  await Bundle.create(directory, planText, manifest);
  assert.deepEqual((await readdir(directory)).sort(), [
    "SHA256SUMS",
    "manifest.json",
    "plan.yaml",
    "runs",
  ]);
  assert.equal(await readFile(join(directory, "plan.yaml"), "utf8"), planText);
  check();
});

test("is whole after every run, as sha256sum sees it", async () => {
  const bundle = await Bundle.create(directory, planText, manifest);
  for (const run of [first, second]) {
    await addRun(bundle, run);
    check();
  }
  const name = `001-b1-${first.label}-${first.arm}`;
  assert.deepEqual((await readdir(join(directory, "runs", name))).sort(), [
    "record.json",
    "requests.csv.gz",
  ]);
  const sums = await readFile(join(directory, "SHA256SUMS"), "utf8");
  assert.match(sums, new RegExp(`  runs/${name}/record.json\n`));
});

test("loses the run in progress in a crash, and nothing else", async () => {
  const bundle = await Bundle.create(directory, planText, manifest);
  await addRun(bundle, first);
  await writeFile(join(await bundle.beginRun(second), "requests.csv.gz"), "half a");
  await writeFile(join(directory, "manifest.json.part"), "half a");
  const resumed = await Bundle.resume(directory, planText);
  assert.deepEqual(
    resumed.attempts.map(({ label, arm }) => [label, arm]),
    [[first.label, first.arm]],
  );
  assert.deepEqual(await readdir(join(directory, "runs")), [`001-b1-${first.label}-${first.arm}`]);
  assert.ok(!(await readdir(directory)).includes("manifest.json.part"));
  await addRun(resumed, second);
  check();
});

test("takes in a run that was finished but not yet listed when the crash came", async () => {
  const bundle = await Bundle.create(directory, planText, manifest);
  const before = await readFile(join(directory, "SHA256SUMS"), "utf8");
  await addRun(bundle, first);
  const after = await readFile(join(directory, "SHA256SUMS"), "utf8");
  await writeFile(join(directory, "SHA256SUMS"), before);
  assert.equal((await Bundle.resume(directory, planText)).attempts.length, 1);
  assert.equal(await readFile(join(directory, "SHA256SUMS"), "utf8"), after);
});

const damages: readonly [string, (run: string) => Promise<void>, RegExp][] = [
  [
    "a changed file",
    (run) => writeFile(join(run, "requests.csv.gz"), "other"),
    /requests\.csv\.gz: changed, sha256 [0-9a-f]{64} found, [0-9a-f]{64} recorded/,
  ],
  ["a missing file", (run) => rm(join(run, "requests.csv.gz")), /requests\.csv\.gz: missing/],
  [
    "a file that was added",
    (run) => writeFile(join(run, "more.txt"), "more"),
    /more\.txt: not the file that record\.json names/,
  ],
  [
    "a broken list",
    () => writeFile(join(directory, "SHA256SUMS"), "nonsense\n"),
    /SHA256SUMS:1:1: not a line/,
  ],
];

for (const [name, damage, says] of damages) {
  test(`refuses to go on with a bundle that has ${name}`, async () => {
    const bundle = await Bundle.create(directory, planText, manifest);
    await addRun(bundle, first);
    await damage(join(directory, "runs", `001-b1-${first.label}-${first.arm}`));
    await assert.rejects(
      Bundle.resume(directory, planText),
      (error: unknown) =>
        error instanceof Failure && error.code === "document" && says.test(error.message),
    );
  });
}

test("adds warnings to the manifest, each once", async () => {
  const bundle = await Bundle.create(directory, planText, manifest);
  await bundle.warn(["a", "b"]);
  await bundle.warn(["b", "c"]);
  const resumed = await Bundle.resume(directory, planText);
  assert.deepEqual(resumed.manifest.warnings, ["a", "b", "c"]);
});

test("reads the sums that it writes", () => {
  const sums = new Map([
    ["b c", "1".repeat(64)],
    ["a", "0".repeat(64)],
  ]);
  const text = renderSums(sums);
  assert.equal(text, `${"0".repeat(64)}  a\n${"1".repeat(64)}  b c\n`);
  assert.deepEqual([...parseSums(text).sums].sort(), [...sums].sort());
});
