/**
 * What pairing within blocks buys: half-widths of the loss of every treatment in a real bundle,
 * paired against unpaired, and so the machine time that the same half-width takes.
 * Usage: node --import tsx bench/precision.ts BUNDLE...
 */
import path from "node:path";
import tQuantile from "@stdlib/stats-base-dists-t-quantile";
import { analyse } from "../analysis/report.ts";
import { blocksOf, type LossMetricId, lossMetricIds, pairsOf } from "../analysis/blocks.ts";
import { mean, meanInterval } from "../analysis/statistics.ts";

const bundles = process.argv.slice(2);
if (bundles.length === 0) {
  console.error("usage: node --import tsx bench/precision.ts BUNDLE...");
  process.exitCode = 2;
}
for (const bundle of bundles) await measure(path.resolve(bundle));

async function measure(directory: string): Promise<void> {
  const { comparison, runs, stamp } = await analyse(directory);
  const cells = new Set(runs.map(({ label, arm }) => `${label} ${arm}`));
  const runsRatio = cells.size / comparison.treatments.length;
  console.log(`${stamp.plan}, ${stamp.blocks} blocks, half-widths of ln(ratio)`);
  console.log("treatment            metric         paired  unpaired  time paired/unpaired");
  for (const { label, baseline } of comparison.losses) {
    const { complete } = blocksOf(stamp.blocks, baseline, label, runs, "steady");
    for (const id of lossMetricIds) {
      const pairs = pairsOf(complete, id);
      if (typeof pairs !== "string" && pairs.length >= 3) row(label, id, pairs, runsRatio);
    }
  }
}

type Pairs = Exclude<ReturnType<typeof pairsOf>, string>;

/**
 * Time goes with the square of the half-width, and with the runs of a block: the unpaired design
 * has one of each treatment, and one of the block's baselines is left out.
 *
 * @param runsRatio runs of a block over treatments: baselines run twice
 */
function row(label: string, id: LossMetricId, pairs: Pairs, runsRatio: number): void {
  const treated = pairs.map(({ treatment }) => Math.log(treatment));
  const baselines = pairs.map(({ baseline }) => baseline.map(Math.log));
  const differences = treated.map((x, index) => x - mean(baselines[index] ?? []));
  const n = pairs.length;
  const paired = (tQuantile(0.975, n - 1) * meanInterval(differences).sd) / Math.sqrt(n);
  const first = baselines.map(([a = Number.NaN]) => a);
  const [v, w] = [meanInterval(treated).sd ** 2 / n, meanInterval(first).sd ** 2 / n];
  // Welch and Satterthwaite.
  const freedom = (v + w) ** 2 / (v ** 2 / (n - 1) + w ** 2 / (n - 1));
  const unpaired = tQuantile(0.975, freedom) * Math.sqrt(v + w);
  const time = (paired / unpaired) ** 2 * runsRatio;
  const cells = [paired.toFixed(4), unpaired.toFixed(4).padStart(9), time.toFixed(2).padStart(10)];
  console.log(`${label.padEnd(20)} ${id.padEnd(13)} ${cells.join(" ")}`);
}
