/**
 * Measures how fast and with how much memory a run's rows are analysed, beside `vegeta report` on
 * the same requests. Usage: node --import tsx bench/analysis.ts [ROWS...]
 */
import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import path from "node:path";
import type { Writable } from "node:stream";
import { createGzip } from "node:zlib";
import { measureLatency } from "../analysis/latency.ts";
import { toolPaths } from "../tools/paths.ts";
import { csvRow, intervalNs, rateQps, requestsOf, startNs } from "./support/results.ts";
import { compareSizes, printRow, speedOf } from "./support/sizes.ts";
import { use } from "./support/usage.ts";

const root = path.resolve(import.meta.dirname, "..");
const { vegeta } = toolPaths(root);

const [mode, ...rest] = process.argv.slice(2);
if (mode === "measure") await measure(rest);
else {
  const titles = ["rows", "program", "seconds", "rows/s", "peak MiB"];
  await compareSizes(process.argv.slice(2), titles, async (directory, sizes) => {
    for (const rows of sizes) await compareAt(directory, rows);
  });
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
    measuredFromNs: String(startNs),
    loadPlan: {
      schema: "ztbench/load-plan/1",
      driver: "vegeta-paced",
      arrival: "uniform",
      rateQps,
      intervalNs,
      planned: Number(rows),
      startNs: String(startNs),
    },
    ...(log === "with" && { writeInterval: (line: string) => void (logBytes += line.length) }),
  });
  const seconds = (performance.now() - began) / 1000;
  console.log(JSON.stringify({ seconds, rows: latency.sent, logBytes }));
}

/** Writes the same requests as our rows and as vegeta's CSV. */
async function generate(ours: string, theirs: string, rows: number): Promise<void> {
  const gzip = createGzip();
  const packed = gzip.pipe(createWriteStream(ours));
  const plain = createWriteStream(theirs);
  let [mine, other] = ["seq,timestampNs,latencyNs,code,error\n", ""];
  for (const request of requestsOf(rows)) {
    mine += `${request.seq},${request.sentNs},${request.latencyNs},200,\n`;
    other += csvRow(request);
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
  const speed = speedOf(rows, seconds);
  printRow([String(rows), program, seconds.toFixed(2), speed, peakMiB.toFixed(0)]);
}
