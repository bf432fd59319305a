import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { LoadPlan } from "../../../contracts/record.ts";
import { numberOf } from "../../../analysis/cell.ts";
import { measureLatency, type RunLatency } from "../../../analysis/latency.ts";
import { readOffsets } from "../../../analysis/offsets.ts";
import { renderRows, type Row, seeded, startNs } from "../../support/bundle.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-latency-"));
});
after(() => rm(directory, { recursive: true }));

function loadPlan(rateQps: number, planned: number): LoadPlan {
  return {
    schema: "ztbench/load-plan/1",
    driver: "vegeta-paced",
    arrival: "uniform",
    rateQps,
    intervalNs: Math.floor(1e9 / rateQps),
    planned,
    startNs: String(startNs),
  };
}

/** The plan of the vegeta CLI, which does not tell when it began. */
function withoutStart(plan: LoadPlan): LoadPlan {
  const entries = Object.entries(plan).filter(([key]) => key !== "startNs");
  return Object.fromEntries(entries) as LoadPlan;
}

async function measure(
  rows: readonly Row[],
  plan: LoadPlan,
  offsetsNs?: Float64Array,
): Promise<RunLatency> {
  const file = path.join(directory, "requests.csv.gz");
  await writeFile(file, renderRows(rows));
  return measureLatency({
    path: file,
    name: "requests.csv.gz",
    loadPlan: plan,
    measuredFromNs: String(startNs - 300_000_000n),
    ...(offsetsNs && { offsetsNs }),
  });
}

function assertNear(cell: RunLatency["response"]["maxNs"], expectedNs: number): void {
  const found = numberOf(cell) ?? Number.NaN;
  assert.ok(Math.abs(found - expectedNs) <= expectedNs * 1.1e-3, `${found}, not ${expectedNs}`);
}

const uniform = (count: number, intervalNs: number, row: (seq: number) => Partial<Row>): Row[] =>
  Array.from({ length: count }, (_, seq) => ({
    seq,
    sentNs: seq * intervalNs,
    latencyNs: 200_000,
    ...row(seq),
  }));

test("a constant latency is every quantile", async () => {
  const { response, service, lag } = await measure(
    uniform(20_000, 1_000_000, () => ({})),
    loadPlan(1000, 20_000),
  );
  for (const name of ["p50", "p95", "p99"] as const) assertNear(response.quantiles[name], 200_000);
  assert.equal(numberOf(response.maxNs), 200_000);
  assert.equal(numberOf(service.meanNs), 200_000);
  assert.equal(numberOf(lag.maxNs), 0);
});

test("a stall is seen by response although the blocked driver hid it from service", async () => {
  // Each 10 s the server stalls for 1 s; a driver that waits for it sends nothing meanwhile, and
  // sends all that was due at once when the stall ends.
  const stallNs = 1e9;
  const periodNs = 10e9;
  const rows = uniform(40_000, 1_000_000, (seq) => {
    const dueNs = seq * 1_000_000;
    const intoNs = dueNs % periodNs;
    return intoNs < stallNs ? { sentNs: dueNs - intoNs + stallNs, latencyNs: 0 } : { latencyNs: 0 };
  });
  const { response, service } = await measure(rows, loadPlan(1000, 40_000));
  // Response quantile q = s - (1 - q) P, where (1 - q) P < s.
  assertNear(response.quantiles.p99, stallNs - 0.01 * periodNs);
  assertNear(response.quantiles.p95, stallNs - 0.05 * periodNs);
  assert.equal(numberOf(response.quantiles.p50), 0);
  assert.equal(numberOf(service.maxNs), 0);
});

test("failed and unsent requests rank above every answer", async () => {
  const plan = loadPlan(1000, 20_000);
  const rows = uniform(20_000, 1_000_000, (seq) => (seq % 50 === 0 ? { code: 503 } : {}));
  const failing = await measure(rows, plan);
  assert.deepEqual(failing.response.quantiles.p99, { kind: "none", reason: "> timeout" });
  assertNear(failing.response.quantiles.p95, 200_000);
  assert.equal(failing.failed, 400);
  const unsent = await measure(rows.filter(({ code }) => code !== 503).slice(0, 19_000), plan);
  assert.deepEqual(unsent.response.quantiles.p99, { kind: "none", reason: "> timeout" });
  assert.equal(unsent.sent, 19_000);
});

test("fast failures do not improve any quantile", async () => {
  const plan = loadPlan(1000, 20_000);
  const rows = uniform(20_000, 1_000_000, (seq) => ({ latencyNs: 100_000 + seq }));
  const refused = rows.map((row) =>
    row.seq % 200 === 0 ? { ...row, latencyNs: 1000, code: 0, error: "refused" } : row,
  );
  const [clean, broken] = [await measure(rows, plan), await measure(refused, plan)];
  for (const name of ["p50", "p95", "p99"] as const) {
    const [good, bad] = [clean, broken].map((run) => numberOf(run.response.quantiles[name]));
    assert.ok((bad ?? 0) >= (good ?? Number.NaN), name);
  }
});

test("a quantile is told only with a hundred planned requests beyond it", async () => {
  const small = await measure(
    uniform(9_999, 1_000_000, () => ({})),
    loadPlan(1000, 9_999),
  );
  assert.deepEqual(small.response.quantiles.p99, {
    kind: "none",
    reason: "too few requests for p99",
  });
  const large = await measure(
    uniform(100_000, 100_000, () => ({})),
    loadPlan(10_000, 100_000),
  );
  assertNear(large.response.quantiles["p99.9"], 200_000);
});

test("the start of a driver that does not tell it is estimated from the first second", async () => {
  const random = seeded(3);
  const told = loadPlan(1000, 20_000);
  const silent = withoutStart(told);
  const rows = uniform(20_000, 1_000_000, (seq) => ({
    sentNs: seq * 1_000_000 + (seq === 17 ? 0 : Math.floor(random() * 1_000_000)),
  })).sort((a, b) => (a.seq % 10) - (b.seq % 10));
  const [known, estimated] = [await measure(rows, told), await measure(rows, silent)];
  assert.equal(estimated.startEstimated, true);
  assert.deepEqual({ ...estimated, startEstimated: false }, known);
});

test("the estimate is blind to a lateness that all requests share", async () => {
  const silent = withoutStart(loadPlan(1000, 20_000));
  const late = uniform(20_000, 1_000_000, (seq) => ({ sentNs: seq * 1_000_000 + 700_000 }));
  const { lag } = await measure(late, silent);
  assert.equal(numberOf(lag.maxNs), 0);
});

test("a request that seems to leave early counts as on time, its lag is kept", async () => {
  const rows = uniform(20_000, 1_000_000, (seq) =>
    seq === 5 ? { sentNs: 5_000_000 - 3_000_000 } : {},
  );
  const { lagMinNs, lag, response } = await measure(rows, loadPlan(1000, 20_000));
  assert.equal(lagMinNs, -3_000_000);
  assert.equal(numberOf(lag.minNs), 0);
  assert.equal(numberOf(response.minNs), 200_000);
});

test("a response beyond the histogram is counted, and ranks with the failures", async () => {
  const rows = uniform(20_000, 1_000_000, (seq) => (seq < 300 ? { latencyNs: 121e9 } : {}));
  const { overflow, response } = await measure(rows, loadPlan(1000, 20_000));
  assert.equal(overflow, 300);
  assert.deepEqual(response.quantiles.p99, { kind: "none", reason: "> timeout" });
});

test("a late row opens its interval anew, and all counts add up", async () => {
  const rows = uniform(60_000, 1_000_000, () => ({}));
  const [first, ...rest] = rows;
  assert.ok(first !== undefined);
  const { response } = await measure([...rest, first], loadPlan(1000, 60_000));
  assert.equal(response.count, 60_000);
});

test("offsets give the intended times of arrivals that are not uniform", async () => {
  const file = path.join(directory, "plan.offsets.csv.gz");
  const offsets = Array.from({ length: 20_000 }, (_, seq) => seq * 900_000 + (seq % 3) * 1000);
  const lines = offsets.map((offset, seq) => `${seq},${offset}\n`);
  await writeFile(file, gzipSync(`seq,offsetNs\n${lines.join("")}`));
  const offsetsNs = await readOffsets(file, "plan.offsets.csv.gz", 20_000);
  const rows = offsets.map((offset, seq) => ({ seq, sentNs: offset + 7000, latencyNs: 1000 }));
  const plan = { ...loadPlan(1000, 20_000), arrival: "poisson" as const };
  const { lag, response } = await measure(rows, plan, offsetsNs);
  assert.deepEqual([numberOf(lag.minNs), numberOf(lag.maxNs)], [7000, 7000]);
  assert.equal(numberOf(response.maxNs), 8000);
  await assert.rejects(measure(rows, plan), /arrival is poisson, but no offsets/);
});

const badOffsets: readonly (readonly [string, string, RegExp])[] = [
  ["another header", "seq\n0,1\n", /offsets:1: header: must be seq,offsetNs/],
  ["a gap", "seq,offsetNs\n0,1\n2,5\n", /offsets:3: seq: must be 1 of 2, found "2"/],
  ["time going back", "seq,offsetNs\n0,5\n1,4\n", /offsets:3: offsetNs: must be due not before 5/],
  ["too few rows", "seq,offsetNs\n0,5\n", /offsets:3: rows: must be 2, found "1"/],
  ["too many rows", "seq,offsetNs\n0,5\n1,5\n2,5\n", /offsets:4: seq: must be 2 of 2, found "2"/],
  [
    "an endless line",
    "seq,offsetNs\n" + "1".repeat(1e6),
    /offsets:\d: size: must be 104 bytes at most/,
  ],
  [
    "a compressed bomb",
    "seq,offsetNs\n" + "\n".repeat(1e8),
    /offsets:\d: size: must be 104 bytes at most/,
  ],
];
for (const [what, text, message] of badOffsets) {
  test(`offsets with ${what} are refused`, async () => {
    const file = path.join(directory, "bad.gz");
    await writeFile(file, gzipSync(text));
    await assert.rejects(readOffsets(file, "offsets", 2), message);
  });
}

test("a cut-off offsets file is refused", async () => {
  const file = path.join(directory, "cut.gz");
  await writeFile(file, gzipSync("seq,offsetNs\n0,5\n1,6\n").subarray(0, 25));
  await assert.rejects(readOffsets(file, "offsets", 2), /^Failure: offsets:\d+: /);
});
