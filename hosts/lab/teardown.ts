/** Removes everything a lab has on this machine, whole or half made, known to its state or not. */
import { mkdir, readdir, readFile, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "../../contracts/failure.ts";
import { killCgroup, removeCgroup } from "./cgroups.ts";
import { attempt } from "./command.ts";
import { namespacesOf } from "./layout.ts";
import { isRunBySystemd, machineBootId } from "./machine.ts";
import { unitOf } from "./nspawn.ts";
import type { Lab } from "./options.ts";
import {
  isSupervisor,
  isWatcher,
  killProcess,
  listProcesses,
  namespaceInode,
  waitForEnd,
  type FoundProcess,
} from "./processes.ts";
import { ownLinks } from "./state.ts";

const supervisorSeconds = 3;
const settleSeconds = 3;
const pollMs = 20;
const namespaceDirectory = "/run/netns";

/**
 * Takes the lab off the machine. Hosts are killed rather than shut down: their roots are volatile,
 * and nothing on them is to be kept.
 * @throws Failure `testbed` naming what could not be removed
 */
export async function tearDown(lab: Lab): Promise<void> {
  await endHosts(lab);
  await killCgroup(lab.layout.prefix);
  await endNamespaceProcesses(lab);
  await removeNetwork(lab);
  await removeCgroup(lab.layout.prefix);
  await removeFiles(lab);
}

async function endHosts(lab: Lab): Promise<void> {
  const processes = await listProcesses();
  const machines = lab.layout.hosts.map((host) => host.machine);
  const watchers = processes.filter((p) => machines.some((machine) => isWatcher(p, machine)));
  // First, or they would start the hosts again.
  await Promise.all(watchers.map(killProcess));
  const supervisors = processes.filter((p) => machines.some((m) => isSupervisor(p, m)));
  await Promise.all(supervisors.map((supervisor) => endSupervisor(supervisor, processes)));
  if (await isRunBySystemd()) {
    const units = machines.map(unitOf);
    await attempt(["systemctl", "stop", ...units]);
    await attempt(["systemctl", "reset-failed", ...units]);
  }
}

/** Ends a host from inside, so that its supervisor cleans up after itself; else by force. */
async function endSupervisor(
  supervisor: FoundProcess,
  processes: readonly FoundProcess[],
): Promise<void> {
  const children = processes.filter((process) => process.parent === supervisor.pid);
  await Promise.all(children.map(killProcess));
  if (await waitForEnd(supervisor, supervisorSeconds)) return;
  await killProcess(supervisor);
  await waitForEnd(supervisor, supervisorSeconds);
}

/** Ends what else runs in the lab's namespaces; only the lab makes these, so all of it is ours. */
async function endNamespaceProcesses(lab: Lab): Promise<void> {
  const inodes = await Promise.all(namespacesOf(lab.layout).map(namespaceInode));
  const own = new Set(inodes.filter((inode) => inode !== undefined));
  if (own.size === 0) return;
  const deadline = Date.now() + settleSeconds * 1000;
  for (;;) {
    const left = (await listProcesses()).filter(
      (p) => p.networkNamespace !== undefined && own.has(p.networkNamespace),
    );
    if (left.length === 0) return;
    if (Date.now() > deadline) {
      const pids = left.map((process) => process.pid).join(", ");
      throw new Failure("testbed", `lab ${lab.name}: processes ${pids} cannot be ended`);
    }
    await Promise.all(left.map(killProcess));
    await delay(pollMs);
  }
}

async function removeNetwork(lab: Lab): Promise<void> {
  const { layout } = lab;
  await attempt(["nft", "delete", "table", "netdev", layout.prefix]);
  const links = (await ownLinks(lab)).filter((link) => link.own);
  const present = await readdir(namespaceDirectory).catch((): string[] => []);
  const namespaces = namespacesOf(layout).filter((name) => present.includes(name));
  const batch = [
    ...links.map((link) => `link delete ${link.name}\n`),
    ...namespaces.map((name) => `netns delete ${name}\n`),
  ];
  if (batch.length > 0) await attempt(["ip", "-force", "-batch", "-"], { input: batch.join("") });
  await waitForLinks(lab);
  await releaseNamespaceMount(lab);
}

/** The kernel removes a deleted namespace's links later, on its own time. */
async function waitForLinks(lab: Lab): Promise<void> {
  const deadline = Date.now() + settleSeconds * 1000;
  for (;;) {
    const left = await ownLinks(lab);
    if (left.length === 0) return;
    if (Date.now() > deadline) {
      throw new Failure(
        "testbed",
        `link ${left.map((link) => link.name).join(", ")}: exists and is not this lab's`,
        { hint: "choose another lab name, or remove the link if nothing needs it" },
      );
    }
    await delay(pollMs);
  }
}

const mountMark = (lab: Lab): string => join(lab.stateDir, "netns-mount");

/**
 * The first `ip netns add` on a machine mounts /run/netns on itself; remembers that it will be the
 * lab's doing, so that the last lab can undo it.
 */
export async function noteNamespaceMount(lab: Lab): Promise<void> {
  if (await isMounted(namespaceDirectory)) return;
  await writeFile(mountMark(lab), await machineBootId());
}

async function releaseNamespaceMount(lab: Lab): Promise<void> {
  const mark = await readFile(mountMark(lab), "utf8").catch(() => undefined);
  if (mark === undefined) return;
  const namespaces = await readdir(namespaceDirectory).catch(() => []);
  if (namespaces.length > 0) return;
  if (mark === (await machineBootId()) && (await isMounted(namespaceDirectory))) {
    await attempt(["umount", namespaceDirectory]);
    await rmdir(namespaceDirectory).catch(() => undefined);
  }
  await rm(mountMark(lab), { force: true });
}

async function isMounted(path: string): Promise<boolean> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  return mounts.split("\n").some((line) => line.split(" ")[4] === path);
}

const nspawnDirectory = "/run/systemd/nspawn";

/** What nspawn leaves when it is killed: a lock on the base root, and directories of its own. */
async function removeNspawnFiles(lab: Lab): Promise<void> {
  const processes = await listProcesses();
  const inUse = processes.some((process) =>
    process.argv.some((word) => word.startsWith(`--directory=${lab.stateDir}/`)),
  );
  if (!inUse) {
    for (const entry of await readdir(lab.stateDir).catch((): string[] => [])) {
      if (!entry.startsWith("base-")) continue;
      const { dev, ino } = await stat(join(lab.stateDir, entry));
      await rm(join(nspawnDirectory, "locks", `inode-${dev}:${ino}`), { force: true });
    }
  }
  for (const directory of ["locks", "propagate", "."]) {
    // Only an empty one goes: others may run containers, too.
    await rmdir(resolve(nspawnDirectory, directory)).catch(() => undefined);
  }
}

async function removeFiles(lab: Lab): Promise<void> {
  for (const { machine } of lab.layout.hosts) {
    const propagated = join(nspawnDirectory, "propagate", machine);
    if (await isMounted(propagated)) await attempt(["umount", propagated]);
    await rmdir(propagated).catch(() => undefined);
  }
  await removeNspawnFiles(lab);
  for (const path of [lab.paths.persistent, lab.runDir]) {
    const removed = await attempt(["rm", "-rf", "--one-file-system", path], {
      timeoutSeconds: 120,
    });
    if (removed.exitCode !== 0) {
      throw new Failure("testbed", `${path}: cannot be removed, ${removed.output.trim()}`);
    }
  }
  // The parent is shared by all labs; only an empty one goes.
  await rmdir(join(lab.runDir, "..")).catch(() => undefined);
}

/** Makes the directories a boot needs. */
export async function makeDirectories(lab: Lab): Promise<void> {
  await mkdir(lab.runDir, { recursive: true, mode: 0o755 });
  for (const { role } of lab.layout.hosts) {
    await mkdir(lab.paths.persistentOf(role), { recursive: true, mode: 0o755 });
  }
}
