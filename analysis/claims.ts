/**
 * Published figures beside ours: for each latency claimed at a rate, the service quantile of the
 * runs that the source's own driver made, or the reason why there is none to compare.
 */
import type { Claim, Claims, Quantity } from "../contracts/claims.ts";
import type { Analysis } from "./analysis.ts";
import { type Cell, none, notMeasured, numberOf } from "./cell.ts";
import type { MetricId } from "./judged-run.ts";
import { from, type From } from "./provenance.ts";
import type { Treatment } from "./comparison.ts";

/** Published latencies are service times as this driver reports them. */
const comparedDriver = "vegeta";

const metrics = { latencyP50: "serviceP50", latencyP99: "serviceP99" } as const satisfies Record<
  string,
  MetricId
>;

export type ClaimVerdict =
  /** The published value lies between the least and greatest of our runs. */
  | "within our runs"
  | "above our runs"
  | "below our runs"
  | "not comparable (lab)"
  | "not comparable (version set lab)"
  /** There is nothing to judge; the measured cell says why. */
  | "-";

export type ClaimRow = {
  /** Letter of the source and id of the claim. */
  readonly source: string;
  readonly claim: string;
  readonly topology: string;
  readonly metric: "p50" | "p99";
  readonly rateQps: number;
  readonly publishedNs: From<"published", number>;
  /** Treatment that was measured, if one fits. */
  readonly label?: string;
  /** Service quantile, median over its valid runs with least and greatest. */
  readonly measured: From<"measured", Cell>;
  readonly verdict: ClaimVerdict;
  /** Stated conditions that were others in our runs. */
  readonly differences: readonly string[];
  /** What contradicts the figure in its own source. */
  readonly contradictions: readonly string[];
};

export type ClaimsComparison = {
  readonly schema: "ztbench/claims-comparison/1";
  readonly sources: readonly Claims["source"][];
  readonly rows: readonly ClaimRow[];
  /** Latency claims that cannot stand in the table, with what they lack. */
  readonly leftOut: readonly { readonly claim: string; readonly lacks: string }[];
};

/** Puts every latency claim with topology and rate beside what a bundle holds of it; pure. */
export function compareClaims(documents: readonly Claims[], analysis: Analysis): ClaimsComparison {
  const latencies = documents.flatMap(({ source, claims }) =>
    claims.filter(isLatency).map((claim) => ({ source: source.id, claim })),
  );
  const rows: ClaimRow[] = [];
  const leftOut: { claim: string; lacks: string }[] = [];
  for (const { source, claim } of latencies) {
    const { topology, rateQps } = claim.conditions;
    const { metric, value } = claim.quantity;
    const lacks = [
      ...(value === undefined ? ["a single figure"] : []),
      ...(topology === undefined ? ["a topology"] : []),
      ...(rateQps === undefined ? ["a rate"] : []),
    ];
    if (topology === undefined || rateQps === undefined || value === undefined) {
      leftOut.push({ claim: `${source} ${claim.id}`, lacks: lacks.join(" and ") });
    } else {
      const publishedNs = from("published", Math.round(value * 1e6));
      rows.push(...rowsOf({ source, claim, metric, topology, rateQps, publishedNs }, analysis));
    }
  }
  return {
    schema: "ztbench/claims-comparison/1",
    sources: documents.map(({ source }) => source),
    rows,
    leftOut,
  };
}

type LatencyMetric = keyof typeof metrics;
type LatencyClaim = Claim & { readonly quantity: Quantity & { readonly metric: LatencyMetric } };

/** Its unit is ms: the schema lets no other pass. */
function isLatency(claim: Claim): claim is LatencyClaim {
  return claim.quantity !== undefined && claim.quantity.metric in metrics;
}

type Located = {
  readonly source: string;
  readonly claim: Claim;
  readonly metric: LatencyMetric;
  readonly topology: string;
  readonly rateQps: number;
  readonly publishedNs: From<"published", number>;
};

function rowsOf(located: Located, analysis: Analysis): ClaimRow[] {
  const { source, claim, metric, topology, rateQps, publishedNs } = located;
  const base = {
    source,
    claim: claim.id,
    topology,
    metric: metric === "latencyP50" ? ("p50" as const) : ("p99" as const),
    rateQps,
    publishedNs,
    contradictions: claim.contradictions.map(({ because }) => because),
  };
  const own = analysis.comparison.treatments.filter((t) => t.topology === topology);
  const byDriver = own.filter((t) => t.driver === comparedDriver);
  const fitting = byDriver.filter((t) => t.rateQps === rateQps);
  if (fitting.length === 0) {
    const measured = from("measured", whyNothing(own, byDriver));
    return [{ ...base, measured, verdict: "-", differences: [] }];
  }
  return fitting.map((treatment) => {
    const measured = from("measured", treatment.metrics[metrics[metric]]);
    return {
      ...base,
      label: treatment.label,
      measured,
      verdict: judge(publishedNs, measured, analysis),
      differences: differencesOf(claim, analysis),
    };
  });
}

function whyNothing(own: readonly Treatment[], byDriver: readonly Treatment[]): Cell {
  if (own.length === 0) return notMeasured;
  if (byDriver.length === 0) {
    const drivers = [...new Set(own.map(({ driver }) => driver))].join(", ");
    return none(`not comparable: driver ${drivers}`);
  }
  const rates = [...new Set(byDriver.map((t) => `${t.rateQps}/s`))].join(", ");
  return none(`rate differs: measured at ${rates}`);
}

function judge(
  publishedNs: From<"published", number>,
  measured: From<"measured", Cell>,
  { stamp }: Analysis,
): ClaimVerdict {
  if (stamp.testbedClass === "lab") return "not comparable (lab)";
  if (measured.kind === "none") return "-";
  if (stamp.versionSet !== "era") return "not comparable (version set lab)";
  const own = numberOf(measured) ?? Number.NaN;
  const { low, high } = measured.interval ?? { low: own, high: own };
  if (publishedNs < low) return "below our runs";
  return publishedNs > high ? "above our runs" : "within our runs";
}

function differencesOf({ conditions }: Claim, { stamp }: Analysis): string[] {
  const { connections } = conditions;
  return connections === undefined || connections === stamp.connections
    ? []
    : [`${connections} connections published, at most ${stamp.connections} here`];
}
