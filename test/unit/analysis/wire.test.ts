import assert from "node:assert/strict";
import { test } from "node:test";
import type { Leg } from "../../../contracts/deployment.ts";
import { wireFactsOf, wireLines, wireProblems, type WireTexts } from "../../../analysis/wire.ts";
import { planOf, recordOf } from "../../support/bundle.ts";

const cluster = "cluster.outbound|8080||echo.test;";
const peer = "spiffe://test/server";
const caller = "spiffe://test/client";

const leg: Leg = {
  from: "client-sidecar",
  to: "server-sidecar",
  http: "2",
  tls: "mutual",
  wire: {
    alpn: "h2",
    version: "TLSv1.3",
    cipher: "TLS_AES_128_GCM_SHA256",
    group: "X25519",
    keyType: "rsa-2048",
    peer,
    caller,
  },
  seenBy: [
    { at: "from", unit: "client", prefix: cluster },
    { at: "to", unit: "server", prefix: "http.inbound;" },
    { at: "probe", id: "handshake" },
  ],
};
const last: Leg = {
  from: "server-sidecar",
  to: "service",
  http: "2",
  tls: "none",
  wire: {},
  seenBy: [{ at: "service", unit: "service" }],
};

const block = (name: string, text: string) => `### 1796051625092351280 scrape ${name}\n${text}\n`;

const certificates = (uri: string) =>
  block(
    "certs",
    JSON.stringify({ certificates: [{ cert_chain: [{ subject_alt_names: [{ uri }] }] }] }),
  );

const stats = (counters: Record<string, number>) =>
  block(
    "stats",
    Object.entries(counters)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
  );

const served = (h1: number, h2: number) =>
  block("service", JSON.stringify({ protocols: { "HTTP/1.1": h1, "HTTP/2": h2 } }));

const clientStats = {
  [`${cluster}.upstream_cx_http1_total`]: 0,
  [`${cluster}.upstream_cx_http2_total`]: 3,
  [`${cluster}.upstream_cx_total`]: 3,
  [`${cluster}.upstream_cx_active`]: 1,
  [`${cluster}.upstream_rq_total`]: 950,
  [`${cluster}.ssl.versions.TLSv1.3`]: 3,
  [`${cluster}.ssl.ciphers.TLS_AES_128_GCM_SHA256`]: 3,
  [`${cluster}.ssl.curves.X25519`]: 3,
  [`${cluster}.ssl.handshake`]: 3,
  [`${cluster}.ssl.session_reused`]: 2,
};
const clientBefore = {
  ...clientStats,
  [`${cluster}.upstream_cx_total`]: 1,
  [`${cluster}.upstream_rq_total`]: 50,
  [`${cluster}.ssl.handshake`]: 1,
  [`${cluster}.ssl.session_reused`]: 0,
};

/** A run in which everything is as expected, but for these counters of the client's sidecar. */
function textsWith(changed: Record<string, number> = {}, h1Requests = 0): WireTexts {
  const requests = (h1: number, h2: number) =>
    stats({
      "http.inbound;.downstream_rq_http1_total": h1,
      "http.inbound;.downstream_rq_http2_total": h2,
    });
  return new Map([
    [
      "client",
      {
        before: stats(clientBefore),
        after: stats({ ...clientStats, ...changed }) + certificates(caller),
      },
    ],
    // Ten requests by HTTP/1.1 were there before, and are no business of this run.
    [
      "server",
      { before: requests(10, 5), after: requests(10 + h1Requests, 905) + certificates(peer) },
    ],
    ["service", { before: served(10, 5), after: served(10, 905) }],
  ]);
}

const handshake = {
  id: "handshake",
  passed: true,
  observed: {
    outcome: "status" as const,
    status: 200,
    tls: {
      version: "TLSv1.3",
      cipher: "TLS_AES_128_GCM_SHA256",
      group: "X25519",
      alpn: "h2",
      keyType: "rsa-2048",
      peer,
    },
  },
  durationNs: 1,
};

function factsOf(texts: WireTexts, tls: Partial<(typeof handshake)["observed"]["tls"]> = {}) {
  const record = recordOf(planOf({}), { block: 1, label: "gateway", arm: "a" }, 1, 1);
  const observed = { ...handshake.observed, tls: { ...handshake.observed.tls, ...tls } };
  const results = {
    schema: "ztbench/probe-results/1" as const,
    results: [{ ...handshake, observed }],
  };
  const deployment = { ...record.deployment, legs: [leg, last] };
  return wireFactsOf({ deployment, probes: { before: results, after: results } }, texts);
}

test("a run whose legs are as expected has no problem, and its counts are those under load", () => {
  const facts = factsOf(textsWith());
  assert.deepEqual(wireProblems(facts), []);
  assert.deepEqual(facts[0]?.observed, facts[0]?.expected);
  assert.deepEqual(facts[0]?.counts, {
    open: 1,
    opened: 2,
    fullHandshakes: 0,
    resumedHandshakes: 2,
    requests: 900,
  });
});

test("HTTP/1.1 where HTTP/2 was declared is a problem, on each side that sees it", () => {
  const [found] = wireProblems(
    factsOf(
      textsWith({
        [`${cluster}.upstream_cx_http2_total`]: 0,
        [`${cluster}.upstream_cx_http1_total`]: 3,
      }),
    ),
  );
  assert.equal(found, "client-sidecar to server-sidecar: http 1.1 and 2 instead of 2");
  assert.match(wireProblems(factsOf(textsWith({}, 1))).join(), /http 1\.1 and 2 instead of 2/);
});

for (const [what, changed, problem] of [
  [
    "another group",
    { [`${cluster}.ssl.curves.X25519MLKEM768`]: 1 },
    /group X25519 and X25519MLKEM/,
  ],
  ["an older version", { [`${cluster}.ssl.versions.TLSv1.2`]: 1 }, /version TLSv1\.2 and TLSv1\.3/],
] as const) {
  test(`${what} on a single connection is a problem`, () => {
    assert.match(wireProblems(factsOf(textsWith(changed))).join(), problem);
  });
}

test("a leaf key, protocol or peer that only the handshake shows is compared, too", () => {
  const problems = (tls: Parameters<typeof factsOf>[1]) =>
    wireProblems(factsOf(textsWith(), tls)).join();
  assert.match(problems({ keyType: "ecdsa-p256" }), /keyType ecdsa-p256 instead of rsa-2048/);
  assert.match(problems({ alpn: "" }), /alpn none instead of h2/);
  assert.match(problems({ peer: "spiffe://test/other" }), /peer spiffe:\S+ and spiffe:\S+ instead/);
});

test("what nobody has told is not seen, never taken for granted", () => {
  const problems = wireProblems(factsOf(new Map()));
  assert.ok(problems.includes("server-sidecar to service: http not seen instead of 2"));
  assert.ok(problems.some((problem) => problem.includes("caller not seen instead of")));
});

test("nobody is named on a plain leg, but encryption that was not declared would show", () => {
  const record = recordOf(planOf({}), { block: 1, label: "gateway", arm: "a" }, 1, 1);
  const deployment = { ...record.deployment, legs: [{ ...leg, tls: "none" as const, wire: {} }] };
  const [facts] = wireFactsOf({ ...record, deployment }, textsWith());
  assert.deepEqual(facts?.observed, {
    http: "2",
    version: "TLSv1.3",
    cipher: "TLS_AES_128_GCM_SHA256",
    group: "X25519",
  });
});

test("legs that nothing sees are left out", () => {
  const record = recordOf(planOf({}), { block: 1, label: "gateway", arm: "a" }, 1, 1);
  const unseen = record.deployment.legs.map((known) => ({ ...known, seenBy: [] }));
  const deployment = { ...record.deployment, legs: unseen };
  assert.deepEqual(wireFactsOf({ ...record, deployment }, new Map()), []);
});

test("runs of a treatment share a line, with the range of their counts", () => {
  const wire = factsOf(textsWith());
  const more = wire.map((fact) => ({ ...fact, counts: { ...fact.counts, open: 32 } }));
  const lines = wireLines([
    { label: "mtls", wire },
    { label: "mtls", wire: more },
    { label: "broken" },
  ]);
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /^mtls: client-sidecar to server-sidecar: alpn h2, caller spiffe:/);
  assert.match(
    lines[0] ?? "",
    /; connections open 1 to 32, opened under load 2, full handshakes 0/,
  );
});

const bytesLeg: Leg = {
  from: "client-sidecar",
  to: "server-sidecar",
  http: "1.1",
  tls: "none",
  wire: { carries: "bytes" },
  seenBy: [{ at: "from", unit: "client", prefix: cluster }],
};

/** A leg whose connections the client's proxy has counted like this. */
function bytesFacts(counted: Record<string, number>) {
  const record = recordOf(planOf({}), { block: 1, label: "gateway", arm: "a" }, 1, 1);
  const deployment = { ...record.deployment, legs: [bytesLeg] };
  const named = Object.entries(counted).map(([name, value]) => [`${cluster}.${name}`, value]);
  const text = stats(Object.fromEntries(named) as Record<string, number>);
  return wireFactsOf(
    { ...record, deployment },
    new Map([["client", { before: text, after: text }]]),
  );
}

test("a proxy that passes bytes on counts connections, and none in any version of HTTP", () => {
  const facts = bytesFacts({ upstream_cx_total: 4, upstream_cx_http1_total: 0 });
  assert.deepEqual(facts[0]?.observed, { carries: "bytes" });
  assert.deepEqual(facts[0].expected, { carries: "bytes" });
  assert.deepEqual(wireProblems(facts), []);
});

test("a proxy that reads HTTP where bytes were declared is a problem, and so is an idle one", () => {
  const missing = "client-sidecar to server-sidecar: carries not seen instead of bytes";
  assert.deepEqual(wireProblems(bytesFacts({ upstream_cx_total: 4, upstream_cx_http1_total: 4 })), [
    missing,
  ]);
  assert.deepEqual(wireProblems(bytesFacts({ upstream_cx_total: 0 })), [missing]);
});
