import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type Claim, type Claims, claimsSchema } from "../../../contracts/claims.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";

const directory = path.resolve(import.meta.dirname, "../../../claims");
const read = (name: string): Claims =>
  parseDocument(claimsSchema, readFileSync(path.join(directory, name), "utf8"), name);
const article = read("three-kinds.yaml");
const guide = read("loss-guide.yaml");

function claim(document: Claims, id: string): Claim {
  const found = document.claims.find((candidate) => candidate.id === id);
  assert.ok(found, `claim ${id} is missing`);
  return found;
}

/** The figure of a claim as text: `1.2 ms`, `3..8 ms`. */
function figure({ quantity }: Claim): string | undefined {
  if (quantity === undefined) return undefined;
  const { value, low, high, unit } = quantity;
  return value === undefined ? `${low}..${high} ${unit}` : `${value} ${unit}`;
}

type Row = [rateQps: number, p50Ms: number, p99Ms: number, cpuPercent: number];
const measured: Record<string, Row[]> = {
  jwt: [
    [1000, 1.4, 2.1, 22],
    [5000, 1.6, 2.8, 38],
    [10_000, 1.9, 3.5, 55],
    [20_000, 2.3, 4.8, 72],
  ],
  gateway: [
    [1000, 1.2, 1.8, 18],
    [5000, 1.4, 2.3, 29],
    [10_000, 1.6, 2.9, 42],
    [20_000, 1.9, 3.7, 61],
  ],
  "mtls-h2": [
    [1000, 2.1, 4.2, 35],
    [5000, 3.4, 8.7, 58],
    [10_000, 5.2, 15.3, 78],
    [18_000, 8.1, 32, 94],
  ],
};
for (const [topology, rows] of Object.entries(measured)) {
  for (const [rateQps, p50, p99, cpu] of rows) {
    test(`${topology} at ${rateQps}/s holds the published p50, p99 and CPU`, () => {
      const at = (name: string) => claim(article, `${topology}.${rateQps}.${name}`);
      assert.equal(figure(at("p50")), `${p50} ms`);
      assert.equal(figure(at("p99")), `${p99} ms`);
      assert.equal(figure(at("cpu")), `${cpu} percent`);
      for (const { conditions, quantity } of [at("p50"), at("p99")]) {
        assert.equal(conditions.topology, topology);
        assert.equal(conditions.rateQps, rateQps);
        assert.match(quantity?.metric ?? "", /^latencyP/);
      }
    });
  }
}

const others: [document: Claims, id: string, figure: string][] = [
  [article, "baseline.limit", "42000 qps"],
  [article, "baseline.p99", "1.2 ms"],
  [article, "jwt.limit", "30000 qps"],
  [article, "jwt.30000.p99", "12 ms"],
  [article, "jwt.30000.cpu", "96 percent"],
  [article, "jwt.token-size", "680 bytes"],
  [article, "jwt.token-lifetime", "5 min"],
  [article, "jwt.stolen-token", "300000 requests"],
  [article, "gateway.limit", "34000 qps"],
  [article, "gateway.drops", "28000 qps"],
  [article, "gateway.replicas", "3 replicas"],
  [article, "gateway.verification", "35000 qps"],
  [article, "gateway.jwks-cache", "300 s"],
  [article, "gateway.jwks-timeout", "5 s"],
  [article, "gateway.key-rotation", "300 s"],
  [article, "mtls-h1.5000.cpu", "85 percent"],
  [article, "mtls-h1.5000.connections", "1400 connections"],
  [article, "mtls-h2.limit", "18000 qps"],
  [article, "mtls-h2.18000.service-cpu", "45 percent"],
  [article, "mtls-h2.connections", "12 connections"],
  [article, "mtls.certificate-lifetime", "24 h"],
  [article, "mtls-h2-ecdsa.throughput", "40 percent"],
  [article, "table.baseline.p99", "1.2 ms"],
  [article, "table.baseline.cpu", "31 percent"],
  [article, "table.baseline.limit", "42000 qps"],
  [article, "table.jwt.p99", "4.8 ms"],
  [article, "table.jwt.cpu", "72 percent"],
  [article, "table.jwt.limit", "30000 qps"],
  [article, "table.gateway.p99", "3.7 ms"],
  [article, "table.gateway.cpu", "61 percent"],
  [article, "table.gateway.limit", "34000 qps"],
  [article, "table.mtls-h2.p99", "15.3 ms"],
  [article, "table.mtls-h2.cpu", "78 percent"],
  [article, "table.mtls-h2.limit", "18000 qps"],
  [article, "text.jwt-p99-increase", "0.3 ms"],
  [guide, "gateway.local-policy", "3..8 ms"],
  [guide, "gateway.remote-policy", "20..50 ms"],
  [guide, "mtls.per-hop", "0.5..2 ms"],
  [guide, "microsegmentation", "1..3 ms"],
  [guide, "mtls.hops", "5..15 ms"],
  [guide, "policy.round-trip", "0.5..2 ms"],
  [guide, "policy.remote-p99", "5..10 ms"],
  [guide, "policy.database", "10 ms"],
  [guide, "proxy.user-space", "1..3 ms"],
  [guide, "handshake.ecdsa", "30..40 percent"],
  [guide, "gateway.cpu-plain", "25 percent"],
  [guide, "gateway.cpu-mtls", "45..60 percent"],
  [guide, "gateway.cpu-policy", "85 percent"],
  [guide, "handshake.loss-share", "60 percent"],
  [guide, "example.p99-before", "35 ms"],
  [guide, "example.p99-after", "68 ms"],
  [guide, "example.remote-policy", "12 ms"],
  [guide, "example.certificate-checks", "5 ms"],
  [guide, "rotation.at-once", "500 ms"],
  [guide, "rotation.jitter", "80 ms"],
  [guide, "rotation.lifetime", "12 h"],
  [guide, "budget.core-path", "5 ms"],
  [guide, "budget.internal-queries", "20 ms"],
  [guide, "method.rules", "20..50 rules"],
  [guide, "method.steady", "5 min"],
  [guide, "method.warmup", "2 min"],
  [guide, "method.concurrency-50", "50 connections"],
  [guide, "method.concurrency-100", "100 connections"],
  [guide, "method.concurrency-200", "200 connections"],
  [guide, "method.concurrency-500", "500 connections"],
  [guide, "method.load-client", "70 percent"],
];
for (const [document, id, expected] of others) {
  test(`${document.source.id} ${id} is ${expected}`, () => {
    assert.equal(figure(claim(document, id)), expected);
  });
}

test("no figure is there that these tests do not know", () => {
  const known = new Set([
    ...others.map(([, id]) => id),
    ...Object.entries(measured).flatMap(([topology, rows]) =>
      rows.flatMap(([rate]) => ["p50", "p99", "cpu"].map((name) => `${topology}.${rate}.${name}`)),
    ),
  ]);
  const unknown = [...article.claims, ...guide.claims]
    .filter(({ id, quantity }) => quantity !== undefined && !known.has(id))
    .map(({ id }) => id);
  assert.deepEqual(unknown, []);
});

const contradictions: [id: string, other: string][] = [
  ["table.mtls-h2.p99", "mtls-h2.10000.p99"],
  ["table.mtls-h2.p99", "mtls-h2.limit"],
  ["text.jwt-p99-increase", "jwt.20000.p99"],
  ["text.jwt-p99-increase", "table.jwt.p99"],
  ["text.jwt-p99-increase", "table.baseline.p99"],
  ["baseline.p99", "table.baseline.p99"],
  ["gateway.limit", "gateway.drops"],
  ["table.gateway.limit", "gateway.drops"],
];
for (const [id, other] of contradictions) {
  test(`that ${id} contradicts ${other} is flagged on both`, () => {
    const names = (from: string) => claim(article, from).contradictions.map((c) => c.with);
    assert.ok(names(id).includes(other), id);
    assert.ok(names(other).includes(id), other);
  });
}

test("a limit without an objective and a p99 without a rate are told to lack them", () => {
  const limits = article.claims.filter((c) => c.quantity?.metric === "throughputLimit");
  assert.equal(limits.length, 8);
  for (const { id, missing, contradictions: flags } of limits) {
    assert.ok(missing.includes("slo"), id);
    assert.ok(
      flags.some(({ because }) => because.startsWith("a limit without")),
      id,
    );
  }
  assert.deepEqual(claim(article, "baseline.p99").missing, ["rate"]);
  assert.equal(claim(article, "baseline.p99").conditions.rateQps, undefined);
});

test("source, date and hardware are those of the notes", () => {
  assert.equal(article.source.date, "2026-08-05");
  assert.equal(guide.source.date, undefined);
  assert.match(article.stated["service"] ?? "", /Go 1\.21\.4, GOMAXPROCS=8/);
  assert.deepEqual(
    guide.definitions.map(({ name }) => name),
    ["latency loss", "throughput loss", "resource increment", "connection establishment"],
  );
});

const small = `schema: ztbench/claims/1
source: { id: X, title: an article, description: a test }
claims:
  - id: one
    kind: measurement
    citation: page 1
    statement: p99 is 1 ms
    quantity: { metric: latencyP99, unit: ms, value: 1 }
    contradictions: [{ with: two, because: it is 2 ms }]
  - id: two
    kind: measurement
    citation: page 2
    statement: p99 is 2 ms
    quantity: { metric: latencyP99, unit: ms, value: 2 }
    contradictions: [{ with: one, because: it is 1 ms }]
`;

const bad: [name: string, from: string, to: string, expected: RegExp][] = [
  [
    "an unknown unit",
    "unit: ms, value: 1",
    "unit: furlongs, value: 1",
    /c\.yaml:8:43: claims\.0\.quantity\.unit: .*"ms".*found "furlongs"/,
  ],
  ["a latency in seconds", "unit: ms, value: 1", "unit: s, value: 1", /8:43: .*must be ms for lat/],
  [
    "a missing citation",
    "    citation: page 2\n",
    "",
    /c\.yaml:10:5: claims\.1\.citation: .*nothing/,
  ],
  ["an empty citation", "citation: page 2", 'citation: ""', /c\.yaml:12:15: claims\.1\.citation/],
  [
    "an unknown metric",
    "latencyP99, unit: ms, value: 1",
    "p99, unit: ms, value: 1",
    /8:25: .*metric/,
  ],
  [
    "a misspelt key",
    "statement: p99 is 1",
    "statment: p99 is 1",
    /7:5: claims\.0\.statment: unknown/,
  ],
  ["no figure", ", value: 1 }", " }", /8:15: claims\.0\.quantity: must have either a value or/],
  ["half a range", "value: 1 }", "low: 1 }", /8:15: claims\.0\.quantity: must have both low and/],
  ["a range upside down", "value: 1 }", "low: 2, high: 1 }", /8:15: .*low less than high/],
  [
    "no quantity",
    "    quantity: { metric: latencyP99, unit: ms, value: 1 }\n",
    "",
    /0\.quantity: must be/,
  ],
  [
    "a contradiction told one way",
    "with: one",
    "with: two",
    /9:\d+: .*told both ways, two does not/,
  ],
  ["a contradiction of nothing", "with: two", "with: three", /9:\d+: .*must be the id of a claim/],
  [
    "an id used twice",
    "id: two",
    "id: one",
    /10:9: claims\.1\.id: id is already used by claims\[0\]/,
  ],
];
for (const [name, from, to, expected] of bad) {
  test(`a claims document with ${name} is refused with its position`, () => {
    parseDocument(claimsSchema, small, "c.yaml");
    assert.ok(small.includes(from));
    assert.throws(
      () => parseDocument(claimsSchema, small.replace(from, to), "c.yaml"),
      (error) =>
        error instanceof Failure && error.code === "document" && expected.test(error.message),
    );
  });
}
