/** The lab's control groups on a machine whose PID 1 is not systemd: one per host, one to watch. */
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "../../contracts/failure.ts";

const removeSeconds = 5;
const pollMs = 20;

/**
 * Mount points that nspawn needs: the unified hierarchy and, on a hybrid machine, systemd's own.
 * @param mountinfo text of /proc/self/mountinfo
 */
export function cgroupRoots(mountinfo: string): string[] {
  const mounts = mountinfo.split("\n").map((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [type = "", , options = ""] = after.split(" ");
    return { path: before.split(" ")[4] ?? "", type, options: options.split(",") };
  });
  const unified = mounts.find((mount) => mount.type === "cgroup2");
  const named = mounts.find(
    (mount) => mount.type === "cgroup" && mount.options.includes("name=systemd"),
  );
  return [unified, named].flatMap((mount) => (mount === undefined ? [] : [mount.path]));
}

/** Directories of one group of the lab, in every hierarchy. */
export async function cgroupDirectories(group: string): Promise<string[]> {
  const mountinfo = await readFile("/proc/self/mountinfo", "utf8");
  return cgroupRoots(mountinfo).map((root) => join(root, group));
}

/**
 * Makes a group in every hierarchy and returns its directories.
 * @throws Failure `testbed` on a machine without the unified hierarchy
 */
export async function makeCgroup(group: string): Promise<string[]> {
  const directories = await cgroupDirectories(group);
  if (directories.length === 0) {
    throw new Failure(
      "testbed",
      "control groups: no cgroup2 mounted on this machine, one is needed",
      { hint: "mount -t cgroup2 none /sys/fs/cgroup" },
    );
  }
  for (const directory of directories) await mkdir(directory, { recursive: true });
  return directories;
}

/** Kills whatever runs in a group, whoever its parent is. */
export async function killCgroup(group: string): Promise<void> {
  for (const directory of await cgroupDirectories(group)) {
    // Only the unified hierarchy has this file, and only for a group that exists.
    await writeFile(join(directory, "cgroup.kill"), "1", { flag: "r+" }).catch(() => undefined);
  }
}

/**
 * Removes a group with all its children.
 * @throws Failure `testbed` naming what is still in use after some seconds
 */
export async function removeCgroup(group: string): Promise<void> {
  const deadline = Date.now() + removeSeconds * 1000;
  for (const directory of await cgroupDirectories(group)) {
    while (!(await removeTree(directory))) {
      if (Date.now() > deadline) {
        throw new Failure("testbed", `control group ${directory}: still in use, cannot be removed`);
      }
      await delay(pollMs);
    }
  }
}

/** @returns whether nothing is left */
async function removeTree(directory: string): Promise<boolean> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return true;
  for (const entry of entries) {
    if (entry.isDirectory()) await removeTree(join(directory, entry.name));
  }
  return rmdir(directory).then(
    () => true,
    () => false,
  );
}
