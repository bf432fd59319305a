import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeResults } from "../../../contracts/deployment.ts";
import { none, value } from "../../../analysis/cell.ts";
import {
  type GateId,
  gateIds,
  type GateInput,
  judgeBrokenRun,
  judgeRun,
  verdictOf,
} from "../../../analysis/gates.ts";
import type { RunLatency, SeriesSummary } from "../../../analysis/latency.ts";
import type { RunResources, UnitUse } from "../../../analysis/resources.ts";
import type { LegFacts } from "../../../analysis/wire.ts";
import { planOf, recordOf, startNs } from "../../support/bundle.ts";

function series(p99Ns: number): SeriesSummary {
  const cell = value(p99Ns, "ns");
  const quantiles = { p50: cell, p95: cell, p99: cell, "p99.9": none("too few requests") };
  return { count: 10_000, minNs: cell, maxNs: cell, meanNs: cell, quantiles };
}

const echo: UnitUse = {
  unit: "ztbench-echo.service",
  host: "server",
  kind: "service",
  dataPlane: true,
  cpuPerRequest: value(100, "us"),
  cores: value(0.1, "cores"),
  memory: value(2e7, "bytes"),
  runQueueWait: value(0.01, "share"),
  restarts: value(0, "count"),
};

function goodInput(testbedClass: "lab" | "metal" = "lab"): GateInput {
  const plan = planOf({});
  const record = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
  const latency: RunLatency = {
    planned: 10_000,
    sent: 10_000,
    ok: 10_000,
    failed: 0,
    seqMax: 9_999,
    codes: { "200": 10_000 },
    errors: {},
    overflow: 0,
    lagMinNs: 1000,
    startNs: String(startNs),
    startEstimated: false,
    response: series(500_000),
    service: series(450_000),
    lag: series(50_000),
  };
  const resources: RunResources = {
    units: [echo],
    cpuPerRequest: echo.cpuPerRequest,
    cores: echo.cores,
    cpuPerRequestByKind: { service: echo.cpuPerRequest },
    generatorCpuPerRequest: value(200, "us"),
    generatorShare: value(0.2, "share"),
  };
  const { tuning, deployment } = record;
  return {
    plan,
    record: { ...record, deployment: { ...deployment, testbedClass } },
    latency,
    resources,
    connections: { established: value(32, "count"), opened: value(0, "count") },
    reference: { tuning, configurationDigest: deployment.configurationDigest },
    wire: [leg],
  };
}

const leg: LegFacts = {
  from: "load",
  to: "echo",
  expected: { http: "1.1" },
  observed: { http: "1.1" },
  counts: {},
};

const withRecord = (input: GateInput, change: Partial<GateInput["record"]>): GateInput => ({
  ...input,
  record: { ...input.record, ...change },
});
const withLatency = (input: GateInput, change: Partial<RunLatency>): GateInput => ({
  ...input,
  latency: { ...input.latency, ...change },
});
const withResources = (input: GateInput, change: Partial<RunResources>): GateInput => ({
  ...input,
  resources: { ...input.resources, ...change },
});

function withProbes(input: GateInput, after: ProbeResults["results"]): GateInput {
  const { probes } = input.record;
  return withRecord(input, { probes: { ...probes, after: { ...probes.after, results: after } } });
}

function withConnections(input: GateInput, established: number): GateInput {
  return {
    ...input,
    connections: { ...input.connections, established: value(established, "count") },
  };
}

function overHttp2(input: GateInput): GateInput {
  const { deployment } = input.record;
  const entry = { ...deployment.entry, http: "2" as const };
  return withRecord(input, { deployment: { ...deployment, entry } });
}

/** The same run as a cold start: nothing before it, and none of the driver's connections. */
function coldInput(): GateInput {
  const plan = planOf({
    editPlan: (steady) => ({
      ...steady,
      treatments: steady.treatments.map((t) => ({ ...t, condition: "cold-start" as const })),
    }),
  });
  const record = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
  return withConnections({ ...goodInput(), plan, record }, 0);
}

type Fault = {
  readonly what: string;
  readonly gate: GateId;
  readonly outcome: "warn" | "invalid" | "unavailable";
  readonly input: GateInput;
};

const lab = goodInput();
const metal = goodInput("metal");
const faults: readonly Fault[] = [
  {
    what: "more connections than declared",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(lab, 33),
  },
  {
    what: "no connection of the driver",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(lab, 0),
  },
  {
    what: "fewer HTTP/2 connections than declared",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(overHttp2(lab), 31),
  },
  {
    what: "connections that nobody counted",
    gate: "connections",
    outcome: "unavailable",
    input: { ...lab, connections: { ...lab.connections, established: none("not asked") } },
  },
  {
    what: "a run that broke off",
    gate: "completed",
    outcome: "invalid",
    input: withRecord(lab, { failure: "interrupted" }),
  },
  {
    what: "another rate than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, { load: { ...lab.record.load, rateQps: 999 } }),
  },
  {
    what: "another driver than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, {
      loadPlan: { ...lab.record.loadPlan, driver: "vegeta" },
    }),
  },
  {
    what: "another parameter than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, { treatment: { ...lab.record.treatment, parameters: { hops: 2 } } }),
  },
  {
    what: "less than 99.5 % sent",
    gate: "sent",
    outcome: "invalid",
    input: withLatency(lab, { sent: 9_949, ok: 9_949, seqMax: 9_948 }),
  },
  {
    what: "less than 99.9 % answered",
    gate: "goodput",
    outcome: "invalid",
    input: withLatency(lab, { ok: 9_989, failed: 11 }),
  },
  {
    what: "a row that is missing between others",
    gate: "rows",
    outcome: "invalid",
    input: withLatency(lab, { sent: 9_999, ok: 9_999 }),
  },
  {
    what: "a response beyond the histogram",
    gate: "overflow",
    outcome: "invalid",
    input: withLatency(lab, { overflow: 1 }),
  },
  {
    what: "a late generator in the lab",
    gate: "lag",
    outcome: "warn",
    input: withLatency(lab, { lag: series(250_001) }),
  },
  {
    what: "a late generator on metal",
    gate: "lag",
    outcome: "invalid",
    input: withLatency(metal, { lag: series(100_001) }),
  },
  {
    what: "too few requests for a lag p99",
    gate: "lag",
    outcome: "unavailable",
    input: withLatency(lab, {
      lag: {
        ...lab.latency.lag,
        quantiles: { ...lab.latency.lag.quantiles, p99: none("too few requests for p99") },
      },
    }),
  },
  {
    what: "a clock that stepped back",
    gate: "clock",
    outcome: "invalid",
    input: withLatency(lab, { lagMinNs: -1_000_001 }),
  },
  {
    what: "a probe that failed after the run",
    gate: "probes",
    outcome: "invalid",
    input: withProbes(
      lab,
      lab.record.probes.after.results.map((result) => ({ ...result, passed: false })),
    ),
  },
  {
    what: "a probe that was not asked",
    gate: "probes",
    outcome: "invalid",
    input: withProbes(lab, []),
  },
  {
    what: "a sysctl that changed",
    gate: "tuning",
    outcome: "invalid",
    input: withRecord(lab, { tuning: { server: { somaxconn: "applied 4096" } } }),
  },
  {
    what: "a host without readback",
    gate: "tuning",
    outcome: "invalid",
    input: withRecord(lab, { tuning: {} }),
  },
  {
    what: "a busy generator in the lab",
    gate: "generator",
    outcome: "warn",
    input: withResources(lab, { generatorShare: value(0.7, "share") }),
  },
  {
    what: "a busy generator on metal",
    gate: "generator",
    outcome: "invalid",
    input: withResources(metal, { generatorShare: value(0.7, "share") }),
  },
  {
    what: "a generator that was not sampled",
    gate: "generator",
    outcome: "unavailable",
    input: withResources(lab, { generatorShare: none("not sampled") }),
  },
  {
    what: "a unit that started anew",
    gate: "restarts",
    outcome: "invalid",
    input: withResources(lab, { units: [{ ...echo, restarts: value(1, "count") }] }),
  },
  {
    what: "a unit whose processes were not sampled",
    gate: "restarts",
    outcome: "unavailable",
    input: withResources(lab, { units: [{ ...echo, restarts: none("not sampled") }] }),
  },
  {
    what: "a leg that is not as the topology says",
    gate: "wire",
    outcome: "invalid",
    input: { ...lab, wire: [{ ...leg, observed: { http: "1.1 and 2" } }] },
  },
  {
    what: "a fact that nothing has seen",
    gate: "wire",
    outcome: "invalid",
    input: { ...lab, wire: [{ ...leg, observed: {} }] },
  },
  {
    what: "legs that nothing can see",
    gate: "wire",
    outcome: "unavailable",
    input: { ...lab, wire: [] },
  },
  {
    what: "another configuration than the treatment's first run",
    gate: "digest",
    outcome: "invalid",
    input: { ...lab, reference: { ...lab.reference, configurationDigest: "f".repeat(64) } },
  },
];

test("a run without fault passes every gate", () => {
  for (const input of [lab, metal]) {
    const results = judgeRun(input);
    assert.deepEqual(
      results.map(({ id, outcome }) => `${id} ${outcome}`),
      gateIds.map((id) => `${id} pass`),
    );
    assert.equal(verdictOf(results), "VALID");
  }
});

for (const { what, gate, outcome, input } of faults) {
  test(`${what} trips just the gate "${gate}"`, () => {
    const results = judgeRun(input);
    assert.deepEqual(
      results.filter((result) => result.outcome !== "pass").map((r) => `${r.id} ${r.outcome}`),
      [`${gate} ${outcome}`],
    );
    const verdict = { warn: "WARN", invalid: "INVALID", unavailable: "VALID" } as const;
    assert.equal(verdictOf(results), verdict[outcome]);
  });
}

test("every gate has a fault that trips it", () => {
  const tripped = new Set(
    faults.filter(({ outcome }) => outcome !== "unavailable").map((f) => f.gate),
  );
  assert.deepEqual([...tripped].sort(), [...gateIds].sort());
});

test("each gate tells what it measured and what it wanted", () => {
  const results = judgeRun(withLatency(lab, { lag: series(300_000) }));
  const lag = results.find(({ id }) => id === "lag");
  assert.equal(lag?.measured, "p99 0.300 ms");
  assert.equal(lag.threshold, "p99 <= 0.250 ms with vegeta-paced");
});

test("on metal a slow path allows a lag of a tenth of its p99", () => {
  const input = withLatency(metal, { lag: series(400_000), response: series(5_000_000) });
  assert.equal(verdictOf(judgeRun(input)), "VALID");
});

test("the CLI may be late by its timer's millisecond", () => {
  const paced = withRecord(lab, { loadPlan: { ...lab.record.loadPlan, driver: "vegeta" } });
  const results = judgeRun(withLatency(paced, { lag: series(1_100_000) }));
  assert.equal(results.find(({ id }) => id === "lag")?.outcome, "pass");
});

test("a run without measurement is invalid for the reason in its record", () => {
  const results = judgeBrokenRun({ ...lab.record, failure: "unit did not start" });
  assert.equal(verdictOf(results), "INVALID");
  assert.equal(results[0]?.measured, "unit did not start");
});

test("an HTTP/2 run of the paced driver has exactly its connections, and one over 1.1 at most", () => {
  const outcomeOf = (input: GateInput) =>
    judgeRun(input).find(({ id }) => id === "connections")?.outcome;
  assert.equal(outcomeOf(withConnections(overHttp2(lab), 32)), "pass");
  assert.equal(outcomeOf(withConnections(lab, 3)), "pass");
});

test("a cold start that storms is warned about, and never left out of the count of storms", () => {
  const cold = coldInput();
  assert.equal(verdictOf(judgeRun(cold)), "VALID");
  const stormy = withLatency(cold, { ok: 4000, failed: 6000, overflow: 3 });
  assert.equal(verdictOf(judgeRun(stormy)), "WARN");
  assert.equal(verdictOf(judgeRun(withLatency(lab, { ok: 4000, failed: 6000 }))), "INVALID");
});

test("a cold start that is warm is invalid", () => {
  const warm = withConnections(coldInput(), 1);
  assert.equal(verdictOf(judgeRun(warm)), "INVALID");
  const { load } = coldInput().record;
  const warmed = withRecord(coldInput(), { load: { ...load, warmupSeconds: 1 } });
  assert.equal(verdictOf(judgeRun(warmed)), "INVALID");
});

test("before a cold start, probes that must be refused need not have been asked", () => {
  const refuse = (input: GateInput): GateInput => {
    const { deployment } = input.record;
    const [answers] = deployment.probes;
    assert.ok(answers);
    const probes = [answers, { ...answers, id: "refuses", kind: "negative" as const }];
    const [result] = input.record.probes.after.results;
    assert.ok(result);
    const results = [result, { ...result, id: "refuses" }];
    return withProbes(withRecord(input, { deployment: { ...deployment, probes } }), results);
  };
  const outcomeOf = (input: GateInput) =>
    judgeRun(input).find(({ id }) => id === "probes")?.outcome;
  assert.equal(outcomeOf(refuse(coldInput())), "pass");
  assert.equal(outcomeOf(refuse(lab)), "invalid");
});
