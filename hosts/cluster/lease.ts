/**
 * Renders the mark on a host that it has a cluster. While it is there, the hosts stack is not
 * destroyed; it is not taken while a topology or a campaign holds the host. Pure.
 */
import type { Host } from "../../contracts/testbed.ts";
import { leaseWord } from "../lease.ts";
import type { HostScript } from "../runner.ts";
import { quote, shellPart } from "../shell.ts";
import { clusterFileDirectory } from "./cluster.ts";

/** The stack that holds the lease, as people name it. */
const clusterStackName = "cluster";

/**
 * `create` takes the mark or names who holds the host; `remove` takes away the files of the
 * cluster, and gives the mark back if it is ours.
 */
export function renderClusterLease(host: Host, owner: string): HostScript {
  const word = leaseWord("owner", owner);
  return {
    prelude: [
      `host=${quote(host.name)}`,
      `cluster_files=${clusterFileDirectory}`,
      shellPart("lease"),
    ].join("\n"),
    create: `cluster_lease_take ${word} ${clusterStackName}`,
    remove: `rm -rf "$cluster_files"\nlease_drop cluster ${word}`,
  };
}

/** Refuses to let go of a cluster while a topology or a campaign holds the host. */
export function renderClusterGuard(host: Host): HostScript {
  return {
    prelude: [`host=${quote(host.name)}`, shellPart("lease")].join("\n"),
    create: ":",
    remove: "refuse_while_leased",
  };
}
