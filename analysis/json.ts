/** The whole analysis as JSON: every run with its gates, every cell with its reason. */
import type { Analysis } from "./analysis.ts";

/** Renders the analysis; keys stand in a fixed order, so that two renderings can be compared. */
export function renderJson(analysis: Analysis): string {
  return `${JSON.stringify(analysis, null, 2)}\n`;
}
