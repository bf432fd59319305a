/** The comparison in the formats that other programs read. */
import type { Analysis } from "../analysis.ts";
import type { TakeFile } from "../derived.ts";
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

/** Gives benchstat.txt, junit.xml, metrics.txt and summary.md of `tables/`. */
export async function takeExports(analysis: Analysis, take: TakeFile): Promise<void> {
  for (const [file, render] of Object.entries(renderers)) {
    await take(`tables/${file}`, render(analysis));
  }
}
