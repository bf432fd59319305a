/** Writes the comparison in the formats that other programs read. */
import type { Analysis } from "../analysis.ts";
import { type TakeFile, writerInto } from "../derived.ts";
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
  await takeExports(analysis, writerInto(bundleDir));
}

/** Gives the same files to whoever takes them. */
export async function takeExports(analysis: Analysis, take: TakeFile): Promise<void> {
  for (const [file, render] of Object.entries(renderers)) {
    await take(`tables/${file}`, render(analysis));
  }
}
