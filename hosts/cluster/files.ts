/** Renders what is done with the files of a cluster on a host, after the copy. Pure. */
import type { Host } from "../../contracts/testbed.ts";
import { digestOf } from "../payload.ts";
import type { HostScript } from "../runner.ts";
import { quote, renderTable, shellPart } from "../shell.ts";
import { type ClusterFile, clusterFileDirectory } from "./cluster.ts";

/**
 * The directory of a set of files on a host. It changes with any of them, so that a copy never
 * writes into programs that run.
 */
export function directoryOf(files: readonly ClusterFile[]): string {
  const contents = files.map(({ name, digest }) => [name, digest]);
  return `${clusterFileDirectory}/${digestOf(contents).slice(0, 12)}`;
}

/**
 * Checks each copied file against its digest, makes programs executable, and sweeps earlier sets.
 * Nothing is undone here: when files are replaced, the new ones have come by then. Whatever is
 * left goes with the lease of the cluster.
 */
export function renderClusterFiles(host: Host, files: readonly ClusterFile[]): HostScript {
  return {
    prelude: [
      `host=${quote(host.name)}`,
      `directory=${directoryOf(files)}`,
      renderTable(
        "files",
        files.map(({ name, digest, executable }) => [name, digest, executable ? "0755" : "0644"]),
      ),
      shellPart("lease"),
      shellPart("cluster-files"),
    ].join("\n"),
    create: "cluster_files_create",
  };
}
