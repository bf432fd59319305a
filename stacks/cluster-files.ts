/** Finds the files that a cluster needs on this machine, and takes their digests. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Failure } from "../contracts/failure.ts";
import type { ClusterFile } from "../hosts/cluster/cluster.ts";
import { toolPaths } from "../tools/paths.ts";

const archiveSuffix = ".tar";
const allArchives = `*${archiveSuffix}`;

const root = path.resolve(import.meta.dirname, "..");

/**
 * The named files, from the directories of the installer. Names that end in `.tar` are image
 * archives; all others are programs. `*.tar` stands for all archives that are there.
 *
 * @throws Failure `testbed` naming every file that is missing
 */
export function readClusterFiles(names: readonly string[]): ReadonlyMap<string, ClusterFile> {
  const directories = clusterDirectories();
  const all = names.flatMap((name) => (name === allArchives ? archivesIn(directories) : [name]));
  const found = [...new Set(all)].map((name) => [name, findIn(directories, name)] as const);
  const missing = found.filter(([, source]) => source === undefined).map(([name]) => name);
  if (missing.length > 0) {
    throw new Failure(
      "testbed",
      `cluster files: ${missing.join(", ")} missing, expected in ${directories.join(" or ")}`,
      { hint: "node --import tsx tools/install.ts --with-cluster" },
    );
  }
  const files = found.flatMap(([name, source]) => (source === undefined ? [] : [{ name, source }]));
  return new Map(
    files.map(({ name, source }) => [
      name,
      { name, source, digest: digestOf(source), executable: !name.endsWith(archiveSuffix) },
    ]),
  );
}

function clusterDirectories(): string[] {
  const { clusterBin, images } = toolPaths(root);
  return [clusterBin, images];
}

function archivesIn(directories: readonly string[]): string[] {
  const names = directories.filter((name) => existsSync(name)).flatMap((name) => readdirSync(name));
  return names.filter((name) => name.endsWith(archiveSuffix)).sort();
}

function findIn(directories: readonly string[], name: string): string | undefined {
  return directories
    .map((directory) => path.join(directory, name))
    .find((file) => existsSync(file));
}

function digestOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
