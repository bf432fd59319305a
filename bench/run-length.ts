/**
 * What longer runs buy: the spread of the paired loss at p50 if only the first quarter, the first
 * half or all of each run of a real bundle had been measured, and the machine time that the same
 * half-width then takes. Usage: node --import tsx bench/run-length.ts BUNDLE...
 */
import path from "node:path";
import { blocksOf, type MeasuredRun } from "../analysis/blocks.ts";
import { openBundle, runFileName, runPath } from "../analysis/bundle.ts";
import { measureLatency } from "../analysis/latency.ts";
import { analyseBundle } from "../analysis/report.ts";
import { quantileOf } from "../analysis/second-latency.ts";
import { mean, meanInterval } from "../analysis/statistics.ts";
import type { RunRecord } from "../contracts/record.ts";

const shares = [0.25, 0.5, 1] as const;
const requestsFile = "requests.csv.gz";

type Shortened = { readonly lnP50: readonly number[]; readonly seconds: readonly number[] };

const bundles = process.argv.slice(2);
if (bundles.length === 0) {
  console.error("usage: node --import tsx bench/run-length.ts BUNDLE...");
  process.exitCode = 2;
}
for (const bundle of bundles) await measure(path.resolve(bundle));

async function measure(directory: string): Promise<void> {
  const bundle = await openBundle(directory);
  const { comparison, runs, stamp } = await analyseBundle(bundle, {});
  const shortened = new Map<string, Shortened>();
  for (const run of bundle.runs) {
    const { record } = run;
    const invalid = runs.find(({ name }) => name === run.name)?.verdict === "INVALID";
    if (invalid || record.schema !== "ztbench/record/1") continue;
    if (record.loadPlan.arrival !== "uniform") {
      console.log(`${run.name}: left out, its arrivals are ${record.loadPlan.arrival}`);
      continue;
    }
    const responses = await responsesOf(
      { path: runPath(bundle, run, requestsFile), name: runFileName(run, requestsFile) },
      record,
    );
    shortened.set(run.name, shorten(responses, record));
  }
  console.log(`${stamp.plan}, ${stamp.blocks} blocks, spread of ln(ratio) at p50 in a block`);
  console.log("treatment             of run    sd      s a run  time for a half-width, relative");
  for (const { label, baseline } of comparison.losses) {
    const { complete } = blocksOf(stamp.blocks, baseline, label, runs, "steady");
    if (complete.length < 3) continue;
    const of = (run: MeasuredRun) => shortened.get(run.name);
    const used = complete.flatMap((b) => [b.treatment, ...b.baseline]);
    // Left out, and told so, above.
    if (used.some((run) => of(run) === undefined)) continue;
    const spreads = shares.map((_, index) => {
      const ln = (run: MeasuredRun) => of(run)?.lnP50[index] ?? Number.NaN;
      const differences = complete.map((b) => ln(b.treatment) - mean(b.baseline.map(ln)));
      const seconds = mean(used.map((run) => of(run)?.seconds[index] ?? Number.NaN));
      return { sd: meanInterval(differences).sd, seconds };
    });
    printSpreads(label, spreads);
  }
}

async function responsesOf(
  file: { readonly path: string; readonly name: string },
  { loadPlan, measuredFromNs }: RunRecord,
): Promise<readonly (readonly [dueNs: number, responseNs: number])[]> {
  const found: [number, number][] = [];
  const takeRequest = (dueNs: number, responseNs: number | undefined) => {
    found.push([dueNs, responseNs ?? Number.POSITIVE_INFINITY]);
  };
  await measureLatency({ ...file, loadPlan, measuredFromNs, takeRequest });
  return found;
}

/** What a run costs beside the measured time stays the same, however short that is. */
function shorten(
  responses: readonly (readonly [dueNs: number, responseNs: number])[],
  { loadPlan, load, phaseSeconds }: RunRecord,
): Shortened {
  const wholeNs = loadPlan.intervalNs * loadPlan.planned;
  const all = Object.values(phaseSeconds).reduce((sum, seconds) => sum + seconds, 0);
  const lnP50 = shares.map((share) => {
    const within = responses.filter(([dueNs]) => dueNs < share * wholeNs);
    const median = quantileOf(
      within.map(([, ns]) => ns).sort((a, b) => a - b),
      0.5,
      "p50",
    );
    return median.kind === "none" ? Number.NaN : Math.log(median.value);
  });
  return { lnP50, seconds: shares.map((share) => all - (1 - share) * load.durationSeconds) };
}

/** Time goes with the square of the half-width, and so with the variance of a block. */
function printSpreads(
  label: string,
  spreads: readonly { readonly sd: number; readonly seconds: number }[],
): void {
  const whole = spreads.at(-1);
  if (whole === undefined) return;
  spreads.forEach(({ sd, seconds }, index) => {
    const time = (sd ** 2 * seconds) / (whole.sd ** 2 * whole.seconds);
    const share = `${(shares[index] ?? 1) * 100} %`;
    const cells = [share.padStart(6), sd.toFixed(4), seconds.toFixed(1).padStart(9)];
    console.log(`${label.padEnd(20)} ${cells.join("  ")}  ${time.toFixed(2).padStart(8)}`);
  });
}
