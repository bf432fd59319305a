/** Compares text with a golden file beside the test; UPDATE_GOLDEN=1 writes it instead. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Asserts that text is what the golden file holds. Goldens are reviewed as diffs.
 *
 * @param file path of the golden file
 */
export function assertGolden(file: string, text: string): void {
  if (process.env["UPDATE_GOLDEN"] === "1") {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    return;
  }
  const rerun = "run the test with UPDATE_GOLDEN=1 and review the diff";
  assert.ok(existsSync(file), `golden file ${file} is missing: ${rerun}`);
  assert.equal(text, readFileSync(file, "utf8"), `differs from ${file}: ${rerun}`);
}
