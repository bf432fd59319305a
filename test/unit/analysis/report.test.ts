import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { decodeFromCompressedBase64, HistogramLogReader } from "hdr-histogram-js";
import type { Analysis } from "../../../analysis/analysis.ts";
import { numberOf } from "../../../analysis/cell.ts";
import { renderCsv } from "../../../analysis/csv.ts";
import { renderJson } from "../../../analysis/json.ts";
import { renderMarkdown } from "../../../analysis/markdown.ts";
import { analyse, report } from "../../../analysis/report.ts";
import { renderText } from "../../../analysis/text.ts";
import {
  type BundleOptions,
  makeBundle,
  normal,
  removeBundle,
  seeded,
  steadyRows,
} from "../../support/bundle.ts";
import { assertGolden } from "../../support/golden.ts";

/** The gateway costs 25 % at every quantile and 60 µs of CPU time; one of its runs is spoilt. */
const campaign: BundleOptions = {
  blocks: 4,
  labels: ["baseline", "gateway", "silent"],
  content: ({ block, label, arm }, plan) => {
    const random = seeded(block * 100 + label.length * 10 + (arm === "b" ? 1 : 0));
    const scale = Math.exp(0.01 * normal(random)) * (label === "gateway" ? 1.25 : 1);
    const rows = steadyRows(plan, () => scale * (180_000 + 200_000 * random() ** 8));
    const cpuPerRequestUs = label === "gateway" ? 160 : 100 + block;
    if (label === "silent") return { rows: rows.slice(0, 9000), cpuPerRequestUs };
    if (label === "gateway" && block === 4) {
      const failing = rows.map((row) =>
        row.seq % 100 === 0 ? { ...row, code: 503, error: "503 Service Unavailable" } : row,
      );
      return { rows: failing, cpuPerRequestUs };
    }
    return { rows, cpuPerRequestUs };
  },
};

let directory: string;
let analysis: Analysis;

before(async () => {
  directory = await makeBundle(campaign);
  analysis = await report(directory);
});
after(() => removeBundle(directory));

const golden = (name: string) => path.join(import.meta.dirname, "golden", name);

test("the four renderings are the reviewed ones", () => {
  assertGolden(golden("loss.txt"), renderText(analysis));
  assertGolden(golden("loss.md"), renderMarkdown(analysis));
  assertGolden(golden("loss.csv"), renderCsv(analysis));
  // One run of each verdict is enough to review.
  const runs = analysis.runs.filter(({ run }) => run === 1 || run === 14);
  const curves = analysis.curves.filter(({ label }) => label === "gateway");
  assertGolden(golden("loss.json"), renderJson({ ...analysis, runs, curves }));
});

test("the terminal text is at most 100 columns wide", () => {
  const lines = renderText(analysis).split("\n");
  assert.deepEqual(
    lines.filter((line) => line.length > 100),
    [],
  );
});

test("the loss that was put in is found, from complete blocks only", () => {
  const [gateway] = analysis.comparison.losses;
  assert.equal(gateway?.label, "gateway");
  assert.deepEqual(gateway.blocks, {
    complete: 3,
    dropped: [{ block: 4, lacks: "a valid run of gateway" }],
  });
  const { responseP50 } = gateway.ratios;
  assert.equal(responseP50.kind, "estimate");
  // 180.8 µs times 1.25, each sent 20 µs late.
  const expected = (1.25 * 180.8 + 20) / (180.8 + 20);
  assert.ok(responseP50.low < expected && expected < responseP50.high);
  assert.equal(responseP50.verdict, "loss");
  const { cpuPerRequest } = gateway.differences;
  assert.equal(cpuPerRequest.kind, "estimate");
  // The baseline's CPU time is 101, 102 and 103 µs in these blocks.
  assert.ok(Math.abs(cpuPerRequest.mean - 58) < 0.1, String(cpuPerRequest.mean));
});

test("a treatment that never reached the rate says so in every cell", () => {
  const silent = analysis.comparison.treatments.find(({ label }) => label === "silent");
  assert.deepEqual(silent?.metrics.responseP50, { kind: "none", reason: "rate missed" });
  const loss = analysis.comparison.losses.find(({ label }) => label === "silent");
  assert.deepEqual(loss?.ratios.responseP99, { kind: "none", reason: "rate missed" });
});

test("invalid runs are shown with the gate they failed", () => {
  const spoilt = analysis.runs.find((run) => run.label === "gateway" && run.block === 4);
  assert.equal(spoilt?.verdict, "INVALID");
  assert.match(renderText(analysis), /INVALID 015-b4-gateway-a: goodput: 9900 of 10000/);
});

test("analysing twice gives the same bytes, and tables do not count as edits", async () => {
  const again = await analyse(directory);
  assert.equal(renderJson(again), renderJson(analysis));
  assert.deepEqual((await readdir(path.join(directory, "tables"))).sort(), [
    "hlog",
    "loss.csv",
    "loss.json",
    "loss.md",
    "loss.txt",
  ]);
});

test("published quantiles can be rebuilt from the interval log", async () => {
  const log = await readFile(path.join(directory, "tables/hlog/001-b1-baseline-a.hlog"), "utf8");
  const lines = log.split("\n").filter((line) => line.startsWith("Tag=response"));
  assert.equal(lines.length, 10);
  assert.match(lines[0] ?? "", /^Tag=response,1790000000\.000,1\.000,/);
  const whole = decodeFromCompressedBase64(lines[0]?.split(",")[4] ?? "", 64);
  for (const line of lines.slice(1)) {
    whole.add(decodeFromCompressedBase64(line.split(",")[4] ?? "", 64));
  }
  const response = analysis.runs[0]?.latency?.response;
  assert.ok(response !== undefined);
  assert.equal(whole.totalCount, response.count);
  assert.equal(whole.getValueAtPercentile(50), numberOf(response.quantiles.p50));
  assert.equal(whole.getValueAtPercentile(99), numberOf(response.quantiles.p99));
});

test("a reader of interval logs finds absolute times", async () => {
  const log = await readFile(path.join(directory, "tables/hlog/001-b1-baseline-a.hlog"), "utf8");
  const reader = new HistogramLogReader(log, 64);
  const first = reader.nextIntervalHistogram();
  assert.equal(first?.startTimeStampMsec, 1_790_000_000_000);
  assert.equal(first.tag, "response");
});
