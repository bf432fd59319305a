/** One judged run of a campaign, and the figures of it that are compared. */
import type { Condition } from "../contracts/plan.ts";
import { type Cell, none, value } from "./cell.ts";
import type { ColdStart } from "./cold-start.ts";
import type { LoadConnections } from "./connections.ts";
import type { GateResult, RunVerdict } from "./gates/gate.ts";
import type { RunLatency } from "./latency.ts";
import type { RunMatrix } from "./matrix.ts";
import type { RunResources } from "./resources.ts";
import type { RunRotation } from "./rotation.ts";
import type { LegFacts } from "./wire.ts";

/** A run that was measured, or broke off before there was anything to measure. */
export type JudgedRun = {
  readonly name: string;
  readonly run: number;
  readonly block: number;
  readonly position: number;
  readonly label: string;
  readonly arm: "a" | "b";
  readonly condition: Condition;
  readonly verdict: RunVerdict;
  readonly gates: readonly GateResult[];
  readonly latency?: RunLatency;
  readonly resources?: RunResources;
  readonly connections?: LoadConnections;
  /** Of a cold start only. */
  readonly coldStart?: ColdStart;
  readonly wire?: readonly LegFacts[];
  /** Connections, memory, files, network and sessions. */
  readonly matrix?: RunMatrix;
  /** Of topologies whose proxies are given certificates. */
  readonly rotation?: RunRotation;
};

export const metricIds = [
  "responseP50",
  "responseP95",
  "responseP99",
  "responseP999",
  "responseMax",
  "serviceP50",
  "serviceP99",
  "lagP50",
  "lagP99",
  "sentShare",
  "failedShare",
  "cpuPerRequest",
  "cores",
  "generatorShare",
] as const;
export type MetricId = (typeof metricIds)[number];
export type Metrics = Readonly<Record<MetricId, Cell>>;

/** The figures of one run that are compared. */
export function metricsOf(latency: RunLatency, resources: RunResources): Metrics {
  const { response, service, lag, planned, sent } = latency;
  return {
    responseP50: response.quantiles.p50,
    responseP95: response.quantiles.p95,
    responseP99: response.quantiles.p99,
    responseP999: response.quantiles["p99.9"],
    responseMax: response.maxNs,
    serviceP50: service.quantiles.p50,
    serviceP99: service.quantiles.p99,
    lagP50: lag.quantiles.p50,
    lagP99: lag.quantiles.p99,
    sentShare: value(sent / planned, "share"),
    failedShare: sent === 0 ? none("nothing was sent") : value(latency.failed / sent, "share"),
    cpuPerRequest: resources.cpuPerRequest,
    cores: resources.cores,
    generatorShare: resources.generatorShare,
  };
}
