/**
 * Compares what a bundle has stored in its tables with what its raw files give now, cell by cell.
 * Each file is compared whole: one that differs in nothing but its layout differs, too.
 */
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TakeFile } from "./derived.ts";
import { cellsOf, type GridCell } from "./grid.ts";

export type Difference = {
  readonly file: string;
  readonly row: string;
  readonly column: string;
  /** Absent where the bundle has no such cell. */
  readonly stored?: string;
  /** Absent where the raw files give no such cell. */
  readonly recomputed?: string;
};

export type StoredTables = {
  /** Whether the bundle has any derived file at all. */
  readonly present: boolean;
  readonly files: number;
  readonly cells: number;
  /** All that differ; `differences` holds the first ones. */
  readonly differing: number;
  readonly differences: readonly Difference[];
};

/** So many differences are worth reading; the others are counted. */
const differencesMax = 50;
/** A stored file may be so much longer than ours before it is not even read. */
const surplusBytes = 1024 * 1024;
const depthMax = 8;

/** Takes recomputed files, one after another, and reads the stored one beside each. */
export class StoredComparison {
  readonly #bundleDir: string;
  readonly #taken = new Set<string>();
  #cells = 0;
  #stored = 0;
  #differing = 0;
  readonly #differences: Difference[] = [];

  constructor(bundleDir: string) {
    this.#bundleDir = bundleDir;
  }

  readonly take: TakeFile = async (file, text) => {
    this.#taken.add(file);
    const path = join(this.#bundleDir, file);
    const info = await lstat(path).catch(() => undefined);
    if (info === undefined) {
      this.#cells += cellsOf(file, text).length;
      this.#note({ file, row: "file", column: "file", recomputed: `${text.length} characters` });
      return;
    }
    this.#stored += 1;
    const whole = { file, row: "file", column: "file" };
    if (!info.isFile()) {
      this.#note({ ...whole, stored: "no plain file", recomputed: "a plain file" });
    } else if (info.size > 4 * text.length + surplusBytes) {
      const recomputed = `${text.length} characters`;
      this.#note({ ...whole, stored: `${info.size} bytes`, recomputed });
    } else this.#compare(file, await readFile(path, "utf8"), text);
  };

  /** What is left over in the bundle belongs to no table of ours. */
  async finish(): Promise<StoredTables> {
    const left = (await listTables(this.#bundleDir, "tables", 0)).filter(
      ({ file }) => !this.#taken.has(file),
    );
    for (const { file, kind } of left) {
      this.#note({ file, row: "file", column: "file", stored: kind });
    }
    const present = this.#stored > 0 || left.length > 0;
    return {
      present,
      files: this.#taken.size,
      cells: this.#cells,
      differing: present ? this.#differing : 0,
      differences: present ? this.#differences : [],
    };
  }

  #compare(file: string, stored: string, recomputed: string): void {
    const wanted = cellsOf(file, recomputed);
    this.#cells += wanted.length;
    if (stored === recomputed) return;
    let found: readonly GridCell[];
    try {
      found = cellsOf(file, stored);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      this.#note({ file, row: "file", column: "file", stored: `cannot be read: ${problem}` });
      return;
    }
    const before = this.#differing;
    const rest = new Map(found.map((cell) => [`${cell.row}\n${cell.column}`, cell]));
    for (const { row, column, text } of wanted) {
      const key = `${row}\n${column}`;
      const other = rest.get(key);
      rest.delete(key);
      if (other?.text === text) continue;
      this.#note({ file, row, column, ...aroundChange(other?.text, text) });
    }
    for (const { row, column, text } of rest.values()) {
      this.#note({ file, row, column, stored: aroundChange(text, "").stored ?? "" });
    }
    if (this.#differing > before) return;
    this.#note({ file, row: "file", column: "layout", stored: "another", recomputed: "ours" });
  }

  #note(difference: Difference): void {
    this.#differing += 1;
    if (this.#differences.length < differencesMax) this.#differences.push(difference);
  }
}

const shownMax = 60;

/** Both texts from a little before the first character that differs. */
function aroundChange(
  stored: string | undefined,
  recomputed: string,
): { readonly stored?: string; readonly recomputed: string } {
  const other = stored ?? "";
  let first = 0;
  while (first < recomputed.length && recomputed[first] === other[first]) first += 1;
  const from = Math.max(recomputed.length, other.length) <= shownMax ? 0 : Math.max(0, first - 20);
  const cut = (text: string): string =>
    `${from > 0 ? "…" : ""}${text.slice(from, from + shownMax)}` +
    (text.length > from + shownMax ? "…" : "");
  return {
    ...(stored !== undefined && { stored: cut(stored) }),
    recomputed: cut(recomputed),
  };
}

async function listTables(
  bundleDir: string,
  below: string,
  depth: number,
): Promise<{ readonly file: string; readonly kind: string }[]> {
  const entries = await readdir(join(bundleDir, below), { withFileTypes: true }).catch(() => []);
  const files: { file: string; kind: string }[] = [];
  for (const entry of entries) {
    const file = `${below}/${entry.name}`;
    if (entry.isDirectory() && depth < depthMax) {
      files.push(...(await listTables(bundleDir, file, depth + 1)));
    } else files.push({ file, kind: entry.isFile() ? "a file" : "no plain file" });
  }
  return files;
}
