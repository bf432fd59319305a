/**
 * Exclusive locks between processes. The kernel holds them for a child process, so a killed
 * installer leaves none behind.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Failure } from "../contracts/failure.ts";

/** Longest wait for another installer: a cold build on a slow machine. */
const waitSeconds = 45 * 60;

/**
 * Runs `work` while holding the lock on `file`, which is made if it is missing.
 *
 * @param onWait called once if another process holds the lock
 * @throws Failure `testbed` after 45 minutes of waiting, or without flock(1)
 */
export async function withLock<T>(
  file: string,
  onWait: () => void,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(path.dirname(file), { recursive: true });
  const release = (await take(file, 0)) ?? (onWait(), await take(file, waitSeconds));
  if (release === undefined) {
    throw new Failure("testbed", `${file}: lock still held after ${waitSeconds} s`, {
      hint: "see which process holds it: fuser -v " + file,
    });
  }
  try {
    return await work();
  } finally {
    await release();
  }
}

type Release = () => Promise<void>;

/** The lock lives as long as the child's standard input: both end with this process. */
async function take(file: string, seconds: number): Promise<Release | undefined> {
  const holder = spawn(
    "flock",
    ["--exclusive", "--timeout", String(seconds), file, "sh", "-c", "echo held; exec cat"],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const exited = once(holder, "exit");
  const held = once(holder.stdout, "data");
  const first = await Promise.race([
    held.then(() => "held" as const),
    exited.then(() => "refused" as const),
  ]).catch((cause: unknown) => {
    throw new Failure("testbed", `${file}: cannot be locked`, {
      cause,
      hint: "install the Debian package util-linux, which has flock(1)",
    });
  });
  if (first === "refused") return undefined;
  return async () => {
    holder.stdin.end();
    await exited;
  };
}
