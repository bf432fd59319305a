/**
 * A checkout of its own for a test of the command line: this one has a current testbed, which such
 * a test would replace.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..", "..");

/**
 * Copies what Git would, linked to the same packages, to a place inside this checkout, so that Git
 * still knows the commit.
 *
 * @param name start of the directory's name
 * @returns its path; the caller removes it
 */
export function makeCheckout(name: string): string {
  mkdirSync(path.join(root, ".ztbench"), { recursive: true });
  const directory = mkdtempSync(path.join(root, ".ztbench", `${name}-`));
  const listed = spawnSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], { cwd: root });
  for (const file of listed.stdout.toString().split("\0")) {
    const from = path.join(root, file);
    if (file !== "" && existsSync(from)) cpSync(from, path.join(directory, file));
  }
  const linked = spawnSync("cp", ["-al", "node_modules", directory], { cwd: root });
  if (linked.status !== 0) throw new Error(linked.stderr.toString());
  // A file of its own, newer than the package list: make must not install into linked files.
  rmSync(path.join(directory, "node_modules", ".installed"), { force: true });
  writeFileSync(path.join(directory, "node_modules", ".installed"), "");
  return directory;
}
