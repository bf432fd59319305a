import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Analysis } from "../../../analysis/analysis.ts";
import { value } from "../../../analysis/cell.ts";
import { readClaims } from "../../../analysis/claims-files.ts";
import {
  renderClaimsJson,
  renderClaimsMarkdown,
  renderClaimsText,
} from "../../../analysis/claims-table.ts";
import { type ClaimRow, compareClaims } from "../../../analysis/claims.ts";
import { analyse } from "../../../analysis/report.ts";
import { renderText } from "../../../analysis/text.ts";
import type { Claims } from "../../../contracts/claims.ts";
import { Failure } from "../../../contracts/failure.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";
import { assertGolden } from "../../support/golden.ts";

const claimsDirectory = path.resolve(import.meta.dirname, "../../../claims");
const golden = (name: string) => path.join(import.meta.dirname, "golden", name);

/** Two rates, each with a baseline of its own; one topology by the other driver. */
function editPlan(plan: Plan): Plan {
  const common = { driver: "vegeta" as const };
  return planSchema.parse({
    ...plan,
    baseline: "base-1k",
    treatments: [
      { label: "base-1k", topology: "baseline", ...common },
      { label: "base-5k", topology: "baseline", rateQps: 5000, ...common },
      { label: "jwt-1k", topology: "jwt", ...common },
      { label: "jwt-5k", topology: "jwt", rateQps: 5000, baseline: "base-5k", ...common },
      { label: "gateway-1k", topology: "gateway" },
    ],
  });
}

let directory: string;
let analysis: Analysis;
let documents: readonly Claims[];

before(async () => {
  documents = await readClaims(claimsDirectory);
  directory = await makeBundle({
    blocks: 2,
    editPlan,
    content: ({ block, label }, plan) => {
      const rateQps = label.endsWith("5k") ? 5000 : 1000;
      const scale = (label.startsWith("base") ? 1 : 1.5) * (1 + block / 100);
      const at = { ...plan, load: { ...plan.load, rateQps } };
      // The CLI sends a millisecond late; published figures do not count that.
      const rows = steadyRows(at, (seq) => scale * (seq % 50 === 0 ? 2e6 : 1e6), 1e6);
      return { rows, cpuPerRequestUs: 100 };
    },
  });
  analysis = await analyse(directory);
});
after(() => removeBundle(directory));

function rowOf(claim: string, from: Analysis = analysis): ClaimRow {
  const row = compareClaims(documents, from).rows.find((candidate) => candidate.claim === claim);
  assert.ok(row, claim);
  return row;
}

/** The same runs, as if made on metal with the articles' versions. */
function onMetal(versionSet = "era"): Analysis {
  return { ...analysis, stamp: { ...analysis.stamp, testbedClass: "metal", versionSet } };
}

test("each treatment is compared with the baseline of its own rate", () => {
  const { losses, furtherNoise, treatments } = analysis.comparison;
  assert.deepEqual(
    losses.map(({ label, blocks }) => [label, blocks.complete]),
    [
      ["jwt-1k", 2],
      ["jwt-5k", 2],
      ["gateway-1k", 2],
    ],
  );
  for (const { ratios } of losses) {
    assert.equal(ratios.responseP99.kind, "estimate");
    // 1.5 times the service, the lag being the same.
    assert.ok(Math.abs(ratios.responseP99.ratio - 4 / 3) < 0.01, String(ratios.responseP99.ratio));
  }
  assert.deepEqual(Object.keys(furtherNoise ?? {}), ["base-5k"]);
  assert.deepEqual(
    treatments.map(({ rateQps, runs }) => [rateQps, runs.planned, runs.valid]),
    [
      [1000, 4, 4],
      [5000, 4, 4],
      [1000, 2, 2],
      [5000, 2, 2],
      [1000, 2, 2],
    ],
  );
});

test("tables of several rates say which treatment had which, and fit a terminal", () => {
  const text = renderText(analysis);
  assert.match(text, /^Cost against the baseline of the same rate \(95 % interval over 2 paired/m);
  assert.match(text, /^1000\/s: base-1k, jwt-1k, gateway-1k$/m);
  assert.match(text, /^5000\/s: base-5k, jwt-5k$/m);
  assert.match(text, /^A\/A base-5k /m);
  assert.match(text, /1000, 5000\/s for 10 s/);
  assert.deepEqual(
    text.split("\n").filter((line) => line.length > 100),
    [],
  );
});

test("a published latency stands beside the service quantile, not the response", () => {
  const { publishedNs, measured, label } = rowOf("jwt.1000.p99");
  assert.equal(publishedNs, 2_100_000);
  assert.equal(label, "jwt-1k");
  assert.equal(measured.kind, "value");
  // 3 ms of service in block 1 and 2 %; with the lag it would be a millisecond more.
  assert.ok(Math.abs(measured.value - 3_045_000) < 10_000, String(measured.value));
});

test("in a lab every figure is shown and none is judged", () => {
  const { rows } = compareClaims(documents, analysis);
  const shown = rows.filter(({ measured }) => measured.kind === "value");
  assert.deepEqual(
    shown.map(({ claim }) => claim),
    ["jwt.1000.p50", "jwt.1000.p99", "jwt.5000.p50", "jwt.5000.p99"],
  );
  assert.deepEqual([...new Set(shown.map(({ verdict }) => verdict))], ["not comparable (lab)"]);
});

test("a cell without a figure says why", () => {
  const reason = (claim: string) => {
    const { measured } = rowOf(claim);
    return measured.kind === "none" ? measured.reason : "there is a figure";
  };
  assert.equal(reason("gateway.1000.p99"), "not comparable: driver vegeta-paced");
  assert.equal(reason("jwt.10000.p99"), "rate differs: measured at 1000/s, 5000/s");
  assert.equal(reason("table.baseline.p99"), "rate differs: measured at 1000/s, 5000/s");
  assert.equal(reason("mtls-h2.1000.p50"), "not measured");
});

test("on metal a figure is judged by least and greatest of our runs", () => {
  assert.equal(rowOf("jwt.1000.p99", onMetal()).verdict, "below our runs");
  assert.equal(rowOf("jwt.5000.p50", onMetal()).verdict, "above our runs");
  const metal = onMetal();
  const range = { low: 2e6, high: 2.2e6, kind: "range" as const };
  const treatments = metal.comparison.treatments.map((treatment) => ({
    ...treatment,
    metrics: { ...treatment.metrics, serviceP99: value(2.1e6, "ns", range) },
  }));
  const within = { ...metal, comparison: { ...metal.comparison, treatments } };
  assert.equal(rowOf("jwt.1000.p99", within).verdict, "within our runs");
});

test("on metal with other versions nothing is judged", () => {
  const { verdict } = rowOf("jwt.1000.p99", onMetal("lab"));
  assert.equal(verdict, "not comparable (version set lab)");
});

test("a treatment without a valid run gives its reason in place of a figure", () => {
  const treatments = analysis.comparison.treatments.map((treatment) => ({
    ...treatment,
    metrics: { ...treatment.metrics, serviceP99: { kind: "none", reason: "rate missed" } as const },
  }));
  const spoilt = { ...onMetal(), comparison: { ...analysis.comparison, treatments } };
  const { measured, verdict } = rowOf("jwt.1000.p99", spoilt);
  assert.deepEqual([measured, verdict], [{ kind: "none", reason: "rate missed" }, "-"]);
});

test("every latency claim is either a row or left out with what it lacks", () => {
  const { rows, leftOut } = compareClaims(documents, analysis);
  const latencies = documents.flatMap(({ claims }) =>
    claims.filter(({ quantity }) => /^latencyP\d\d$/.test(quantity?.metric ?? "")),
  );
  assert.equal(latencies.length, 32);
  assert.equal(rows.length + leftOut.length, latencies.length);
  assert.deepEqual(leftOut, [
    { claim: "G example.p99-before", lacks: "a topology and a rate" },
    { claim: "G example.p99-after", lacks: "a topology and a rate" },
    { claim: "T baseline.p99", lacks: "a rate" },
  ]);
});

test("a latency given as a range is left out, and that is told", () => {
  const claims = documents.map((document) => ({
    ...document,
    claims: document.claims.map((claim) =>
      claim.id === "jwt.1000.p99" && claim.quantity !== undefined
        ? { ...claim, quantity: { ...claim.quantity, value: undefined, low: 2, high: 3 } }
        : claim,
    ),
  }));
  const { rows, leftOut } = compareClaims(claims, analysis);
  assert.ok(rows.every(({ claim }) => claim !== "jwt.1000.p99"));
  assert.ok(
    leftOut.some(({ claim, lacks }) => claim.includes("jwt.1000") && lacks.includes("single fig")),
  );
});

test("the renderings are the reviewed ones", () => {
  const comparison = compareClaims(documents, analysis);
  assertGolden(golden("claims.txt"), renderClaimsText(comparison));
  assertGolden(golden("claims.md"), renderClaimsMarkdown(comparison));
  assert.deepEqual(JSON.parse(renderClaimsJson(comparison)), comparison);
  const wide = renderClaimsText(comparison)
    .split("\n")
    .filter((line) => line.length > 100);
  assert.deepEqual(wide, []);
});

test("claims are refused if there are none, or two of one source", async () => {
  const empty = await mkdtemp(path.join(tmpdir(), "ztbench-claims-"));
  try {
    await assert.rejects(readClaims(empty), /claims: no document in/);
    const text = await readFile(path.join(claimsDirectory, "loss-guide.yaml"), "utf8");
    await writeFile(path.join(empty, "a.yaml"), text);
    await writeFile(path.join(empty, "b.yaml"), text);
    await assert.rejects(
      readClaims(empty),
      (error) =>
        error instanceof Failure && error.message.includes("b.yaml: source.id: G is already"),
    );
  } finally {
    await rm(empty, { recursive: true });
  }
});
