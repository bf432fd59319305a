/** Builds the read-only root of all lab hosts once and keeps it under its content key. */
import { mkdir, readFile, rename, rm, stat, symlink, writeFile, readdir } from "node:fs/promises";
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { Failure } from "../../contracts/failure.ts";
import { $ } from "zx";
import {
  baseFiles,
  baseKey,
  maskedUnitsOf,
  mmdebstrapArgv,
  sealedArgv,
  type BaseTarget,
} from "./base-recipe.ts";
import { attempt, commandEnvironment, demand, lastLines } from "./command.ts";
import { persistentPath } from "./layout.ts";
import { withLock } from "./lock.ts";
import type { LabProfile } from "./profile.ts";

/** Written last into a root; its content identifies the exact package versions. */
const completeMark = ".ztbench-base";
const manifestName = ".ztbench-manifest";
const partPattern = /^base-[0-9a-f]+\.part$/;
const buildSeconds = 900;
const heartbeatMs = 5000;

export type Base = {
  readonly directory: string;
  readonly key: string;
  /** SHA-256 of the sorted package=version list. */
  readonly manifest: string;
};

/**
 * Returns the base root, building it first if this machine has none under the current key.
 * @throws Failure `testbed` when mmdebstrap fails, with its last lines
 */
export async function ensureBase(
  stateDir: string,
  profile: LabProfile,
  progress: (line: string) => void,
): Promise<Base> {
  const target = await baseTarget(profile);
  const key = baseKey(target);
  const directory = join(stateDir, `base-${key}`);
  const ready = await readBase(directory, key);
  if (ready !== undefined) return ready;
  return withLock(join(stateDir, "base.lock"), buildSeconds, async () => {
    // Another process may have finished it while this one waited for the lock.
    const meanwhile = await readBase(directory, key);
    if (meanwhile !== undefined) return meanwhile;
    await removeParts(stateDir);
    const part = `${directory}.part`;
    try {
      await build(target, part, progress);
      await rename(part, directory);
    } catch (error) {
      await removeTree(part);
      throw error;
    }
    const built = await readBase(directory, key);
    if (built === undefined)
      throw new Error(`base root ${directory} is incomplete after its build`);
    return built;
  });
}

async function readBase(directory: string, key: string): Promise<Base | undefined> {
  try {
    const manifest = (await readFile(join(directory, completeMark), "utf8")).trim();
    return { directory, key, manifest };
  } catch {
    return undefined;
  }
}

async function build(
  target: BaseTarget,
  part: string,
  progress: (line: string) => void,
): Promise<void> {
  const started = Date.now();
  const elapsed = (): string => ((Date.now() - started) / 1000).toFixed(0);
  progress(
    `base root: building once for profile ${target.profile}, Debian ${target.suite}, ` +
      "about a minute",
  );
  const building = $({
    quiet: true,
    nothrow: true,
    env: { ...commandEnvironment(), SOURCE_DATE_EPOCH: "1700000000" },
    timeout: `${buildSeconds}s`,
  })`${sealedArgv(mmdebstrapArgv(target, part))}`;
  let last = "";
  building.stderr.on("data", (chunk: Buffer) => {
    last = /^I: .*$/m.exec(chunk.toString())?.[0].slice(3) ?? last;
  });
  const heartbeat = setInterval(() => {
    progress(`base root: ${elapsed()} s, ${last}`);
  }, heartbeatMs);
  const result = await building.finally(() => {
    clearInterval(heartbeat);
  });
  if (result.exitCode !== 0) {
    throw new Failure(
      "testbed",
      `base root: mmdebstrap failed, exit code ${result.exitCode ?? "none"}: ` +
        lastLines(result.stderr, 8),
      { hint: "check that apt can reach its archive (apt-get update), then run it again" },
    );
  }
  await finish(target.profile, part);
  progress(`base root: ready after ${elapsed()} s`);
}

/** Writes masks, configuration and the manifest into a root that mmdebstrap has left. */
async function finish(profile: LabProfile, part: string): Promise<void> {
  const units = join(part, "etc/systemd/system");
  for (const unit of maskedUnitsOf(profile)) {
    await rm(join(units, unit), { force: true });
    await symlink("/dev/null", join(units, unit));
  }
  for (const [path, content] of Object.entries(baseFiles)) {
    const mode = path.startsWith("root/") || path.endsWith("_key") ? 0o600 : 0o644;
    await mkdir(dirname(join(part, path)), { recursive: true });
    await writeFile(join(part, path), content, { mode });
  }
  await mkdir(join(part, persistentPath), { recursive: true });
  const admin = `--admindir=${join(part, "var/lib/dpkg")}`;
  const format = "${Package}=${Version}\n";
  const packages = (await demand(["dpkg-query", admin, "-W", "-f", format])).split("\n");
  const manifest = packages
    .filter((line) => line !== "")
    .sort()
    .join("\n");
  await writeFile(join(part, manifestName), `${manifest}\n`);
  const hash = createHash("sha256").update(manifest).digest("hex");
  await writeFile(join(part, completeMark), `${hash}\n`);
}

async function baseTarget(profile: LabProfile): Promise<BaseTarget> {
  const release = await readFile("/etc/os-release", "utf8");
  const suite = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(release)?.[1];
  const sources = await firstFile([
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
    "/etc/apt/sources.list",
  ]);
  if (suite === undefined || sources === undefined) {
    throw new Failure(
      "testbed",
      "base root: this machine has no Debian release name or no apt sources, both are needed",
      { hint: "run the lab on Debian 12 or a derivative" },
    );
  }
  const architecture = (await demand(["dpkg", "--print-architecture"])).trim();
  return { profile, suite, architecture, sources };
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() === true && found.size > 0) return path;
  }
  return undefined;
}

/** Removes what a killed build left, unless a build is going on. */
export async function removeInterruptedBuilds(stateDir: string): Promise<void> {
  const lock = join(stateDir, "base.lock");
  const left = (await readdir(stateDir)).some((entry) => partPattern.test(entry));
  if (left) await withLock(lock, 0, () => removeParts(stateDir)).catch(ignoreFailure);
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof Failure)) throw error;
}

/** What an interrupted build left; only called under the build lock. */
async function removeParts(stateDir: string): Promise<void> {
  for (const entry of await readdir(stateDir)) {
    if (partPattern.test(entry)) await removeTree(join(stateDir, entry));
  }
}

/** Never crosses into another file system: a stale mount below must not lose its files. */
async function removeTree(path: string): Promise<void> {
  await attempt(["rm", "-rf", "--one-file-system", path], { timeoutSeconds: 120 });
}
