/**
 * Measures how long the report page of a campaign takes and how large it is. The runs of a real
 * bundle are repeated in memory until they make a campaign of the size wanted.
 * Usage: node --import tsx bench/report.ts BUNDLE [BLOCKS]
 */
import path from "node:path";
import { readFile } from "node:fs/promises";
import type { Analysis } from "../analysis/analysis.ts";
import { openBundle } from "../analysis/bundle.ts";
import type { Evidence } from "../analysis/html/evidence.ts";
import { analyse } from "../analysis/report.ts";

const rounds = 5;

const [bundleDir, blocksText = "10"] = process.argv.slice(2);
const blocks = Number(blocksText);
if (bundleDir === undefined || !Number.isInteger(blocks) || blocks < 1) {
  console.error("usage: node --import tsx bench/report.ts BUNDLE [BLOCKS]");
  process.exitCode = 2;
} else await measure(path.resolve(bundleDir), blocks);

async function measure(directory: string, wanted: number): Promise<void> {
  let began = start();
  const analysis = await analyse(directory);
  const rows = analysis.runs.reduce((sum, { latency }) => sum + (latency?.sent ?? 0), 0);
  row("analyse the bundle", began, `${analysis.runs.length} runs, ${rows} rows`);
  const { manifest, runs } = await openBundle(directory);
  const planText = await readFile(path.join(directory, "plan.yaml"), "utf8");
  began = start();
  const { renderHtml } = await import("../analysis/html/page.ts");
  row("load the renderer", began, "");
  const input = repeat(analysis, { planText, manifest, runs }, wanted);
  for (let round = 1; round <= rounds; round += 1) {
    began = start();
    const page = renderHtml(input.analysis, input.evidence);
    const size = `${(Buffer.byteLength(page) / 2 ** 20).toFixed(2)} MiB`;
    row(`render ${wanted} blocks, round ${round}`, began, size);
  }
}

/** The same runs again and again, under new numbers. */
function repeat(
  analysis: Analysis,
  evidence: Evidence,
  wanted: number,
): { analysis: Analysis; evidence: Evidence } {
  const times = Math.ceil(wanted / analysis.stamp.blocks);
  const many = <T>(items: readonly T[], copy: (item: T, time: number) => T): T[] =>
    Array.from({ length: times }, (_, time) => items.map((item) => copy(item, time))).flat();
  const nameOf = (name: string, time: number): string => `${name}-${time}`;
  return {
    analysis: {
      ...analysis,
      runs: many(analysis.runs, (run, time) => ({
        ...run,
        name: nameOf(run.name, time),
        run: run.run + time * analysis.runs.length,
        block: run.block + time * analysis.stamp.blocks,
      })),
    },
    evidence: {
      ...evidence,
      runs: many(evidence.runs, (run, time) => ({ ...run, name: nameOf(run.name, time) })),
    },
  };
}

type Began = { readonly ms: number; readonly cpu: NodeJS.CpuUsage };

function start(): Began {
  return { ms: performance.now(), cpu: process.cpuUsage() };
}

/** Time passed and time of all threads on CPUs: on a busy machine the first says little. */
function row(what: string, began: Began, result: string): void {
  const passed = (performance.now() - began.ms) / 1000;
  const { user, system } = process.cpuUsage(began.cpu);
  const times = [`${passed.toFixed(3)} s`, `${((user + system) / 1e6).toFixed(3)} s CPU`];
  console.log(what.padEnd(30), ...times.map((time) => time.padStart(12)), result);
}
