/**
 * Measures `report` and `verify` on a synthetic bundle of the size of `plans/publish.yaml`: its
 * treatments, rates and seconds, without its capacity searches.
 * Usage: node --import tsx bench/verify.ts [BLOCKS], two of the plan's ten without it
 */
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { parseDocument } from "../contracts/document.ts";
import { loadOf, type Plan, planSchema } from "../contracts/plan.ts";
import { makeBundle, type Row } from "../test/support/bundle.ts";
import { requestsOf } from "./support/results.ts";
import { use } from "./support/usage.ts";

const root = path.resolve(import.meta.dirname, "..");
const file = path.join(root, "plans", "publish.yaml");
const publish = parseDocument(planSchema, readFileSync(file, "utf8"), file);

const blocks = Number(process.argv[2] ?? 2);
if (!Number.isInteger(blocks) || blocks < 2) {
  console.error(`blocks: must be a whole number of at least 2, found ${process.argv[2] ?? ""}`);
  process.exitCode = 2;
} else await measure(blocks);

async function measure(wanted: number): Promise<void> {
  const began = performance.now();
  const made = new Map<number, readonly Row[]>();
  const rowsAt = (rate: number, seconds: number): readonly Row[] => {
    const rows = made.get(rate) ?? rowsOf(rate, seconds);
    made.set(rate, rows);
    return rows;
  };
  const directory = await makeBundle({
    editPlan: (): Plan => ({
      ...publish,
      publishes: "nothing",
      blocks: wanted,
      capacity: undefined,
    }),
    content: ({ label }, plan) => {
      const treatment = plan.treatments.find((other) => other.label === label);
      if (treatment === undefined) throw new Error(`no treatment ${label}`);
      const { rateQps, durationSeconds } = loadOf(plan, treatment);
      return { rows: rowsAt(rateQps, durationSeconds), cpuPerRequestUs: 100 };
    },
  });
  try {
    console.log(`bundle of ${wanted} blocks: ${((performance.now() - began) / 1000).toFixed(0)} s`);
    for (const verb of ["report", "verify"]) {
      const main = path.join(root, "cli", "main.ts");
      const { seconds, cpuSeconds, peakMiB, output } = await use(process.execPath, [
        ...process.execArgv,
        main,
        verb,
        directory,
      ]);
      const cpu = `${cpuSeconds.toFixed(1)} s CPU`;
      console.log(`${verb}: ${seconds.toFixed(1)} s, ${cpu}, ${peakMiB.toFixed(0)} MiB`);
      if (verb === "verify") console.log(output.trimEnd());
    }
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Sent evenly; latencies as those that `read` is measured on. */
function rowsOf(rate: number, seconds: number): readonly Row[] {
  const intervalNs = Math.floor(1e9 / rate);
  return Array.from(requestsOf(rate * seconds), ({ seq, latencyNs }) => ({
    seq,
    sentNs: seq * intervalNs + 20_000,
    latencyNs,
  }));
}
