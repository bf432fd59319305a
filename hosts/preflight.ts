/** Renders the preflight of a host, and reads the table of wanted against seen. Pure. */
import { Failure } from "../contracts/failure.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import { checksOf } from "./checks.ts";
import { renderTable, shellPart } from "./shell.ts";

export const preflightVerdicts = ["ok", "not available here", "refused"] as const;
export type PreflightVerdict = (typeof preflightVerdicts)[number];

export type PreflightRow = {
  readonly id: string;
  readonly want: string;
  readonly seen: string;
  readonly verdict: PreflightVerdict;
};

/**
 * Functions and data of the preflight; needs those of lease and knobs. `preflight host` and
 * `preflight path` each print rows for `parsePreflight`, and fail if the host is refused.
 */
export function preflightPrelude(testbed: Testbed, host: Host): string[] {
  const rows = checksOf(testbed, host).map((check) => [
    check.phase,
    check.id,
    check.probe,
    check.argument,
    check.comparison,
    check.want,
    check.next,
  ]);
  return [renderTable("checks", rows), shellPart("preflight")];
}

/**
 * Reads what the preflight printed.
 *
 * @throws Failure `testbed` at the first line that is not four fields with a known verdict
 */
export function parsePreflight(text: string): PreflightRow[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [id = "", want = "", seen = "", found = "", ...rest] = line.split("\t");
      const verdict = preflightVerdicts.find((candidate) => candidate === found);
      if (verdict !== undefined && rest.length === 0) return { id, want, seen, verdict };
      throw new Failure(
        "testbed",
        `preflight: line is not understood, found ${JSON.stringify(line)}, ` +
          `id, want, seen and one of ${preflightVerdicts.join(", ")} expected`,
      );
    });
}

/** One line for each check: `ok: 25000 full, wanted 25000 full`. */
export function summarisePreflight(rows: readonly PreflightRow[]): Record<string, string> {
  return Object.fromEntries(
    rows.map(({ id, want, seen, verdict }) => [
      id,
      verdict === "not available here"
        ? `${verdict}${seen.replace(/^not available: ?/, ": ")}`
        : `${verdict}: ${seen}, wanted ${want}`,
    ]),
  );
}
