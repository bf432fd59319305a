/**
 * Loads the bash functions of `shell/` and makes whole programs of them. Functions stand in files,
 * so that they can be read and checked as bash; only data are rendered.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type ShellPart =
  | "boot"
  | "cluster-files"
  | "cluster-node"
  | "cluster-server"
  | "facts"
  | "k3s"
  | "k3s-removal"
  | "knobs"
  | "knobs-machine"
  | "knobs-nic"
  | "lease"
  | "packages"
  | "payload"
  | "pods"
  | "preflight"
  | "programs"
  | "readiness"
  | "tuning";

/** The bash functions of one file, without calling any. */
export function shellPart(part: ShellPart): string {
  return readFileSync(join(import.meta.dirname, "shell", `${part}.sh`), "utf8").trimEnd();
}

/** A word for bash: whatever it holds is taken literally. */
export function quote(text: string): string {
  return /^[A-Za-z0-9_./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Rows of a tab separated table as the body of a bash function that prints them. */
export function renderTable(name: string, rows: readonly (readonly string[])[]): string {
  for (const field of rows.flat()) {
    if (field === "" || /[\t\n]/.test(field)) {
      throw new Error(`table ${name}: field must not be empty or hold tabs, found "${field}"`);
    }
  }
  const end = `END_OF_${name.toUpperCase()}`;
  return [`${name}() {`, `cat <<'${end}'`, ...rows.map((row) => row.join("\t")), end, "}"].join(
    "\n",
  );
}

/** A program for `bash -s` that is run over a plain SSH session, not as a resource. */
export function renderProgram(parts: readonly string[], call: string): string {
  return [
    "set -euo pipefail",
    "export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ...parts,
    call,
    "",
  ].join("\n");
}
