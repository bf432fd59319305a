import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { build, encodeIntoCompressedBase64 } from "hdr-histogram-js";
import { $ } from "zx";
import { numberOf } from "../../../analysis/cell.ts";
import { measureLatency, type RunLatency } from "../../../analysis/latency.ts";
import { StoredComparison } from "../../../analysis/verification.ts";
import { cacheRoot, obtain } from "../../../tools/cache.ts";
import { mavenJar } from "../../../tools/maven.ts";
import { versions } from "../../../tools/versions.ts";
import { renderRows, seeded, startNs } from "../../support/bundle.ts";

const planned = 200_000;
const intervalNs = 100_000;
let directory: string;
let log: string;
let latency: RunLatency;

before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-hlog-"));
  const random = seeded(9);
  const rows = Array.from({ length: planned }, (_, seq) => ({
    seq,
    sentNs: seq * intervalNs + Math.floor(random() * 20_000),
    latencyNs: Math.floor(150_000 - 90_000 * Math.log(1 - random())),
    ...(seq % 1000 === 5 && { code: 503, latencyNs: 1000 }),
    ...(seq % 3000 === 8 && { latencyNs: 2_000_000_000 + seq }),
  })).filter(({ seq }) => seq % 5000 !== 3);
  const file = path.join(directory, "requests.csv.gz");
  log = path.join(directory, "run.hlog");
  await writeFile(file, renderRows(rows));
  const lines: string[] = [];
  latency = await measureLatency({
    path: file,
    name: "requests.csv.gz",
    measuredFromNs: String(startNs),
    loadPlan: {
      schema: "ztbench/load-plan/1",
      driver: "vegeta-paced",
      arrival: "uniform",
      rateQps: 10_000,
      intervalNs,
      planned,
      startNs: String(startNs),
    },
    writeInterval: (line) => lines.push(line),
  });
  await writeFile(log, lines.join(""));
});
after(() => rm(directory, { recursive: true }));

/** Why Java cannot be asked here; undefined if it can. */
async function withoutJava(): Promise<string | undefined> {
  const spawn = $({ quiet: true, nothrow: true, timeout: "60s" });
  const modules = await spawn`java --list-modules`;
  if (modules.exitCode !== 0) return "no java on this machine";
  if (!modules.stdout.includes("jdk.compiler")) return "java here is no JDK";
  if ((await spawn`mvn --version`).exitCode !== 0) return "no mvn on this machine";
  return undefined;
}

/** What Java's HdrHistogram says, line by line. */
async function askJava(ranks: readonly string[]): Promise<readonly string[]> {
  const { version, origin } = versions.hdrhistogram;
  const { key, make } = mavenJar({ ...origin, version });
  const cached = await obtain(cacheRoot(process.env, homedir()), key, make, () => undefined);
  const program = path.resolve(import.meta.dirname, "../../support/java/ReadLog.java");
  const done = await $({
    quiet: true,
    timeout: "120s",
  })`java -cp ${cached.file} ${program} ${log} ${ranks}`;
  return done.stdout.trim().split("\n");
}

test("Java's HdrHistogram rebuilds every published quantile from the interval log", async (t) => {
  const reason = await withoutJava();
  if (reason !== undefined) {
    t.skip(reason);
    return;
  }
  const shares = { p50: 0.5, p95: 0.95, p99: 0.99, "p99.9": 0.999 } as const;
  const asked = (["response", "service", "lag"] as const).flatMap((name) => {
    const population = name === "lag" ? latency.sent : planned;
    return (["p50", "p95", "p99", "p99.9"] as const).flatMap((quantile) => {
      const ns = numberOf(latency[name].quantiles[quantile]);
      const rank = Math.ceil(Math.round(population * shares[quantile] * 1e6) / 1e6);
      return ns === undefined ? [] : [{ name, rank, ns }];
    });
  });
  // Requests that failed or were not sent are two in a thousand: p99.9 has none to rebuild.
  assert.equal(asked.length, 10);
  const said = await askJava(asked.map(({ name, rank }) => `${name}:${rank}`));
  const beganMs = Number(startNs / 1_000_000n);
  const times = `first ${beganMs} last ${beganMs + 20_000}`;
  assert.deepEqual(said.slice(0, 3), [
    `lag count ${latency.sent} ${times}`,
    `response count ${latency.ok} ${times}`,
    `service count ${latency.ok} ${times}`,
  ]);
  for (const [index, { name, rank, ns }] of asked.entries()) {
    const [tag, at, low, high] = said[index + 3]?.split(" ") ?? [];
    assert.deepEqual([tag, at], [name, String(rank)]);
    // We publish the upper end of the bucket, or the exact greatest value where that is less.
    const published = Math.min(Number(high), numberOf(latency[name].maxNs) ?? 0);
    assert.equal(ns, published, `${name} at ${rank}: Java says ${low}..${high}`);
  }
});

test("a stored log whose histogram has another configuration is told by line and column", async () => {
  const ours = await readFile(log, "utf8");
  const coarse = build({
    numberOfSignificantValueDigits: 2,
    bitBucketSize: 64,
    useWebAssembly: false,
  });
  coarse.recordValue(200_000);
  const lines = ours.split("\n");
  const fields = lines[3]?.split(",") ?? [];
  lines[3] = [...fields.slice(0, 4), encodeIntoCompressedBase64(coarse)].join(",");
  await mkdir(path.join(directory, "tables"));
  await writeFile(path.join(directory, "tables", "run.hlog"), lines.join("\n"));
  const comparison = new StoredComparison(directory);
  await comparison.take("tables/run.hlog", ours);
  const { differing, differences } = await comparison.finish();
  assert.equal(differing, 1);
  assert.equal(differences[0]?.file, "tables/run.hlog");
  assert.equal(differences[0].recomputed?.slice(0, 20), fields[4]?.slice(0, 20));
  assert.notEqual(differences[0].stored, differences[0].recomputed);
});

test("adding up the lines of the log gives the counts of the run", () => {
  const { response, service, lag, ok, sent, planned: all } = latency;
  assert.deepEqual([response.count, service.count, lag.count], [ok, ok, sent]);
  assert.deepEqual([all, sent, ok], [200_000, 199_960, 199_760]);
});
