/** The programs on a host: which ones, and the script that sees to them after the copy. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../contracts/failure.ts";
import type { Host } from "../contracts/testbed.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderTable, shellPart } from "./shell.ts";

/** Where programs are found on every host. */
export const programDirectory = "/var/lib/ztbench/bin";

export type ProgramSet = {
  /** Directory on this machine. */
  readonly source: string;
  /** SHA-256 by name, in the order of the names. */
  readonly digests: Readonly<Record<string, string>>;
  /**
   * Directory on the hosts. It changes with the contents, so that a copy never writes into
   * programs that run.
   */
  readonly target: string;
};

/**
 * Reads the programs in a directory.
 *
 * @throws Failure `testbed` if it is missing or empty
 */
export function readPrograms(source: string): ProgramSet {
  const names = existsSync(source) ? readdirSync(source).sort() : [];
  if (names.length === 0) {
    throw new Failure("testbed", `programs: none to copy to the hosts, expected in ${source}`, {
      hint: "make tools",
    });
  }
  const digests = Object.fromEntries(
    names.map((name) => [name, sha256(readFileSync(join(source, name)))]),
  );
  const digest = sha256(JSON.stringify(digests)).slice(0, 12);
  return { source, digests, target: `/var/lib/ztbench/programs/${digest}` };
}

function sha256(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Makes copied programs executable, checks each against its digest, and links them into place. */
export function renderPrograms(host: Host, set: ProgramSet): HostScript {
  return {
    prelude: [
      `host=${quote(host.name)}`,
      `directory=${quote(set.target)}`,
      renderTable("programs", Object.entries(set.digests)),
      shellPart("lease"),
      shellPart("programs"),
    ].join("\n"),
    create: "programs_create",
    remove: "programs_remove",
  };
}
