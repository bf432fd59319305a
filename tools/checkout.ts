/** Puts programs of the cache into a checkout, and removes what no longer belongs there. */
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import type { InstalledProgram, ToolsManifest } from "./manifest.ts";
import { toolPaths } from "./paths.ts";

/** A program and the file that holds it in the cache. */
export type Placement = { readonly program: InstalledProgram; readonly source: string };

/**
 * Makes the tools directory hold exactly these programs, and its manifest say so. Every change
 * is a rename, so a program that is running, or an interruption, does no harm.
 */
export async function placePrograms(
  root: string,
  placements: readonly Placement[],
  header: Omit<ToolsManifest, "programs">,
): Promise<ToolsManifest> {
  const paths = toolPaths(root);
  const before = await readFile(paths.manifest, "utf8").catch(() => "");
  for (const { program, source } of placements) {
    const isRecorded = before.includes(`"${program.key}"`);
    for (const file of program.files) {
      await place(source, path.join(paths.tools, file), isRecorded);
    }
  }
  const wanted = new Set(placements.flatMap((p) => p.program.files));
  const directories = ["bin", "host-bin", "cluster-bin", "image-bin", "images", "charts"];
  for (const directory of directories.map((name) => path.join(paths.tools, name))) {
    for (const name of await readdir(directory).catch(() => [])) {
      const file = path.join(directory, name);
      if (!wanted.has(path.relative(paths.tools, file))) await rm(file, { force: true });
    }
  }
  const manifest = { ...header, programs: placements.map((p) => p.program) };
  const text = JSON.stringify(manifest, null, 2) + "\n";
  if (text !== before) {
    const partial = `${paths.manifest}.${process.pid}`;
    await writeFile(partial, text);
    await rename(partial, paths.manifest);
  }
  return manifest;
}

/** Hard link where the cache is on the same file system, else a copy. */
async function place(source: string, target: string, isRecorded: boolean): Promise<void> {
  const wanted = await stat(source);
  const found = await stat(target).catch(() => undefined);
  if (found?.ino === wanted.ino && found.dev === wanted.dev) return;
  const isCopy = found !== undefined && found.dev !== wanted.dev && found.size === wanted.size;
  if (isCopy && isRecorded) return;
  await mkdir(path.dirname(target), { recursive: true });
  const partial = `${target}.${process.pid}`;
  await rm(partial, { force: true });
  await link(source, partial).catch(() => copyFile(source, partial));
  await rename(partial, target);
}
