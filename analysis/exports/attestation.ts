/**
 * States the outcome of all gates about a bundle as an in-toto statement, for tools that decide by
 * such. It is not signed: whoever vouches for it puts it into an envelope of his own.
 */
import type { Analysis } from "../analysis.ts";
import type { Bundle } from "../bundle.ts";
import { cellKey } from "../bundle.ts";

export const attestationFile = "test-result.intoto.json";

type Subject = { readonly name: string; readonly digest: { readonly sha256: string } };

/**
 * in-toto Statement v1 with a test-result predicate: a test is a gate of a run. A gate whose source
 * does not exist has not passed, so it stands among the warnings.
 *
 * @param sumsSha256 of SHA256SUMS, which stands for all raw files
 * @param derived sha256 of the files that the analysis made of them, by path
 */
export function renderAttestation(
  { sums }: Bundle,
  { runs, notRun }: Analysis,
  sumsSha256: string,
  derived: ReadonlyMap<string, string>,
): string {
  const subject = (name: string, sha256: string): Subject => ({ name, digest: { sha256 } });
  const repeated = new Set(
    runs
      .filter((run) => runs.some((o) => cellKey(o) === cellKey(run) && o.run > run.run))
      .map(({ name }) => name),
  );
  const tests = runs.flatMap(({ name, gates }) =>
    gates.map(({ id, outcome }) => ({
      test: `${name}/${id}`,
      // What was measured again took no part in anything.
      outcome: outcome === "invalid" && repeated.has(name) ? ("warn" as const) : outcome,
    })),
  );
  const named = (...wanted: readonly string[]) =>
    tests.filter(({ outcome }) => wanted.includes(outcome)).map(({ test }) => test);
  const failedTests = [...named("invalid"), ...notRun.map((key) => `${key}/completed`)];
  const warnedTests = named("warn", "unavailable");
  const tables = [...derived].filter(([path]) => /^tables\/[^/]+$/.test(path));
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject: [
      subject("SHA256SUMS", sumsSha256),
      ...tables.map(([path, sha256]) => subject(path, sha256)),
    ],
    predicateType: "https://in-toto.io/attestation/test-result/v0.1",
    predicate: {
      result: failedTests.length > 0 ? "FAILED" : warnedTests.length > 0 ? "WARNED" : "PASSED",
      configuration: ["plan.yaml", "manifest.json"].map((name) =>
        subject(name, sums.get(name) ?? ""),
      ),
      passedTests: named("pass"),
      warnedTests,
      failedTests,
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}
