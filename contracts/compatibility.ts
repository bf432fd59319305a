/**
 * Which releases their makers test together: the table that a choice of versions is held against,
 * so that nobody measures a cluster that was never meant to work. Pure.
 */
import { Failure } from "./failure.ts";

/** Versions of a cluster and what is put on it, without a leading v. */
export type ReleaseTuple = {
  /** Of Kubernetes, or of k3s, which carries that of Kubernetes. */
  readonly kubernetes: string;
  readonly calico?: string;
  readonly istio?: string;
};

type Part = "calico" | "istio";

/** Minor versions of Kubernetes by minor version of the part that its makers test on them. */
export type TestedTable = Readonly<Record<Part, Readonly<Record<string, readonly string[]>>>>;

/**
 * As Calico's pages "System requirements" and Istio's "Supported releases" say for each release;
 * the lines of 2026 were seen in tables that others made of these pages.
 */
export const testedTable: TestedTable = {
  calico: {
    "3.26": ["1.24", "1.25", "1.26", "1.27", "1.28"],
    "3.27": ["1.27", "1.28", "1.29"],
    "3.31": ["1.32", "1.33", "1.34", "1.35"],
    "3.32": ["1.34", "1.35", "1.36"],
    "3.33": ["1.35", "1.36", "1.37"],
  },
  istio: {
    "1.20": ["1.25", "1.26", "1.27", "1.28", "1.29"],
    "1.29": ["1.31", "1.32", "1.33", "1.34", "1.35"],
    "1.30": ["1.32", "1.33", "1.34", "1.35", "1.36"],
  },
};

/** `1.28` of `1.28.5+k3s1`. */
export function minorVersion(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

/** What is wrong with a tuple: one line for each part that was not tested with its Kubernetes. */
export function untestedParts(
  tuple: ReleaseTuple,
  table: TestedTable = testedTable,
): readonly string[] {
  const kubernetes = minorVersion(tuple.kubernetes);
  const parts: readonly Part[] = ["calico", "istio"];
  return parts.flatMap((part) => {
    const version = tuple[part];
    if (version === undefined) return [];
    const tested = table[part][minorVersion(version)];
    if (tested?.includes(kubernetes) === true) return [];
    const allowed = tested === undefined ? releasesFor(part, kubernetes, table) : tested.join(", ");
    return [`${part} ${version}: not tested with Kubernetes ${kubernetes}, allowed are ${allowed}`];
  });
}

/** Releases of a part for a version of Kubernetes; without any, all with what they are for. */
function releasesFor(part: Part, kubernetes: string, table: TestedTable): string {
  const all = Object.entries(table[part]);
  const fitting = all.filter(([, tested]) => tested.includes(kubernetes)).map(([line]) => line);
  if (fitting.length > 0) return `releases ${fitting.join(", ")}`;
  return all.map(([line, tested]) => `${line} with Kubernetes ${tested.join(" ")}`).join(", ");
}

/**
 * Refuses releases that their makers do not test together.
 *
 * @param where what to set so that they pass anyway, for the hint
 * @throws Failure `document` naming every part and what is allowed
 */
export function requireTested(
  tuple: ReleaseTuple,
  { allowUntested, where }: { readonly allowUntested: boolean; readonly where: string },
): void {
  const problems = allowUntested ? [] : untestedParts(tuple);
  if (problems.length === 0) return;
  throw new Failure("document", problems.join("\n"), {
    hint: `choose another release, or set allowUntested: true ${where}`,
  });
}
