/** The Debian packages of this machine: which are missing, and installing just those. */
import { access, constants } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import type { Progress } from "./progress.ts";
import { type DebianPackage, debianPackages, type PackagePurpose } from "./debian-packages.ts";

/** Where programs of administrators lie, which PATH of other users may lack. */
const systemDirectories = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/** Packages for the given purposes with a command that this machine lacks. */
export async function missingPackages(
  purposes: readonly PackagePurpose[],
): Promise<readonly DebianPackage[]> {
  const missing: DebianPackage[] = [];
  for (const wanted of debianPackages) {
    if (!purposes.includes(wanted.purpose)) continue;
    const found = await Promise.all(wanted.commands.map((command) => isInstalled(command)));
    if (found.includes(false)) missing.push(wanted);
  }
  return missing;
}

async function isInstalled(command: string): Promise<boolean> {
  const directories = [...(process.env["PATH"] ?? "").split(path.delimiter), ...systemDirectories];
  for (const directory of directories) {
    if (await isExecutable(path.join(directory, command))) return true;
  }
  return false;
}

const isExecutable = (file: string) =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );

export type Machine = { readonly isRoot: boolean; readonly hasApt: boolean };

const names = (packages: readonly DebianPackage[]) => packages.map((p) => p.name);
const problem = (missing: readonly DebianPackage[]) =>
  `Debian packages: missing ${names(missing).join(", ")}`;
const remedy = (missing: readonly DebianPackage[]) => {
  const list = names(missing).join(" ");
  return `as root: apt-get update && apt-get install -y --no-install-recommends ${list}`;
};

/** Why the missing packages cannot be installed on such a machine, if so. */
export function refusal(missing: readonly DebianPackage[], machine: Machine): Failure | undefined {
  if (!machine.hasApt) {
    const commands = missing.flatMap((p) => p.commands).join(", ");
    return new Failure("testbed", `${problem(missing)}, and this machine has no apt-get`, {
      hint: `install what has the commands ${commands}`,
    });
  }
  if (machine.isRoot) return undefined;
  return new Failure("testbed", `${problem(missing)}, and not root`, { hint: remedy(missing) });
}

/**
 * Installs the missing packages for the given purposes.
 *
 * @throws Failure `testbed` naming the packages and the command, if that needs root or apt-get
 */
export async function installPackages(
  purposes: readonly PackagePurpose[],
  progress: Progress,
): Promise<void> {
  const missing = await missingPackages(purposes);
  if (missing.length === 0) return;
  const isRoot = process.getuid?.() === 0;
  const refused = refusal(missing, { isRoot, hasApt: await isInstalled("apt-get") });
  if (refused !== undefined) throw refused;
  progress(`installing Debian packages: ${names(missing).join(" ")}`);
  const words = ["install", "--no-install-recommends", ...names(missing)];
  let said = await apt(words);
  if (said !== undefined) {
    // Package lists may be missing or old: one update mends that.
    await apt(["update"]);
    said = await apt(words);
  }
  if (said === undefined && (await missingPackages(purposes)).length === 0) return;
  const quoted = said === undefined ? "" : `:\n  ${said}`;
  throw new Failure("testbed", `${problem(missing)}, and apt-get could not install them${quoted}`, {
    hint: remedy(missing),
  });
}

/** Another apt-get may be running, for instance the machine's own upgrades: wait for it. */
const aptOptions = ["-y", "-q", "-o", "DPkg::Lock::Timeout=300"];

/** Runs apt-get; the last lines of what it said if that failed. */
async function apt(words: readonly string[]): Promise<string | undefined> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const spawn = $({ nothrow: true, quiet: true, timeout: "900s", env });
  const run = await spawn`apt-get ${[...aptOptions, ...words]}`;
  if (run.exitCode === 0) return undefined;
  return (
    run.stderr.trim().split("\n").slice(-4).join("\n  ") || `exit code ${String(run.exitCode)}`
  );
}
