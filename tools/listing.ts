/** Renders what `--list` shows. */

export type ListingRow = {
  readonly name: string;
  readonly version: string;
  readonly author: string;
  readonly state: string;
  readonly provenance: string;
};

/** A table of programs and the Debian packages that are missing. */
export function renderListing(
  rows: readonly ListingRow[],
  missingPackages: readonly string[],
): string {
  const header = { name: "program", version: "version", author: "author", state: "state" };
  const lines = [{ ...header, provenance: "provenance" }, ...rows];
  const columns = ["name", "version", "author", "state"] as const;
  const widths = columns.map((column) => Math.max(...lines.map((row) => row[column].length)));
  const table = lines.map((row) =>
    [...columns.map((column, i) => row[column].padEnd(widths[i] ?? 0)), row.provenance].join("  "),
  );
  const missing = missingPackages.length === 0 ? "none" : missingPackages.join(", ");
  return [...table, "", `missing Debian packages: ${missing}`].join("\n");
}
