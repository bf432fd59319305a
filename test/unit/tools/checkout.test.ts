import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { type Placement, placePrograms } from "../../../tools/checkout.ts";
import { readToolsManifest } from "../../../tools/manifest.ts";
import { toolPaths } from "../../../tools/paths.ts";

const header = { schema: "ztbench/tools/1", set: "lab", platform: "linux-x64" } as const;

let root = "";
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), "checkout-"));
  const { bin, hostBin } = toolPaths(root);
  await mkdir(bin, { recursive: true });
  await mkdir(hostBin, { recursive: true });
});
afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

async function program(name: string, content: string): Promise<Placement> {
  const source = path.join(root, `cached-${name}-${content}`);
  await writeFile(source, content);
  return {
    source,
    program: {
      name,
      version: "1.0.0",
      sha256: "0".repeat(64),
      author: "upstream",
      provenance: "test",
      bytes: content.length,
      key: `key-of-${content}`,
      files: [`bin/${name}`, `host-bin/${name}`],
    },
  };
}

test("programs lie where the paths say, and the manifest reads back", async () => {
  const placed = await placePrograms(root, [await program("vegeta", "one")], header);
  assert.equal(await readFile(toolPaths(root).vegeta, "utf8"), "one");
  assert.deepEqual(await readToolsManifest(root), placed);
});

test("a new version replaces the old one, and what is no longer wanted goes", async () => {
  const old = [await program("vegeta", "one"), await program("envoy", "one")];
  await placePrograms(root, old, header);
  await placePrograms(root, [await program("vegeta", "other")], header);
  assert.equal(await readFile(toolPaths(root).vegeta, "utf8"), "other");
  await assert.rejects(stat(toolPaths(root).envoy), /ENOENT/);
});

test("a second run touches nothing", async () => {
  const placements = [await program("vegeta", "one")];
  await placePrograms(root, placements, header);
  const before = await stat(toolPaths(root).manifest);
  await placePrograms(root, placements, header);
  const after = await stat(toolPaths(root).manifest);
  assert.equal(after.ino, before.ino);
  assert.equal(after.mtimeMs, before.mtimeMs);
});

test("a checkout without tools names the command that installs them", async () => {
  await assert.rejects(readToolsManifest(root), (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.equal(error.code, "testbed");
    assert.match(error.message, /manifest\.json: tools are not installed/);
    assert.match(error.hint ?? "", /make tools/);
    return true;
  });
});

test("a manifest of another version is refused", async () => {
  await writeFile(toolPaths(root).manifest, '{"schema":"ztbench/tools/0"}');
  await assert.rejects(readToolsManifest(root), /not a manifest of this version/);
});
