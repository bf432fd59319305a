/** What gates judge: everything that was read of one run; types only. */
import type { Plan } from "../../contracts/plan.ts";
import type { RunRecord } from "../../contracts/record.ts";
import type { ConnectSeries } from "../connect.ts";
import type { LoadConnections } from "../connections.ts";
import type { HostEvidence } from "../host-evidence.ts";
import type { RunLatency } from "../latency.ts";
import type { ProxyFacts } from "../proxy-facts.ts";
import type { RequestShape } from "../request-shape.ts";
import type { RunResources } from "../resources.ts";
import type { LegFacts } from "../wire.ts";

/** What runs must share, from the campaign's first (of the treatment, for digests and clusters). */
export type Reference = {
  readonly tuning: RunRecord["tuning"];
  readonly configurationDigest: string;
  /** Of pods only. */
  readonly cluster?: RunRecord["deployment"]["cluster"];
  /** What each host's first edge sample said, by host. */
  readonly hosts: ReadonlyMap<string, HostEvidence>;
};

export type GateInput = {
  readonly record: RunRecord;
  readonly plan: Plan;
  readonly latency: RunLatency;
  /** How requests were spread over time. */
  readonly shape: RequestShape;
  readonly resources: RunResources;
  readonly connections: LoadConnections;
  readonly reference: Reference;
  readonly wire: readonly LegFacts[];
  readonly proxies: readonly ProxyFacts[];
  readonly hosts: ReadonlyMap<string, HostEvidence>;
  /** Pauses of the driver's garbage collections, nanoseconds; undefined if it told none. */
  readonly pausesNs: readonly number[] | undefined;
  readonly connect: ConnectSeries | undefined;
  /** Readback at the end of the run's block; undefined while the block is not over. */
  readonly tuningAfter: RunRecord["tuning"] | undefined;
};
