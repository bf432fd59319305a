/** Compares programs on files of several sizes, and prints what each of them took. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/**
 * Lends a directory for the time of a comparison.
 *
 * @param args numbers of rows as text; without any, 10^5 and 10^6
 * @param titles of the columns
 */
export async function compareSizes(
  args: readonly string[],
  titles: readonly string[],
  compare: (directory: string, sizes: readonly number[]) => Promise<void>,
): Promise<void> {
  const sizes = args.length === 0 ? [100_000, 1_000_000] : args.map(Number);
  if (sizes.some((rows) => !Number.isInteger(rows) || rows < 1)) {
    console.error("rows: must be whole numbers of at least 1");
    process.exitCode = 2;
    return;
  }
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-bench-"));
  try {
    printRow(titles);
    await compare(directory, sizes);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Rows per second, in millions. */
export function speedOf(rows: number, seconds: number): string {
  return `${(rows / seconds / 1e6).toFixed(2)} M`;
}

export function printRow([rows = "", program = "", ...numbers]: readonly string[]): void {
  console.log(rows.padStart(9), program.padEnd(32), ...numbers.map((text) => text.padStart(9)));
}
