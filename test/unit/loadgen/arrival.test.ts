import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import { numberOf } from "../../../analysis/cell.ts";
import { measureLatency } from "../../../analysis/latency.ts";
import { readOffsets } from "../../../analysis/offsets.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { loadOf, type Plan, planSchema } from "../../../contracts/plan.ts";
import { loadPlanSchema } from "../../../contracts/record.ts";
import { type Attack, attackCommand, splitCommand } from "../../../loadgen/vegeta.ts";
import { findGo, goEnvironment } from "../../../tools/toolchain.ts";

const root = path.resolve(import.meta.dirname, "../../..");
let directory: string;
let server: Server;
const at = (file: string) => path.join(directory, file);

before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-arrival-"));
  const go = await findGo();
  const spawn = $({ quiet: true, env: goEnvironment(), timeout: "300s" });
  const service = path.join(root, "service");
  await spawn`${go.command} -C ${service} build -o ${at("ztload")} ./cmd/ztload`;
  server = createServer((_, response) => response.end("ok"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true });
});

function planOf(arrival: string): Plan {
  const text = `schema: ztbench/plan/1
name: arrivals
purpose: one treatment
seed: 11
blocks: 1
baseline: base
treatments:
  - { label: base, topology: baseline, driver: vegeta-paced, arrival: ${arrival} }
load:
  rateQps: 500
  connections: 8
  warmupSeconds: 0.5
  durationSeconds: 2
equivalenceMargin: 0.05
`;
  return parseDocument(planSchema, text, "plan.yaml");
}

/** Runs the commands of a campaign here, against a server of the test. */
async function drive(arrival: string, seed: number, out: string) {
  const plan = planOf(arrival);
  const [treatment] = plan.treatments;
  assert.ok(treatment !== undefined);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/`;
  const files = { targets: at("targets"), records: at("records.gob"), plan: at("plan.json") };
  const attack: Attack = {
    treatment,
    load: { ...loadOf(plan, treatment), prewarm: { rateQps: 50, seconds: 0 } },
    entry: { host: "client", url, http: "1.1", headers: {} },
    files: { ...files, prewarm: at("prewarm.gob") },
    cpuCount: undefined,
    seed,
  };
  const spawn = $({ quiet: true, timeout: "60s" });
  await mkdir(at(out));
  await spawn`${at("ztload")} targets -url ${url} -out ${files.targets}`;
  for (const command of [attackCommand(attack), splitCommand(attack, at(out))]) {
    await spawn`${at("ztload")} ${command.slice(1)}`;
  }
  const text = await readFile(at(`${out}/load-plan.json`), "utf8");
  return parseDocument(loadPlanSchema, text, "load-plan.json");
}

test("poisson arrivals go by planned offsets from the plan to the latencies", async () => {
  const loadPlan = await drive("poisson", 11, "one");
  const offsets = (out: string) =>
    readOffsets(at(`${out}/load-plan.offsets.csv.gz`), "offsets", loadPlan.planned);
  assert.deepEqual([loadPlan.arrival, loadPlan.seed], ["poisson", 11]);
  assert.equal(loadPlan.offsetsFile, "load-plan.offsets.csv.gz");
  const offsetsNs = await offsets("one");
  // 1250 requests in 2.5 s, of which those of the first half second are warm-up: 1000 +- 4 sigma.
  assert.ok(Math.abs(loadPlan.planned - 1000) < 4 * Math.sqrt(1250 * 0.2 * 0.8), "planned");
  const gaps = Array.from(offsetsNs, (ns, i) => ns - (offsetsNs[i - 1] ?? ns)).slice(1);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  // Exponential gaps: standard deviation equals mean, within 4 / sqrt(n).
  assert.ok(Math.abs(Math.sqrt(variance) / mean - 1) < 0.13, "variation of the gaps");
  const latency = await measureLatency({
    path: at("one/requests.csv.gz"),
    name: "requests.csv.gz",
    loadPlan,
    offsetsNs,
    measuredFromNs: loadPlan.startNs ?? "",
  });
  assert.deepEqual([latency.sent, latency.failed], [loadPlan.planned, 0]);
  assert.ok(latency.lagMinNs > -1e6, "none left before it was due");
  assert.ok((numberOf(latency.lag.quantiles.p50) ?? 1e9) < 100e6, "they left when they were due");
  assert.equal(latency.startEstimated, false);
});

test("a seed gives the same arrivals again, another one others, and uniform has none", async () => {
  const read = (out: string) => readFile(at(`${out}/load-plan.offsets.csv.gz`), "base64");
  await drive("poisson", 11, "again");
  await drive("poisson", 12, "other");
  assert.equal(await read("again"), await read("one"));
  assert.notEqual(await read("other"), await read("one"));
  const uniform = await drive("uniform", 11, "uniform");
  assert.equal(uniform.offsetsFile, undefined);
  assert.deepEqual([uniform.planned, uniform.intervalNs], [1000, 2_000_000]);
});
