/** Proves that no topology is on a host: renders a read-only program and reads what it prints. */
import type { Host } from "../contracts/testbed.ts";
import { Failure } from "../contracts/failure.ts";
import { quote, renderProgram } from "./shell.ts";

/** What only a deployed topology, or a run in progress, has on a host. */
const looks = [
  // Empty directories, e.g. that of the runs, hold nothing of a topology.
  `for d in /run/ztbench/*; do [ -n "$(ls -A "$d" 2>/dev/null)" ] && echo "directory $d"; done`,
  `for u in /run/systemd/system/ztbench-*; do [ -e "$u" ] && echo "unit file $u"; done`,
  `systemctl list-units --all --plain --no-legend 'ztbench-*' | awk '{print "unit " $1}'`,
  `! command -v nft >/dev/null || nft list tables | awk '/ ztbench/ {print "filter " $0}'`,
  `getent passwd | awk -F: '/^ztbench-/ {print "user " $1}'`,
  `rules=$(nft list ruleset 2>/dev/null || :)`,
  `if [[ $rules == *'chain ISTIO_'* ]]; then echo "rules of a sidecar in the packet filter"; fi`,
  `for l in /var/lib/ztbench/lease/topology; do [ -e "$l" ] && echo "lease $l"; done`,
  "true",
];

/** What only a topology in pods has in a cluster, and the words that ask there. */
export type ClusterTraces = { readonly kubectl: string; readonly namespace: string };

function lookInCluster({ kubectl, namespace }: ClusterTraces): string {
  const ask = `${kubectl} --request-timeout 10s get namespace ${quote(namespace)}`;
  return (
    `${ask} --ignore-not-found --output name 2>/dev/null | sed 's/^/cluster: /' ||` +
    " echo 'cluster: an API server that does not answer'"
  );
}

/**
 * A program for `bash -s` that prints one line for each thing left, and changes nothing.
 *
 * @param cluster on the host of an API server, if pods are looked for, too
 */
export function renderAbsence(host: Host, cluster?: ClusterTraces): string {
  const inCluster = cluster === undefined ? [] : [lookInCluster(cluster)];
  return renderProgram([`host=${quote(host.name)}`, ...inCluster, ...looks], ":");
}

/**
 * Reads what the program printed.
 *
 * @throws Failure `testbed` naming everything that is left
 */
export function checkAbsence(host: Host, printed: string): void {
  const left = printed.split("\n").filter((line) => line !== "");
  if (left.length === 0) return;
  throw new Failure(
    "testbed",
    `host ${host.name}: not left clean, ${left.join(", ")}, nothing allowed`,
    { hint: "destroy the topology that is deployed: pulumi stack ls tells which" },
  );
}
