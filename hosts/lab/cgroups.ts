/** The lab's control groups on a machine whose PID 1 is not systemd: one per host, one to watch. */
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "../../contracts/failure.ts";
import type { LabProfile } from "./profile.ts";

const removeSeconds = 5;
const pollMs = 20;

export type CgroupRoots = {
  /** What nspawn needs: the unified hierarchy and, on a hybrid machine, systemd's own. */
  readonly host: readonly string[];
  /** Hierarchies of version 1 that hold controllers, on a hybrid machine. */
  readonly controllers: readonly string[];
};

/**
 * Mount points of the machine's control groups.
 * @param mountinfo text of /proc/self/mountinfo
 */
export function cgroupRoots(mountinfo: string): CgroupRoots {
  const mounts = mountinfo.split("\n").map((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [type = "", , options = ""] = after.split(" ");
    return { path: before.split(" ")[4] ?? "", type, options: options.split(",") };
  });
  const unified = mounts.find((mount) => mount.type === "cgroup2");
  const named = mounts.find(
    (mount) => mount.type === "cgroup" && mount.options.includes("name=systemd"),
  );
  const paths = (found: readonly (typeof mounts)[number][]): string[] => [
    ...new Set(found.map((mount) => mount.path)),
  ];
  return {
    host: [unified, named].flatMap((mount) => (mount === undefined ? [] : [mount.path])),
    controllers: paths(mounts.filter((mount) => mount.type === "cgroup" && mount !== named)),
  };
}

async function readRoots(): Promise<CgroupRoots> {
  return cgroupRoots(await readFile("/proc/self/mountinfo", "utf8"));
}

/** Directories of one group of the lab, in every hierarchy that a lab of any profile may use. */
export async function cgroupDirectories(group: string): Promise<string[]> {
  const { host, controllers } = await readRoots();
  return [...host, ...controllers].map((root) => join(root, group));
}

/**
 * Makes a group and returns its directories: in the hierarchies that nspawn needs, and for a node
 * of a cluster in those of all controllers, so that its containers stay below.
 * @throws Failure `testbed` on a machine without the unified hierarchy
 */
export async function makeCgroup(group: string, profile: LabProfile): Promise<string[]> {
  const { host, controllers } = await readRoots();
  const roots = profile === "kubernetes" ? [...host, ...controllers] : host;
  const directories = roots.map((root) => join(root, group));
  if (directories.length === 0) {
    throw new Failure(
      "testbed",
      "control groups: no cgroup2 mounted on this machine, one is needed",
      { hint: "mount -t cgroup2 none /sys/fs/cgroup" },
    );
  }
  for (const root of roots) await makeDirectory(root, group);
  return directories;
}

/** A new group of the controller `cpuset` takes no process before it has CPUs and memory. */
async function makeDirectory(root: string, group: string): Promise<void> {
  let directory = root;
  for (const name of group.split("/")) {
    const parent = directory;
    directory = join(parent, name);
    await mkdir(directory, { recursive: true });
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const own = await readFile(join(directory, file), "utf8").catch(() => undefined);
      if (own?.trim() !== "") continue;
      await writeFile(join(directory, file), await readFile(join(parent, file), "utf8"));
    }
  }
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
