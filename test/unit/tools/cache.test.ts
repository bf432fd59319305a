import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { cacheKey, cacheRoot, lookUp, type Maker, obtain, prune } from "../../../tools/cache.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), "cache-"));
});
afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

const key = cacheKey({ kind: "test" });
const ignore = () => undefined;
const writes =
  (content: string): Maker =>
  async (target) => {
    await writeFile(target, content);
    return "test";
  };

test("the cache is where the environment says, outside every checkout", () => {
  assert.equal(cacheRoot({ ZTBENCH_CACHE: "/c" }, "/home/u"), "/c");
  assert.equal(cacheRoot({ XDG_CACHE_HOME: "/x" }, "/home/u"), "/x/ztbench");
  assert.equal(cacheRoot({ XDG_CACHE_HOME: "relative" }, "/home/u"), "/home/u/.cache/ztbench");
  assert.equal(cacheRoot({}, "/home/u"), "/home/u/.cache/ztbench");
});

test("a key depends on every value but not on the order of names", () => {
  const base = { a: 1, b: { c: "x", d: ["y", "z"] } };
  assert.equal(cacheKey(base), cacheKey({ b: { d: ["y", "z"], c: "x" }, a: 1 }));
  assert.notEqual(cacheKey(base), cacheKey({ ...base, a: 2 }));
  assert.notEqual(cacheKey(base), cacheKey({ ...base, b: { c: "x", d: ["z", "y"] } }));
});

test("a program is made once, and recorded with its digest", async () => {
  const made = await obtain(root, key, writes("hello"), ignore);
  assert.equal(made.bytes, 5);
  assert.equal(made.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  const again = await obtain(root, key, () => Promise.reject(new Error("made twice")), ignore);
  assert.equal(await readFile(again.file, "utf8"), "hello");
});

test("a failed maker leaves no entry, and the next one starts afresh", async () => {
  const failing: Maker = async (target) => {
    await writeFile(target, "half");
    throw new Error("killed");
  };
  await assert.rejects(obtain(root, key, failing, ignore), /killed/);
  assert.equal(await lookUp(root, key), undefined);
  assert.deepEqual(await readdir(path.join(root, "partial")), []);
  await obtain(root, key, writes("whole"), ignore);
  assert.deepEqual(await readdir(path.join(root, "partial")), []);
});

test("what a killed run left is removed", async () => {
  const left = path.join(root, "partial", key, "e-old");
  await mkdir(left, { recursive: true });
  await writeFile(path.join(left, "program"), "half");
  const made = await obtain(root, key, writes("whole"), ignore);
  assert.equal(await readFile(made.file, "utf8"), "whole");
  assert.deepEqual(await readdir(path.join(root, "partial")), []);
});

test("a damaged entry is made anew", async () => {
  const made = await obtain(root, key, writes("whole"), ignore);
  await chmod(made.file, 0o755);
  await writeFile(made.file, "ho");
  assert.equal(await lookUp(root, key), undefined);
  const again = await obtain(root, key, writes("whole"), ignore);
  assert.equal(await readFile(again.file, "utf8"), "whole");
});

test("of two at once one makes the program and the other waits for it", async () => {
  let count = 0;
  let waits = 0;
  let letGo = ignore;
  const gate = new Promise<void>((resolve) => {
    letGo = () => {
      resolve();
      return undefined;
    };
  });
  const slow: Maker = async (target) => {
    count += 1;
    await gate;
    return writes("once")(target);
  };
  const onWait = () => {
    waits += 1;
    letGo();
  };
  const both = await Promise.all([
    obtain(root, key, slow, onWait),
    obtain(root, key, slow, onWait),
  ]);
  assert.equal(count, 1);
  assert.equal(waits, 1);
  assert.equal(both[0].file, both[1].file);
});

test("entries that nobody asked for in 30 days go, others stay", async () => {
  const day = 24 * 3_600_000;
  await obtain(root, key, writes("whole"), ignore);
  await prune(root, Date.now() + 29 * day);
  assert.notEqual(await lookUp(root, key), undefined);
  await prune(root, Date.now() + 31 * day);
  assert.equal(await lookUp(root, key), undefined);
  await prune(path.join(root, "no-such-cache"), Date.now());
});
