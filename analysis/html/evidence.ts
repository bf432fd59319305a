/** What the page shows beside the analysis: the documents of the bundle, as they were written. */
import type { Deployment } from "../../contracts/deployment.ts";
import type { Manifest } from "../../contracts/manifest.ts";
import type { RunRecord } from "../../contracts/record.ts";
import type { BundleRun } from "../bundle.ts";
import type { Table } from "../tabular.ts";

export type Evidence = {
  /** The plan as its author wrote it, comments too. */
  readonly planText: string;
  readonly manifest: Manifest;
  readonly runs: readonly BundleRun[];
  /** Tables of other analyses, such as published figures beside measured ones. */
  readonly furtherTables?: readonly Table[];
};

/** Records of runs that were measured, in order of execution. */
export function measuredRecords({ runs }: Evidence): readonly RunRecord[] {
  return runs.flatMap(({ record }) => (record.schema === "ztbench/record/1" ? [record] : []));
}

/** What was deployed for a treatment, as its first measured run found it. */
export function deploymentOf(evidence: Evidence, label: string): Deployment | undefined {
  return measuredRecords(evidence).find((record) => record.label === label)?.deployment;
}

/** The request path in words: `load → gateway → service, HTTP/1.1, no TLS`. */
export function describePath({ legs }: Deployment): string {
  const [first] = legs;
  if (first === undefined) return "";
  const isChain = legs.every(({ from }, i) => i === 0 || legs[i - 1]?.to === from);
  const way = isChain
    ? [first.from, ...legs.map(({ to }) => to)].join(" → ")
    : legs.map(({ from, to }) => `${from} → ${to}`).join(", ");
  const versions = [...new Set(legs.map(({ http }) => `HTTP/${http}`))].join(" and ");
  const secured = legs.filter(({ tls }) => tls !== "none");
  const modes = [...new Set(secured.map(({ tls }) => (tls === "mutual" ? "mutual TLS" : "TLS")))];
  const extent =
    secured.length === legs.length ? "" : ` on ${secured.length} of ${legs.length} legs`;
  const tls = secured.length === 0 ? "no TLS" : `${modes.join(" and ")}${extent}`;
  return `${way}, ${versions}, ${tls}`;
}
