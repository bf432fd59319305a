/**
 * Measures how fast and with how much memory a run's rows are analysed, beside `vegeta report` on
 * the same requests. Usage: node --import tsx bench/analysis.ts [ROWS...]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Writable } from "node:stream";
import { createGzip } from "node:zlib";
import { measureLatency } from "../analysis/latency.ts";

const root = path.resolve(import.meta.dirname, "..");
const vegeta = path.join(root, ".ztbench/tools/bin/vegeta");
const startNs = "1790000000000000000";
const rateQps = 10_000;
const intervalNs = 1e9 / rateQps;

type Usage = { readonly seconds: number; readonly peakMiB: number; readonly output: string };

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
    const used = await run(process.execPath, node);
    const { seconds } = JSON.parse(used.output) as { seconds: number };
    report(rows, `analysis, ${log} interval log`, seconds, used.peakMiB);
    report(rows, "  the same with start-up of Node", used.seconds, used.peakMiB);
  }
  if (!existsSync(vegeta)) {
    console.log(`vegeta: not compared, no ${path.relative(root, vegeta)}; run make tools`);
    return;
  }
  const gob = path.join(directory, "results.gob");
  await run(vegeta, ["encode", "-to", "gob", "-output", gob, theirs]);
  for (const file of [gob, theirs]) {
    const used = await run(vegeta, ["report", file]);
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

/** Runs a program; its peak memory is the kernel's own high-water mark, read while it lives. */
async function run(program: string, args: readonly string[]): Promise<Usage> {
  const began = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  let peakKiB = 0;
  const watch = setInterval(() => {
    void readFile(`/proc/${child.pid ?? 0}/status`, "utf8").then(
      (status) => {
        peakKiB = Math.max(peakKiB, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
      },
      () => undefined,
    );
  }, 10);
  const [code] = (await once(child, "close")) as [number | null];
  clearInterval(watch);
  if (code !== 0) throw new Error(`${path.basename(program)}: exit code ${code ?? "none"}`);
  const seconds = (performance.now() - began) / 1000;
  return { seconds, peakMiB: peakKiB / 1024, output: Buffer.concat(chunks).toString() };
}

function report(rows: number, program: string, seconds: number, peakMiB: number): void {
  const speed = `${(rows / seconds / 1e6).toFixed(2)} M`;
  printRow([String(rows), program, seconds.toFixed(2), speed, peakMiB.toFixed(0)]);
}

function printRow([rows = "", program = "", ...numbers]: readonly string[]): void {
  console.log(rows.padStart(9), program.padEnd(32), ...numbers.map((text) => text.padStart(9)));
}
