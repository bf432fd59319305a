/** Finds a lab's processes by what the kernel says about them, so that lost state does no harm. */
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { machineArgument, watchMark } from "./nspawn.ts";

/** A process id is reused; together with its start time it names one process. */
export type ProcessId = { readonly pid: number; readonly startTicks: string };

export type FoundProcess = ProcessId & {
  readonly parent: number;
  readonly argv: readonly string[];
  /** Inode of its network namespace, if readable. */
  readonly networkNamespace: string | undefined;
};

const pollMs = 10;

/** All processes of the machine that have a command line; kernel threads and zombies have none. */
export async function listProcesses(): Promise<FoundProcess[]> {
  const pids = (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const found = await Promise.all(pids.map(readProcess));
  return found.filter((process) => process !== undefined);
}

/** The nspawn supervisor of a machine. */
export function isSupervisor(process: FoundProcess, machine: string): boolean {
  return (
    basename(process.argv[0] ?? "") === "systemd-nspawn" &&
    process.argv.includes(machineArgument(machine))
  );
}

/** The shell that starts the supervisor again after a reboot. */
export function isWatcher(process: FoundProcess, machine: string): boolean {
  return process.argv[3] === watchMark && process.argv[4] === machine;
}

/** Inode of a named network namespace, or undefined if there is none. */
export async function namespaceInode(name: string): Promise<string | undefined> {
  const path = `/run/netns/${name}`;
  const [own, parent] = await Promise.all([
    stat(path).catch(() => undefined),
    stat("/run/netns").catch(() => undefined),
  ]);
  // A name without a mount is left by an interrupted `ip netns add`: a plain file, no namespace.
  if (own === undefined || parent === undefined || own.dev === parent.dev) return undefined;
  return String(own.ino);
}

/** Sends SIGKILL to exactly this process; one that has ended, or whose id was reused, is spared. */
export async function killProcess(target: ProcessId): Promise<void> {
  if ((await startTicksOf(target.pid)) !== target.startTicks) return;
  try {
    process.kill(target.pid, "SIGKILL");
  } catch {
    // It ended between the check and the signal.
  }
}

/** Waits until a process has ended. @returns false when `seconds` were not enough */
export async function waitForEnd(target: ProcessId, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  while ((await startTicksOf(target.pid)) === target.startTicks) {
    if (Date.now() > deadline) return false;
    await delay(pollMs);
  }
  return true;
}

/** Start time in clock ticks since boot; undefined once the process is gone or a zombie. */
async function startTicksOf(pid: number): Promise<string | undefined> {
  return parseStat(await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""))?.startTicks;
}

/**
 * Reads fields 4 and 22 of /proc/PID/stat; the name in field 2 may hold spaces and brackets.
 * A zombie counts as gone.
 */
export function parseStat(text: string): { parent: number; startTicks: string } | undefined {
  const [state, parent, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const startTicks = rest[17];
  if (state === "Z" || state === "X" || startTicks === undefined) return undefined;
  return { parent: Number(parent), startTicks };
}

async function readProcess(pid: number): Promise<FoundProcess | undefined> {
  const [cmdline, stat, namespace] = await Promise.all([
    readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""),
    readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""),
    readlink(`/proc/${pid}/ns/net`).catch(() => undefined),
  ]);
  const facts = parseStat(stat);
  if (cmdline === "" || facts === undefined) return undefined;
  const networkNamespace = namespace?.replace(/\D/g, "");
  return { pid, ...facts, argv: cmdline.split("\0").slice(0, -1), networkNamespace };
}
