import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { withLock } from "../../../tools/lock.ts";

const root = path.resolve(import.meta.dirname, "../../..");

const holder = `
import { withLock } from "./tools/lock.ts";
const forever = () => { console.log("held"); return new Promise(() => {}); };
await withLock(process.argv[1], () => {}, forever);
`;

test("a process that is killed leaves no lock behind", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "lock-"));
  try {
    const file = path.join(directory, "lock");
    const words = ["--import", "tsx", "--input-type=module", "-e", holder, file];
    const child = spawn(process.execPath, words, {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    let waits = 0;
    const taken = withLock(
      file,
      () => {
        waits += 1;
        child.kill("SIGKILL");
      },
      () => Promise.resolve("mine"),
    );
    assert.equal(await taken, "mine");
    assert.equal(waits, 1, "the lock was not held at first");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a lock is released when its work fails", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "lock-"));
  try {
    const file = path.join(directory, "lock");
    const noWait = () => {
      assert.fail("the lock is still held");
    };
    await assert.rejects(
      withLock(file, noWait, () => Promise.reject(new Error("failed"))),
      /failed/,
    );
    assert.equal(await withLock(file, noWait, () => Promise.resolve("again")), "again");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
