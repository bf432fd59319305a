/**
 * The connections of the load driver, as the kernel of its host knew them: established ones just
 * before measuring began, and how many that host opened while it lasted.
 */
import type { RunRecord } from "../contracts/record.ts";
import { type Cell, none, value } from "./cell.ts";
import { activeOpens } from "./proxy-counters.ts";
import { growthWithin, pointsOf, type Sample } from "./samples.ts";

export type LoadConnections = {
  /** From the load host to the entry. */
  readonly established: Cell;
  /** By the load host to anywhere while requests were due, its sidecar's among them. */
  readonly opened: Cell;
};

/** As for CPU time: readings that cover less than half of the run say too little. */
const coverageMin = 0.5;

/** File of the run that holds what `ss` printed. */
export function connectionsFile({ deployment }: RunRecord): string {
  return `connections/${deployment.entry.host}-before.txt`;
}

/**
 * @param text what `ss -Htn` printed, one line a connection; undefined if it was not asked
 * @param samples of the load host, times relative to the start of the load plan
 */
export function readConnections(
  text: string | undefined,
  samples: readonly Sample[],
  planNs: number,
): LoadConnections {
  const growth = growthWithin(
    pointsOf(samples, "/proc/net/snmp", activeOpens),
    0,
    planNs,
    coverageMin,
  );
  const lines = text?.split("\n").filter((line) => line.trim() !== "");
  return {
    established: lines === undefined ? none("not asked") : value(lines.length, "count"),
    opened: typeof growth === "string" ? none(growth) : value(growth.delta, "count"),
  };
}
