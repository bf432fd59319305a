/** Writes the comparison in the formats that other programs read. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Analysis } from "../analysis.ts";
import { renderBenchstat } from "./benchstat.ts";
import { renderJunit } from "./junit.ts";
import { renderOpenMetrics } from "./openmetrics.ts";
import { renderSummary } from "./summary.ts";

const renderers = {
  "benchstat.txt": renderBenchstat,
  "junit.xml": renderJunit,
  "metrics.txt": renderOpenMetrics,
  "summary.md": renderSummary,
} as const satisfies Record<string, (analysis: Analysis) => string>;

/** Writes benchstat.txt, junit.xml, metrics.txt and summary.md into `<bundle>/tables/`. */
export async function writeExports(analysis: Analysis, bundleDir: string): Promise<void> {
  const directory = join(bundleDir, "tables");
  await mkdir(directory, { recursive: true });
  for (const [file, render] of Object.entries(renderers)) {
    await writeFile(join(directory, file), render(analysis));
  }
}
