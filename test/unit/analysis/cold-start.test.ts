import assert from "node:assert/strict";
import { test } from "node:test";
import { analyse } from "../../../analysis/report.ts";
import { none, value } from "../../../analysis/cell.ts";
import { type ColdStart, describeStart, summariseStarts } from "../../../analysis/cold-start.ts";
import { coldStartTables } from "../../../analysis/cold-start-table.ts";
import { readConnections } from "../../../analysis/connections.ts";
import {
  activeOpens,
  countNames,
  greatestGrowth,
  proxyTimelines,
  valueAt,
} from "../../../analysis/proxy-counters.ts";
import { parseSamples, type Sample } from "../../../analysis/samples.ts";
import { quantileOf, recoveryOf, SecondLatency } from "../../../analysis/second-latency.ts";
import { proportionDifference, wilsonInterval } from "../../../analysis/statistics.ts";
import { renderTables } from "../../../analysis/text.ts";
import type { Plan } from "../../../contracts/plan.ts";
import {
  makeBundle,
  planOf,
  recordOf,
  removeBundle,
  startNs,
  steadyRows,
} from "../../support/bundle.ts";

const near = (found: number, wanted: number) => {
  assert.ok(Math.abs(found - wanted) < 5e-5, `found ${found}, wanted ${wanted}`);
};

// Newcombe (1998), table I, method 3, and the closed form at the edges, n / (n + z²).
const proportions: readonly [hits: number, n: number, low: number, high: number][] = [
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
  [12, 12, 0.7575, 1],
];
for (const [hits, n, low, high] of proportions) {
  test(`${hits} of ${n} lie in the published interval of Wilson`, () => {
    const interval = wilsonInterval(hits, n);
    near(interval.low, low);
    near(interval.high, high);
  });
}

/** Newcombe's table of intervals of a difference, his method 10. */
const differences: readonly (readonly [string, number, number, number, number, number, number])[] =
  [
    ["a", 56, 70, 48, 80, 0.0524, 0.3339],
    ["b", 9, 10, 3, 10, 0.1705, 0.809],
    ["d", 5, 56, 0, 29, -0.0381, 0.1926],
    ["e", 0, 10, 0, 20, -0.1611, 0.2775],
    ["h", 10, 10, 0, 10, 0.6075, 1],
  ];
for (const [example, a, m, b, n, low, high] of differences) {
  test(`${a} of ${m} less ${b} of ${n} lies in the published interval, example ${example}`, () => {
    const found = proportionDifference(wilsonInterval(a, m), wilsonInterval(b, n));
    near(found.low, low);
    near(found.high, high);
  });
}

test("no start has no probability", () => {
  assert.throws(() => wilsonInterval(0, 0), RangeError);
});

const stats = `cluster.outbound|8080||echo.svc;.ssl.handshake: 1277
cluster.outbound|8080||echo.svc;.ssl.session_reused: 13
cluster.outbound|8080||echo.svc;.upstream_cx_active: 1301
cluster.outbound|8080||echo.svc;.upstream_cx_total: 1305
cluster.xds-grpc;.upstream_cx_total: 99999
cluster.sds-grpc;.upstream_cx_active: 99999
http.outbound_0.0.0.0_8080;.downstream_cx_total: 99999
listener.0.0.0.0_8080.downstream_cx_active: 1691
listener.0.0.0.0_8080.downstream_cx_total: 1694
listener.0.0.0.0_8080.downstream_pre_cx_active: 99999
listener.0.0.0.0_8080.worker_0.downstream_cx_total: 99999
listener.admin.downstream_cx_total: 99999
`;

const scraped = (...texts: readonly string[]) =>
  proxyTimelines([
    texts.map((content, second) => ({ atNs: second * 1e9, source: "scrape a", content, line: 1 })),
  ]);

test("counts the leg that has most, and neither administration nor control plane", () => {
  const all = countNames.map((name) => greatestGrowth(scraped(stats), name, undefined, 0));
  assert.deepEqual(all, [1694, 1691, 1277, 13]);
  assert.equal(greatestGrowth(scraped(stats), "opened", undefined, -1), undefined);
  assert.equal(greatestGrowth(scraped(""), "opened", undefined, 0), 0);
});

test("counts the leg that grew most, not the growth of that which had most before", () => {
  const before = "listener.a.downstream_cx_total: 8\n";
  const after = `${before}listener.b.downstream_cx_total: 5\n`;
  assert.equal(greatestGrowth(scraped(before, after), "opened", 0, 1e9), 5);
});

test("reads a counter between two readings as a straight line, and nowhere else", () => {
  const points = [
    { atNs: 100, value: 10 },
    { atNs: 200, value: 30 },
  ];
  assert.deepEqual(
    [100, 150, 200].map((at) => valueAt(points, at)),
    [10, 20, 30],
  );
  assert.deepEqual(
    [99, 201].map((at) => valueAt(points, at)),
    [undefined, undefined],
  );
});

const snmp = (opens: number) =>
  `Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 ${opens} 7`;

test("the kernel tells how many connections its host opened", () => {
  assert.equal(activeOpens(snmp(3039)), 3039);
  assert.equal(activeOpens("Udp: InDatagrams\nUdp: 1"), undefined);
});

test("connections of the driver are those that the kernel lists, and more by its counter", () => {
  const samples: Sample[] = [0, 5e9, 10e9].map((atNs, line) => {
    return { atNs, source: "file /proc/net/snmp", content: snmp(40 + line), line };
  });
  const listed = "0 0 198.18.0.10:40000 198.18.0.12:8080\n".repeat(3);
  const found = readConnections(listed, samples, 10e9);
  assert.deepEqual(found, { established: value(3, "count"), opened: value(2, "count") });
  assert.deepEqual(readConnections("", samples, 10e9).established, value(0, "count"));
  assert.deepEqual(readConnections(undefined, [], 10e9), {
    established: none("not asked"),
    opened: none("not sampled"),
  });
});

test("a failed request ranks above all answers of its second", () => {
  const seconds = new SecondLatency();
  for (let i = 0; i < 60; i += 1) seconds.record(i, i < 40 ? 1000 + i : undefined);
  seconds.record(2e9, 5);
  const [first = [], second = [], third = []] = seconds.finish();
  assert.deepEqual([first.length, second.length, third.length], [60, 0, 1]);
  assert.deepEqual(quantileOf(first, 0.5, "p50"), value(1029, "ns"));
  assert.deepEqual(quantileOf(first, 0.8, "p80"), none("> timeout"));
  assert.deepEqual(quantileOf(first, 0.99, "p99"), none("too few requests for p99 of a second"));
});

const ms = (...numbers: number[]) => numbers.map((n) => value(n * 1e6, "ns"));
const recoveries: readonly [string, Parameters<typeof recoveryOf>[0], object][] = [
  ["at once", ms(0.6, 0.5, 0.6), value(0, "ns")],
  ["after the last second that was not", ms(900, 0.9, 1200, 1.2, 0.6), value(3e9, "ns")],
  ["after seconds without an answer", [none("> timeout"), ...ms(0.6)], value(1e9, "ns")],
  ["never, if the last is still bad", ms(1, 900), none("not back within the run")],
];
for (const [name, medians, wanted] of recoveries) {
  test(`the median is back ${name}`, () => {
    assert.deepEqual(recoveryOf(medians, 10e6), wanted);
  });
}

function coldPlan(): Plan {
  return planOf({
    durationSeconds: 2,
    editPlan: (plan) => ({
      ...plan,
      treatments: plan.treatments.map((t) => ({ ...t, condition: "cold-start" as const })),
    }),
  });
}

/** A proxy that had 2 connections before, and opens `opened` in the first second. */
function stormSamples(opened: number): readonly Sample[] {
  const block = (ms: number, source: string, content: string) =>
    `### ${startNs + BigInt(ms) * 1_000_000n} ${source}\n${content}\n`;
  const counters = (n: number) =>
    `listener.0.0.0.0_15006.downstream_cx_total: ${n}\n` +
    `listener.0.0.0.0_15006.ssl.handshake: ${n}\n` +
    `listener.0.0.0.0_15006.downstream_cx_active: ${n - 1}`;
  const at = [-250, 500, 1000, 2000, 2500];
  const text = at.map(
    (ms) =>
      block(ms, "scrape sidecar", counters(ms < 0 ? 2 : ms < 1000 ? 2 + opened / 2 : 2 + opened)) +
      block(ms, "unit ztbench-echo.service cpu.stat", `usage_usec ${ms < 0 ? 0 : ms * 500}`),
  );
  const cost = block(2500, "sampler cost", "samples 5\ncpu_usec 27500");
  return parseSamples(text.join("") + cost, "samples", String(startNs));
}

function startOf(opened: number, slow: number): ColdStart {
  const plan = coldPlan();
  const record = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 1, 1);
  const seconds = new SecondLatency();
  for (let seq = 0; seq < 1990; seq += 1) seconds.record(seq * 1e6, seq < slow ? 20e6 : 1e6);
  return describeStart({
    record,
    latency: { planned: 2000 },
    samples: new Map([["server", stormSamples(opened)]]),
    seconds: seconds.finish(),
    settings: { stormFactor: 4, sloMilliseconds: 10 },
  });
}

test("a start is told from its first request, apart from what was there before", () => {
  const start = startOf(200, 600);
  assert.deepEqual(start.before, { opened: value(2, "count"), handshakes: value(2, "count") });
  assert.deepEqual([start.opened, start.handshakes], [value(200, "count"), value(200, "count")]);
  assert.deepEqual(start.overSlo, value(610, "count"), "ten were not sent, 600 were slow");
  assert.deepEqual(start.recovery, value(1e9, "ns"));
  assert.deepEqual(start.observer, value(0.01, "share"));
  const [first, second] = start.seconds;
  assert.ok(first && second);
  assert.deepEqual([first.opened, second.opened], [value(200, "count"), value(0, "count")]);
  assert.deepEqual(first.active, value(201, "count"));
  assert.deepEqual(second.cores.service, value(0.5, "cores"));
  assert.deepEqual(second.cores.proxy, none("there is none"));
});

test("a storm is more than the declared factor times the declared connections", () => {
  assert.equal(startOf(128, 0).storm, false);
  assert.equal(startOf(130, 0).storm, true);
});

test("storms are counted over the starts that are valid, and the others are named", () => {
  const run = (name: string, label: string, coldStart?: ColdStart) => ({
    name,
    label,
    verdict: "VALID" as const,
    gates: [],
    ...(coldStart !== undefined && { coldStart }),
  });
  const invalid = {
    ...run("4", "gateway", startOf(200, 0)),
    verdict: "INVALID" as const,
    gates: [
      {
        number: "G21" as const,
        id: "rows" as const,
        outcome: "invalid" as const,
        measured: "1",
        threshold: "2",
      },
    ],
  };
  const runs = [
    run("1", "gateway", startOf(200, 900)),
    run("2", "gateway", startOf(4, 0)),
    run("3", "gateway"),
    invalid,
  ];
  const found = summariseStarts(coldPlan(), runs);
  const gateway = found?.treatments.find(({ label }) => label === "gateway");
  assert.deepEqual([gateway?.storms?.hits, gateway?.storms?.n], [1, 2]);
  assert.deepEqual(gateway?.notCounted, [
    { name: "3", reason: "not measured" },
    { name: "4", reason: "rows: 1, wanted 2" },
  ]);
  assert.ok(found);
  const text = renderTables(coldStartTables(found));
  assert.match(text, /^gateway +1 of 2 +50 \[9–91\] +102 \[4–200\] +102 +/m);
  assert.match(text, /^baseline +- +- /m);
  for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
});

test("a plan without cold starts has none to tell of", () => {
  assert.equal(summariseStarts(planOf({}), []), undefined);
});

test("cold starts are told beside steady runs, and never compared with them", async () => {
  const bundle = await makeBundle({
    durationSeconds: 2,
    labels: ["baseline", "gateway", "cold"],
    editPlan: (plan) => ({
      ...plan,
      treatments: plan.treatments.map((t) =>
        t.label === "cold" ? { ...t, condition: "cold-start" as const } : t,
      ),
    }),
    content: (_, plan) => ({ rows: steadyRows(plan, () => 200_000), cpuPerRequestUs: 100 }),
  });
  try {
    const { runs, comparison, coldStarts } = await analyse(bundle);
    assert.deepEqual([...new Set(runs.map(({ verdict }) => verdict))], ["VALID"]);
    const [gateway, cold] = comparison.losses;
    assert.ok(gateway && cold);
    assert.equal(gateway.ratios.responseP50.kind, "estimate");
    const reason = { kind: "none", reason: "not comparable: condition differs" };
    assert.deepEqual(cold.ratios.responseP50, reason);
    assert.deepEqual(cold.coresDifference, reason);
    assert.deepEqual(cold.points.responseP50, []);
    const told = coldStarts?.treatments.map(({ label, notCounted }) => [label, notCounted.length]);
    assert.deepEqual(told, [["cold", 3]], "no proxy and no kernel counter is in these samples");
  } finally {
    await removeBundle(bundle);
  }
});
