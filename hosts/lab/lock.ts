/** Mutual exclusion between processes that ends with its holder, however that dies. */
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { Failure } from "../../contracts/failure.ts";

/**
 * Runs `action` while holding an exclusive lock on `path`. The lock is held by a `flock` child that
 * waits for the end of its input, which the kernel gives it when this process ends.
 * @param waitSeconds how long to wait for another holder
 * @throws Failure `testbed` when the lock was not free in time
 */
export async function withLock<T>(
  path: string,
  waitSeconds: number,
  action: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const script = "echo held; exec cat";
  const argv = ["--exclusive", "--wait", String(waitSeconds), path, "sh", "-c", script];
  const holder = spawn("flock", argv, { stdio: ["pipe", "pipe", "ignore"], detached: true });
  const ended = new Promise<void>((resolve) => {
    holder.once("close", () => {
      resolve();
    });
  });
  const held = await new Promise<boolean>((resolve, reject) => {
    holder.once("error", reject);
    holder.once("close", () => {
      resolve(false);
    });
    holder.stdout.once("data", () => {
      resolve(true);
    });
  });
  if (!held) {
    throw new Failure("testbed", `lock ${path}: still held after ${waitSeconds} s`, {
      hint: "wait for the other lab command on this machine to end, then try again",
    });
  }
  try {
    return await action();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
