/**
 * Measures `./ztbench read` beside `vegeta report` on the same file, whose rows come from a seeded
 * generator. Usage: node --import tsx bench/read.ts [ROWS...]
 */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { readFiles } from "../analysis/vegeta/reading.ts";
import { openResults } from "../analysis/vegeta/source.ts";
import { gobDecoder } from "../cli/gob.ts";
import { toolPaths } from "../tools/paths.ts";
import { type Encoding, rateQps, writeResults } from "./support/results.ts";
import { compareSizes, printRow, speedOf } from "./support/sizes.ts";
import { type Usage, use } from "./support/usage.ts";

const root = path.resolve(import.meta.dirname, "..");
const { vegeta } = toolPaths(root);

const [mode, ...rest] = process.argv.slice(2);
if (mode === "measure") await measure(rest[0] ?? "", rest[1] ?? "");
else {
  const titles = ["rows", "program", "seconds", "rows/s", "CPU s", "peak MiB"];
  await compareSizes(process.argv.slice(2), titles, async (directory, sizes) => {
    await build(directory);
    for (const rows of sizes) {
      for (const encoding of ["csv", "json"] as const) await compareAt(directory, rows, encoding);
    }
  });
}

async function compareAt(directory: string, rows: number, encoding: Encoding): Promise<void> {
  const file = path.join(directory, `results.${encoding}`);
  await writeResults(file, rows, encoding);
  await ours(file, rows, encoding);
  if (!existsSync(vegeta)) {
    console.log(`vegeta: not compared, no ${path.relative(root, vegeta)}; run make tools`);
  } else {
    await theirs(file, rows, encoding);
    if (encoding === "csv") {
      const gob = path.join(directory, "results.gob");
      await use(vegeta, ["encode", "-to", "gob", "-output", gob, file]);
      await ours(gob, rows, "gob");
      await theirs(gob, rows, "gob");
      await rm(gob);
    }
  }
  await rm(file);
}

async function ours(file: string, rows: number, encoding: string): Promise<void> {
  const used = await use(process.execPath, [
    ...process.execArgv,
    process.argv[1] ?? "",
    "measure",
    file,
    path.join(path.dirname(file), "ztload"),
  ]);
  const inside = JSON.parse(used.output) as { seconds: number; cpuSeconds: number };
  report(rows, `ztbench read ${encoding}`, { ...used, ...inside });
  report(rows, "  the same with start-up of Node", used);
}

async function theirs(file: string, rows: number, encoding: string): Promise<void> {
  const used = await use(vegeta, ["report", file]);
  report(rows, `vegeta report ${encoding}`, used);
}

/** The part that is measured: all that the verb does, in a process of its own. */
async function measure(file: string, ztload: string): Promise<void> {
  const began = performance.now();
  const before = process.cpuUsage();
  const decodeGob = gobDecoder(ztload);
  const results = await openResults(file, path.basename(file));
  const options = { rateQps, durationSeconds: undefined, decodeGob };
  const { counts, verdict } = await readFiles([results], options);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(before);
  const cpuSeconds = (user + system) / 1e6;
  console.log(JSON.stringify({ seconds, cpuSeconds, sent: counts.sent, verdict }));
}

/** The decoder of this checkout, whatever is installed. */
async function build(directory: string): Promise<void> {
  const target = path.join(directory, "ztload");
  await use("go", ["-C", path.join(root, "service"), "build", "-o", target, "./cmd/ztload"]);
}

function report(rows: number, program: string, usage: Omit<Usage, "output">): void {
  const { seconds, cpuSeconds, peakMiB } = usage;
  const speed = speedOf(rows, seconds);
  const numbers = [seconds.toFixed(2), speed, cpuSeconds.toFixed(2), peakMiB.toFixed(0)];
  printRow([String(rows), program, ...numbers]);
}
