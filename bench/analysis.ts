/**
 * Measures how fast and with how much memory a run's rows are analysed, beside `vegeta report` on
 * the same requests. Usage: node --import tsx bench/analysis.ts [ROWS...]
 */
import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Writable } from "node:stream";
import { createGzip } from "node:zlib";
import { measureLatency } from "../analysis/latency.ts";
import { use } from "./support/usage.ts";

const root = path.resolve(import.meta.dirname, "..");
const vegeta = path.join(root, ".ztbench/tools/bin/vegeta");
const startNs = "1790000000000000000";
const rateQps = 10_000;
const intervalNs = 1e9 / rateQps;

const [mode, ...rest] = process.argv.slice(2);
if (mode === "measure") await measure(rest);
else {
  const rows = process.argv.slice(2).map(Number);
  await compare(rows.length === 0 ? [100_000, 1_000_000] : rows);
}

async function compare(sizes: readonly number[]): Promise<void> {
  if (sizes.some((rows) => !Number.isInteger(rows) || rows < 1)) {
    console.error("rows: must be whole numbers of at least 1");
    process.exitCode = 2;
    return;
  }
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-bench-"));
  try {
    printRow(["rows", "program", "seconds", "rows/s", "peak MiB"]);
    for (const rows of sizes) await compareAt(directory, rows);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function compareAt(directory: string, rows: number): Promise<void> {
  const ours = path.join(directory, "requests.csv.gz");
  const theirs = path.join(directory, "results.csv");
  await generate(ours, theirs, rows);
  for (const log of ["without", "with"]) {
    const node = [...process.execArgv, process.argv[1] ?? "", "measure", ours, String(rows), log];
    const used = await use(process.execPath, node);
    const { seconds } = JSON.parse(used.output) as { seconds: number };
    report(rows, `analysis, ${log} interval log`, seconds, used.peakMiB);
    report(rows, "  the same with start-up of Node", used.seconds, used.peakMiB);
  }
  if (!existsSync(vegeta)) {
    console.log(`vegeta: not compared, no ${path.relative(root, vegeta)}; run make tools`);
    return;
  }
  const gob = path.join(directory, "results.gob");
  await use(vegeta, ["encode", "-to", "gob", "-output", gob, theirs]);
  for (const file of [gob, theirs]) {
    const used = await use(vegeta, ["report", file]);
    report(rows, `vegeta report ${path.extname(file).slice(1)}`, used.seconds, used.peakMiB);
  }
}

/** The part that is measured: one pass over the rows, in a process of its own. */
async function measure([file = "", rows = "", log = ""]: readonly string[]): Promise<void> {
  let logBytes = 0;
  const began = performance.now();
  const latency = await measureLatency({
    path: file,
    name: "requests.csv.gz",
    measuredFromNs: startNs,
    loadPlan: {
      schema: "ztbench/load-plan/1",
      driver: "vegeta-paced",
      arrival: "uniform",
      rateQps,
      intervalNs,
      planned: Number(rows),
      startNs,
    },
    ...(log === "with" && { writeInterval: (line: string) => void (logBytes += line.length) }),
  });
  const seconds = (performance.now() - began) / 1000;
  console.log(JSON.stringify({ seconds, rows: latency.sent, logBytes }));
}

/** Writes the same requests as our rows and as vegeta's CSV; latencies have a long tail. */
async function generate(ours: string, theirs: string, rows: number): Promise<void> {
  const gzip = createGzip();
  const packed = gzip.pipe(createWriteStream(ours));
  const plain = createWriteStream(theirs);
  const url = "http://198.18.0.12:8080/api/echo";
  let state = 1;
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  let [mine, other] = ["seq,timestampNs,latencyNs,code,error\n", ""];
  for (let seq = 0; seq < rows; seq += 1) {
    const sentNs = BigInt(startNs) + BigInt(seq * intervalNs + Math.floor(random() * 50_000));
    const latencyNs = Math.floor(150_000 - 60_000 * Math.log(random()));
    mine += `${seq},${sentNs},${latencyNs},200,\n`;
    other += `${sentNs},200,${latencyNs},0,256,,,,${seq},GET,${url},\n`;
    if (mine.length > 1 << 16) {
      await Promise.all([write(gzip, mine), write(plain, other)]);
      [mine, other] = ["", ""];
    }
  }
  gzip.end(mine);
  plain.end(other);
  await Promise.all([once(packed, "close"), once(plain, "close")]);
}

async function write(stream: Writable, text: string): Promise<void> {
  if (!stream.write(text)) await once(stream, "drain");
}

function report(rows: number, program: string, seconds: number, peakMiB: number): void {
  const speed = `${(rows / seconds / 1e6).toFixed(2)} M`;
  printRow([String(rows), program, seconds.toFixed(2), speed, peakMiB.toFixed(0)]);
}

function printRow([rows = "", program = "", ...numbers]: readonly string[]): void {
  console.log(rows.padStart(9), program.padEnd(32), ...numbers.map((text) => text.padStart(9)));
}
