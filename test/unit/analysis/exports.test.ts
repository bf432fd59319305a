import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import type { Analysis } from "../../../analysis/analysis.ts";
import { numberOf } from "../../../analysis/cell.ts";
import { writerInto } from "../../../analysis/derived.ts";
import { renderBenchstat } from "../../../analysis/exports/benchstat.ts";
import { takeExports } from "../../../analysis/exports/exports.ts";
import { renderJunit } from "../../../analysis/exports/junit.ts";
import { renderOpenMetrics } from "../../../analysis/exports/openmetrics.ts";
import { renderSummary } from "../../../analysis/exports/summary.ts";
import { analyse } from "../../../analysis/report.ts";
import { findGo, goEnvironment } from "../../../tools/toolchain.ts";
import { versions } from "../../../tools/versions.ts";
import { makeBundle, normal, removeBundle, seeded, steadyRows } from "../../support/bundle.ts";
import { assertGolden } from "../../support/golden.ts";
import { parseOpenMetrics } from "../../support/openmetrics.ts";
import { elementsOf, parseXml } from "../../support/xml.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const golden = (name: string) => path.join(import.meta.dirname, "golden", name);

let bundle: string;
let directory: string;
let analysis: Analysis;

/** Eight blocks; jwt-1000 costs 40 %, and its last run answers every hundredth request with 503. */
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-exports-"));
  bundle = await makeBundle({
    blocks: 8,
    labels: ["baseline", "jwt-1000"],
    content: ({ block, label, arm }, plan) => {
      const random = seeded(block * 100 + label.length * 10 + (arm === "b" ? 1 : 0));
      const scale = Math.exp(0.01 * normal(random)) * (label === "jwt-1000" ? 1.4 : 1);
      const rows = steadyRows(plan, () => scale * (180_000 + 200_000 * random() ** 8));
      const spoilt = label === "jwt-1000" && block === 8;
      return {
        rows: spoilt
          ? rows.map((row) =>
              row.seq % 100 === 0 ? { ...row, code: 503, error: '503 "<&>" Unavailable' } : row,
            )
          : rows,
        cpuPerRequestUs: label === "jwt-1000" ? 150 : 100 + block / 10,
      };
    },
  });
  const whole = await analyse(bundle);
  analysis = { ...whole, notRun: ["b9-jwt-1000-a"] };
});
after(async () => {
  await removeBundle(bundle);
  await rm(directory, { recursive: true });
});

test("all exports are written beside the tables, and are the reviewed ones", async () => {
  await takeExports(analysis, writerInto(directory));
  const tables = path.join(directory, "tables");
  const files = (await readdir(tables)).sort();
  assert.deepEqual(files, ["benchstat.txt", "junit.xml", "metrics.txt", "summary.md"]);
  for (const file of files) {
    assertGolden(golden(file), await readFile(path.join(tables, file), "utf8"));
  }
});

test("each valid run is one benchmark line, an invalid one is only named", () => {
  const lines = renderBenchstat(analysis).split("\n");
  const runs = lines.filter((line) => line.startsWith("Benchmark"));
  assert.equal(runs.length, 23);
  for (const line of runs) {
    assert.match(line, /^BenchmarkZtbench\/treatment=\S+\/arm=[ab]\t\d+(\t[\d.e+-]+ \S+)+$/);
  }
  assert.deepEqual(
    lines.filter((line) => line.startsWith("#")),
    ["# 023-b8-jwt-1000-a is left out, it is INVALID"],
  );
  const first = analysis.runs[0]?.latency?.response.quantiles.p50;
  assert.ok(first !== undefined);
  assert.match(runs[0] ?? "", new RegExp(`\\t${numberOf(first)} p50-ns\\t`));
});

test("the baseline comes first, whatever the order of execution", () => {
  const backwards = { ...analysis, runs: analysis.runs.toReversed() };
  const labels = [...renderBenchstat(backwards).matchAll(/^Benchmark\S+treatment=([^/]+)/gm)];
  assert.deepEqual([...new Set(labels.map((match) => match[1]))], ["baseline", "jwt-1000"]);
});

/** The real one, built with its locked sources. */
async function benchstat(...argv: readonly string[]): Promise<string> {
  const go = await findGo();
  const cwd = path.join(root, versions.benchstat.origin.directory);
  const spawn = $({ quiet: true, nothrow: true, cwd, env: goEnvironment(), timeout: "300s" });
  const done = await spawn`${go.command} run golang.org/x/perf/cmd/benchstat ${argv}`;
  assert.equal(done.exitCode, 0, done.stderr);
  // Lines that it cannot read are told by file and line.
  assert.doesNotMatch(done.stderr, /benchstat\.txt/);
  return done.stdout;
}

test("benchstat finds the loss between treatments that was put in", async () => {
  const file = path.join(directory, "tables", "benchstat.txt");
  await takeExports(analysis, writerInto(directory));
  const options = ["-format", "csv", "-col", "/treatment", "-row", ".name", "-ignore", "/arm"];
  const text = await benchstat(...options, file);
  const table = (unit: string) => {
    const rows = text.split("\n").map((line) => line.split(","));
    const head = rows.findIndex((row) => row[1] === unit);
    assert.ok(head > 0, `${unit} in ${text}`);
    return { columns: rows[head - 1], row: rows[head + 1] };
  };
  const { columns, row } = table("p50-sec");
  assert.deepEqual([columns?.[1], columns?.[3]], ["baseline", "jwt-1000"]);
  assert.ok(Math.abs(Number(row?.[1]) - 200.8e-6) < 5e-6, `seconds, found ${row?.[1] ?? ""}`);
  // 180.8 µs times 1.4, each sent 20 µs late.
  const expected = 100 * ((1.4 * 180.8 + 20) / 200.8 - 1);
  assert.ok(Math.abs(Number.parseFloat(row?.[5] ?? "") - expected) < 2, row?.join(" "));
  assert.match(row?.[6] ?? "", /^p=0\.000 n=16\+7$/);
  assert.ok(Math.abs(Number(table("cpu-sec/op").row?.[3]) - 150e-6) < 1e-9);
});

test("JUnit is well-formed, and counts what it holds", () => {
  const suites = parseXml(renderJunit(analysis));
  const cases = elementsOf(suites, "testcase");
  const failures = elementsOf(suites, "failure");
  const skipped = elementsOf(suites, "skipped");
  assert.deepEqual([cases.length, failures.length, skipped.length], [25, 1, 1]);
  for (const suite of [suites, ...elementsOf(suites, "testsuite")]) {
    const { tests, failures: failed, skipped: left } = suite.attributes;
    assert.deepEqual([tests, failed, left], ["25", "1", "1"]);
  }
  const { type, message } = failures[0]?.attributes ?? {};
  assert.equal(type, "goodput");
  assert.match(message ?? "", /^goodput: 9900 of 10000.*, wanted >= 99/);
  const [failed] = cases.filter((c) => elementsOf(c, "failure").length > 0);
  assert.equal(failed?.attributes["name"], "023-b8-jwt-1000-a");
});

test("an invalid run that was repeated with success is skipped, not failed", () => {
  const spoilt = analysis.runs.find(({ verdict }) => verdict === "INVALID");
  const valid = analysis.runs.find(({ label }) => label === "jwt-1000");
  assert.ok(spoilt && valid);
  const repeat = { ...valid, run: 25, block: spoilt.block, name: "025-b8-jwt-1000-a" };
  const suites = parseXml(renderJunit({ ...analysis, runs: [...analysis.runs, repeat] }));
  assert.equal(elementsOf(suites, "failure").length, 0);
  const [skipped] = elementsOf(suites, "skipped");
  assert.match(skipped?.attributes["message"] ?? "", /^repeated as 025-b8-jwt-1000-a: goodput: 99/);
  assert.deepEqual([suites.attributes["failures"], suites.attributes["skipped"]], ["0", "2"]);
});

test("whatever a record says cannot break the XML", () => {
  const hostile = '</testcase> & "x" \u0000\u001b[31m <![CDATA[';
  const [first, ...rest] = analysis.runs;
  assert.ok(first);
  const gates = [
    {
      number: "G0" as const,
      id: "completed" as const,
      outcome: "invalid" as const,
      measured: hostile,
      threshold: "",
    },
  ];
  const runs = [{ ...first, verdict: "INVALID" as const, gates }, ...rest];
  const suites = parseXml(renderJunit({ ...analysis, runs }));
  const [failure] = elementsOf(suites, "failure");
  const shown = hostile.replaceAll("\u0000", "\ufffd").replaceAll("\u001b", "\ufffd");
  assert.ok(failure?.attributes["message"]?.includes(shown), failure?.attributes["message"]);
});

test("a run that is warned about passes, and its warning is printed", () => {
  const [first, ...rest] = analysis.runs;
  assert.ok(first);
  const gates = [
    {
      number: "G3" as const,
      id: "lag" as const,
      outcome: "warn" as const,
      measured: "p99 2 ms",
      threshold: "p99 <= 1 ms",
    },
    {
      number: "G10" as const,
      id: "restarts" as const,
      outcome: "unavailable" as const,
      measured: "no",
      threshold: "none",
    },
  ];
  const runs = [{ ...first, verdict: "WARN" as const, gates }, ...rest];
  const [warned] = elementsOf(parseXml(renderJunit({ ...analysis, runs })), "testcase");
  assert.ok(warned);
  assert.equal(elementsOf(warned, "failure").length, 0);
  assert.equal(
    elementsOf(warned, "system-out")[0]?.text,
    "warning: lag: p99 2 ms, wanted p99 <= 1 ms\nnot judged: restarts: no",
  );
});

test("OpenMetrics keeps its grammar, in base units", () => {
  const metrics = parseOpenMetrics(renderOpenMetrics(analysis));
  const find = (family: string, labels: Record<string, string>) =>
    metrics.filter(
      (m) =>
        m.family === family &&
        Object.entries(labels).every(([key, wanted]) => m.labels[key] === wanted),
    );
  const [p50] = find("ztbench_response_seconds", { treatment: "baseline", quantile: "0.5" });
  assert.ok(p50 && Math.abs(p50.value - 200.8e-6) < 5e-6, JSON.stringify(p50));
  assert.equal(p50.labels["rate_qps"], "1000");
  const [cpu] = find("ztbench_cpu_per_request_seconds", { treatment: "jwt-1000" });
  assert.equal(cpu?.value, 150e-6);
  const [loss] = find("ztbench_loss_ratio", { metric: "cpu_per_request", bound: "estimate" });
  assert.ok(loss && Math.abs(loss.value - 0.494) < 0.005, JSON.stringify(loss));
  const [invalid] = find("ztbench_runs", { treatment: "jwt-1000", verdict: "invalid" });
  assert.equal(invalid?.value, 1);
  // Ten seconds at 1000/s are too few for p99.9: there is no sample rather than a wrong one.
  assert.equal(find("ztbench_response_seconds", { quantile: "0.999" }).length, 0);
  assert.equal(metrics[0]?.labels["comparable_to_bare_metal"], "no");
});

test("labels with quotes, backslashes and line feeds come back as they were", () => {
  const plan = 'a "b" \\ c\nd';
  const text = renderOpenMetrics({ ...analysis, stamp: { ...analysis.stamp, plan } });
  assert.equal(parseOpenMetrics(text)[0]?.labels["plan"], plan);
});

test("the summary has verdict, A/A, stamp and at most ten of the runs left out", () => {
  const summary = renderSummary(analysis);
  assert.match(summary, /^\| jwt-1000 \| \+36 % .* \| loss \|$/m);
  assert.match(summary, /^\| A\/A baseline \|.*\| equivalent \|$/m);
  assert.match(summary, /lab: not comparable to bare metal/);
  assert.match(summary, /INVALID 023-b8-jwt-1000-a: goodput/);
  const notRun = Array.from({ length: 30 }, (_, index) => `b${index + 9}-jwt-1000-a`);
  const long = renderSummary({ ...analysis, notRun });
  assert.match(long, /^- and 21 more, see loss\.md$/m);
  assert.ok(long.split("\n").length < 50);
});

test("a bundle of one block with invalid runs only exports no number", async () => {
  const spoilt = await makeBundle({
    blocks: 1,
    durationSeconds: 2,
    content: (_, plan) => ({
      rows: steadyRows(plan, () => 200_000).map((row) => ({ ...row, code: 503 })),
      cpuPerRequestUs: 100,
    }),
  });
  try {
    const invalid = await analyse(spoilt);
    assert.doesNotMatch(renderBenchstat(invalid), /^Benchmark/m);
    const families = new Set(parseOpenMetrics(renderOpenMetrics(invalid)).map((m) => m.family));
    assert.deepEqual([...families], ["ztbench_campaign", "ztbench_runs"]);
    assert.equal(elementsOf(parseXml(renderJunit(invalid)), "failure").length, 3);
    const summary = renderSummary(invalid);
    assert.match(summary, /^\| gateway \| - \(1\) \| - \(1\) \| - \(1\) \| - \|$/m);
    assert.match(summary, /^- \(1\) no valid run$/m);
  } finally {
    await removeBundle(spoilt);
  }
});

test("one block gives estimates without bounds, and no verdict but inconclusive", async () => {
  const single = await makeBundle({
    blocks: 1,
    content: (_, plan) => ({ rows: steadyRows(plan, () => 200_000), cpuPerRequestUs: 100 }),
  });
  try {
    const one = await analyse(single);
    const losses = parseOpenMetrics(renderOpenMetrics(one)).filter(
      ({ family }) => family === "ztbench_loss_ratio",
    );
    assert.equal(losses.length, 3);
    assert.deepEqual([...new Set(losses.map(({ labels }) => labels["bound"]))], ["estimate"]);
    assert.match(renderSummary(one), /^\| gateway \| .* \| inconclusive \(one block\) \|$/m);
  } finally {
    await removeBundle(single);
  }
});
