/**
 * A campaign that looks like a real one, for the page: five treatments with known costs, one that
 * is broken, faults in single runs, and texts that try to become markup.
 */
import type { RunRecord } from "../../contracts/record.ts";
import { type BundleOptions, normal, type RunShape, seeded, steadyRows } from "./bundle.ts";

type Cost = {
  /** Factor on every latency. */
  readonly latency: number;
  /** Further factor on slow requests. */
  readonly tail: number;
  /** Microseconds of CPU time per request. */
  readonly serviceUs: number;
  readonly proxyUs?: number;
  /** Nodes of the request path after the load. */
  readonly path: readonly string[];
  readonly mutual?: true;
};

const costs: Readonly<Record<string, Cost>> = {
  baseline: { latency: 1, tail: 1, serviceUs: 100, path: ["service"] },
  jwt: { latency: 1.01, tail: 1, serviceUs: 131, path: ["service"] },
  gateway: { latency: 1.4, tail: 1.6, serviceUs: 104, proxyUs: 120, path: ["gateway", "service"] },
  "mtls-h1": {
    latency: 1.75,
    tail: 2.4,
    serviceUs: 105,
    proxyUs: 205,
    path: ["sidecar-out", "sidecar-in", "service"],
    mutual: true,
  },
  "mtls-h2": {
    latency: 1.62,
    tail: 1.9,
    serviceUs: 99,
    proxyUs: 169,
    path: ["sidecar-out", "sidecar-in", "service"],
    mutual: true,
  },
  hybrid: { latency: 1.9, tail: 2.6, serviceUs: 110, proxyUs: 240, path: ["gateway", "service"] },
};

/** Text of a failure that a page must show as text. */
export const hostileText = `</pre><script>alert("x")</script><img src=x onerror=alert(1)>`;

export type CampaignSize = Pick<BundleOptions, "blocks" | "rateQps" | "durationSeconds">;

/** Options of `makeBundle`; `mtls-h2` loses its run of block 2, `hybrid` breaks in all blocks. */
export function realisticCampaign(size: CampaignSize = {}): BundleOptions {
  return {
    blocks: 6,
    rateQps: 2000,
    durationSeconds: 6,
    labels: Object.keys(costs),
    ...size,
    content: (shape, plan) => {
      const cost = costs[shape.label];
      if (cost === undefined) throw new Error(`no cost of ${shape.label}`);
      const random = seeded(seedOf(shape));
      const drift = Math.exp(0.03 * normal(random));
      const latencyNs = (): number => {
        const body = 230_000 * Math.exp(0.16 * normal(random));
        const tail = random() < 0.03 ? 320_000 * cost.tail * -Math.log(1 - random()) : 0;
        return drift * cost.latency * (body + tail);
      };
      const rows = steadyRows(plan, latencyNs).map((row) => {
        const lagNs = Math.round(18_000 * Math.exp(0.5 * normal(random)));
        return { ...row, sentNs: row.sentNs + lagNs };
      });
      const noise = Math.exp(0.02 * normal(random));
      const { serviceUs, proxyUs } = cost;
      return {
        rows,
        cpuPerRequestUs: serviceUs * noise,
        ...(proxyUs !== undefined && { furtherUs: { [proxyUnit]: proxyUs * noise } }),
        edit: (record) => spoil(deploy(record, cost), shape),
      };
    },
  };
}

const proxyUnit = "ztbench-proxy.service";

/** Gives the record the request path of its treatment, its units and a probe that is refused. */
function deploy(record: RunRecord, { path, proxyUs, mutual }: Cost): RunRecord {
  const { deployment, probes } = record;
  const [positive] = deployment.probes;
  const [service] = deployment.units;
  if (positive === undefined || service === undefined) throw new Error("bare deployment");
  const legs = path.map((to, i) => {
    const isMesh = mutual === true && i === 1;
    const wire: Record<string, string> = isMesh ? { version: "TLSv1.3", group: "X25519" } : {};
    const tls = isMesh ? ("mutual" as const) : ("none" as const);
    return { from: path[i - 1] ?? "load", to, http: "1.1" as const, tls, wire };
  });
  const proxy = { ...service, name: proxyUnit, kind: "proxy" as const, program: "envoy" };
  const refused = {
    ...positive,
    id: "no-token",
    kind: "negative" as const,
    shows: "a request without a token is refused",
    expect: { outcome: "status" as const, status: 401 },
  };
  const asked = path.length > 1;
  const answer = {
    id: "no-token",
    passed: true,
    observed: { outcome: "status" as const, status: 401 },
    durationNs: 900_000,
  };
  const answered = (phase: "before" | "after") => ({
    ...probes[phase],
    results: [...probes[phase].results, ...(asked ? [answer] : [])],
  });
  return {
    ...record,
    deployment: {
      ...deployment,
      legs,
      units: [service, ...(proxyUs === undefined ? [] : [proxy])],
      probes: [positive, ...(asked ? [refused] : [])],
    },
    probes: { before: answered("before"), after: answered("after") },
  };
}

function seedOf({ block, label, arm }: RunShape): number {
  const letters = label.split("").reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7);
  return (block * 1009 + letters + (arm === "b" ? 500 : 0)) >>> 0;
}

/** `hybrid` breaks off in every run, one run of `mtls-h2` fails its probes. */
function spoil(record: RunRecord, { block, label }: RunShape): RunRecord {
  if (label === "hybrid") {
    return { ...record, failure: `gateway: did not start: ${hostileText}` };
  }
  return label === "mtls-h2" && block === 2 ? failProbes(record) : record;
}

function failProbes(record: RunRecord): RunRecord {
  const { before, after } = record.probes;
  const results = after.results.map((result) => ({
    ...result,
    passed: false,
    observed: { outcome: "status" as const, status: 503 },
  }));
  return { ...record, probes: { before, after: { ...after, results } } };
}
