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
  const names = missing.map((p) => p.name);
  const list = names.join(" ");
  const hint = `as root: apt-get update && apt-get install -y --no-install-recommends ${list}`;
  const problem = `Debian packages: missing ${names.join(", ")}`;
  if (!(await isInstalled("apt-get"))) {
    const commands = missing.flatMap((p) => p.commands).join(", ");
    throw new Failure("testbed", `${problem}, and this machine has no apt-get`, {
      hint: `install what has the commands ${commands}`,
    });
  }
  if (process.getuid?.() !== 0) throw new Failure("testbed", `${problem}, and not root`, { hint });
  progress(`installing Debian packages: ${list}`);
  let problemSeen = await apt(["install", "--no-install-recommends", ...names]);
  if (problemSeen !== undefined) {
    // Package lists may be missing or old: one update mends that.
    await apt(["update"]);
    problemSeen = await apt(["install", "--no-install-recommends", ...names]);
  }
  if (problemSeen === undefined && (await missingPackages(purposes)).length === 0) return;
  const said = problemSeen === undefined ? "" : `:\n  ${problemSeen}`;
  throw new Failure("testbed", `${problem}, and apt-get could not install them${said}`, { hint });
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
