/** Renewals of certificates: how they are counted, how many fall due, and what the table shows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { none, numberOf, value } from "../../../analysis/cell.ts";
import { judgeRun } from "../../../analysis/gates/judge.ts";
import type { JudgedRun } from "../../../analysis/judged-run.ts";
import { proxyFactsOf } from "../../../analysis/proxy-facts.ts";
import { summariseRotations } from "../../../analysis/rotation-arms.ts";
import { rotationTable } from "../../../analysis/rotation-table.ts";
import { dueRenewals, type RunRotation, rotationOf } from "../../../analysis/rotation.ts";
import { renderTables } from "../../../analysis/text.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";
import { planOf, recordOf } from "../../support/bundle.ts";
import { goodInput } from "../../support/gate-input.ts";
import { renewing } from "../../support/rotation-faults.ts";

const echo = "cluster.outbound|8080||echo.ztbench.svc.cluster.local;";
const updates = "ssl_socket_factory.ssl_context_update_by_sds";

/** As Envoy prints them: a cluster has one TLS context, the inbound listener one a filter chain. */
const page = (cluster: number, listener: number) =>
  [
    "### 1796051625092351280 scrape stats",
    `${echo}.client_${updates}: ${cluster}`,
    `${echo}.client_ssl_socket_factory.upstream_context_secrets_not_ready: 7`,
    `cluster.outbound|443||other;.client_${updates}: 0`,
    `cluster.xds-grpc;.client_${updates}: 1`,
    `listener.0.0.0.0_15006.server_${updates}: ${listener}`,
    "",
  ].join("\n");

const renewalsOf = (before: string, after: string) =>
  proxyFactsOf(["sidecar"], new Map([["sidecar", { before, after }]]))[0]?.renewals;

test("one certificate counts once, however many contexts and filter chains take it", () => {
  // Before the load: the certificate and the root, into one context and into three of a listener.
  assert.equal(renewalsOf(page(2, 6), page(2, 6)), 0);
  assert.equal(renewalsOf(page(2, 6), page(3, 9)), 1);
  assert.equal(renewalsOf(page(2, 6), page(5, 15)), 3);
});

test("a context that was left with its old certificate is no renewal of the proxy", () => {
  assert.equal(renewalsOf(page(2, 6), page(2, 12)), 0);
});

test("a proxy that is given no certificates has no count of them", () => {
  const plain =
    "### 1796051625092351280 scrape stats\nlistener.0.0.0.0_80.downstream_cx_total: 4\n";
  assert.equal(renewalsOf(plain, plain), undefined);
});

/** A run of so many seconds, as a whole and measured, with certificates of that life time. */
function runOf(measuredSeconds: number, wholeSeconds: number, certificateSeconds?: number) {
  const plan = planOf({ rateQps: 100, durationSeconds: measuredSeconds });
  const made = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
  const parameters: Record<string, number> =
    certificateSeconds === undefined ? {} : { certificateSeconds };
  const startedAt = "2026-09-21T13:00:00.000Z";
  const finishedAt = new Date(Date.parse(startedAt) + wholeSeconds * 1000).toISOString();
  return { ...made, startedAt, finishedAt, deployment: { ...made.deployment, parameters } };
}

const due: readonly [what: string, run: Parameters<typeof runOf>, least: number, most: number][] = [
  // 200 / (180 / 2 + 1) and 245 / (179 / 2).
  ["the plan for metal", [200, 245, 180], 2, 2],
  // 12 / (10 / 2 + 1) and 26 / (9 / 2).
  ["the plan for a lab", [12, 26, 10], 2, 5],
  // 30 / (59 / 2): it may fall before or after the load, so that nobody knows which run it was.
  ["a run shorter than half of the life time", [12, 30, 60], 1, 1],
  ["certificates that outlast the run", [120, 150, 86_400], 0, 0],
];
for (const [what, run, least, most] of due) {
  test(`${what}: ${least} to ${most} renewals fall due`, () => {
    assert.deepEqual(dueRenewals(runOf(...run)), { least, most });
  });
}

test("a topology without such certificates has no renewals that fall due", () => {
  assert.equal(dueRenewals(runOf(12, 26)), undefined);
});

test("the gate tells what each proxy was given and what was wanted", () => {
  const said = (seconds: number, renewals: readonly number[]) => {
    const gates = judgeRun(renewing(goodInput(), seconds, renewals));
    const found = gates.find(({ id }) => id === "rotations");
    return [found?.outcome, found?.measured, found?.threshold];
  };
  const both = (a: number, b: number) =>
    `ztbench-sidecar-1.service ${a}, ztbench-sidecar-2.service ${b}`;
  assert.deepEqual(said(20, [11, 12]), ["pass", both(11, 12), "10 to 12 by each proxy"]);
  assert.deepEqual(said(20, [11, 0]), ["invalid", both(11, 0), "10 to 12 by each proxy"]);
  assert.deepEqual(said(86_400, [0, 0]), ["pass", both(0, 0), "none"]);
});

test("a run shows its renewals, its new connections, and its worst second", () => {
  const input = renewing(goodInput(), 20, [11, 12]);
  const [leg] = input.wire;
  assert.ok(leg);
  const counts = { open: 1, opened: 30, fullHandshakes: 22, resumedHandshakes: 8, requests: 900 };
  const plain = { ...leg, counts: { open: 16, opened: 0, requests: 900 } };
  const shaped = (...tails: readonly number[]) => ({
    ...input.shape,
    seconds: tails.map((p99Ns) => ({ planned: 9, sent: 9, p50Ns: 1, p99Ns })),
  });
  const shape = shaped(1, 1, 1, 4, 1);
  assert.deepEqual(rotationOf({ ...input, shape, wire: [plain, { ...leg, counts }] }), {
    certificateSeconds: 20,
    renewals: { "ztbench-sidecar-1.service": 11, "ztbench-sidecar-2.service": 12 },
    opened: value(30, "count"),
    fullHandshakes: value(22, "count"),
    resumedHandshakes: value(8, "count"),
    worstSecond: value(4, "ratio"),
    bad: none("the plan has no objective for them"),
  });
  assert.deepEqual(rotationOf(input, 7)?.bad, value(7, "count"));
  const broken = rotationOf({ ...input, shape: shaped(1, Infinity) });
  assert.deepEqual(broken?.worstSecond, none("a second has no p99"));
});

function planWith(parameters: object, more: object = {}): Plan {
  return planSchema.parse({
    schema: "ztbench/plan/1",
    name: "rotation",
    purpose: "a test",
    seed: 1,
    blocks: 2,
    baseline: "placebo",
    treatments: [
      { label: "placebo", topology: "mtls-h2" },
      { label: "leaf", topology: "mtls-h2", parameters },
      { label: "direct", topology: "baseline" },
    ],
    load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 12, connections: 8 },
    equivalenceMargin: 0.05,
    ...more,
  });
}

type Counts = readonly [client: number, server: number, opened: number, full: number, bad?: number];

function runWith(label: string, block: number, counts?: Counts): JudgedRun {
  const [client = 0, server = 0, opened = 0, full = 0, bad] = counts ?? [];
  const rotation: RunRotation = {
    certificateSeconds: label === "leaf" ? 10 : 86_400,
    renewals: { client, server },
    opened: value(opened, "count"),
    fullHandshakes: value(full, "count"),
    resumedHandshakes: value(0, "count"),
    worstSecond: value(label === "leaf" ? 3 : 1.5, "ratio"),
    bad: bad === undefined ? none("the plan has no objective for them") : value(bad, "count"),
  };
  return {
    ...{ name: `${label}-${block}`, label, block, arm: "a", condition: "steady" },
    ...{ verdict: "VALID", gates: [], latency: { planned: 1200 }, resources: {} },
    ...(counts === undefined ? {} : { rotation }),
  } as unknown as JudgedRun;
}

test("the table tells events and new connections of an arm beside those of its placebo", () => {
  const runs = [
    runWith("placebo", 1, [0, 0, 4, 1]),
    runWith("placebo", 2, [0, 0, 6, 1]),
    runWith("leaf", 1, [2, 2, 7, 3]),
    runWith("leaf", 2, [3, 2, 9, 5]),
    runWith("direct", 1),
  ];
  const rotations = summariseRotations(planWith({ certificateSeconds: 10 }), runs);
  assert.ok(rotations);
  assert.deepEqual(
    rotations.arms.map(({ label, placebo, events }) => [label, placebo, events]),
    [
      ["placebo", undefined, value(0, "count")],
      ["leaf", "placebo", value(9, "count")],
    ],
  );
  const lines = renderTables([rotationTable(rotations)]).split("\n");
  assert.deepEqual(
    lines.slice(2, 4).map((line) => line.trim().split(/ {2,}/)),
    [
      ["placebo", "86400", "0", "0 [0–0]", "5 [4–6]", "1 [1–1]", "0", "1.500"],
      ["leaf", "10", "9", "2 [2–3]", "8 [7–9]", "4 [3–5]", "0", "3.000"],
    ],
  );
  const told =
    "leaf: placebo placebo; renewals 2 against 0, opened 8 against 5, " +
    "full handshakes 4 against 1, worst second 3.000 against 1.500";
  assert.ok(lines.join(" ").replace(/\s+/g, " ").includes(told));
  assert.deepEqual(
    lines.filter((line) => line.length > 100),
    [],
  );
});

test("a treatment without a valid run says so, and is not taken for one without renewals", () => {
  const runs = [{ ...runWith("leaf", 1), verdict: "INVALID" } as JudgedRun];
  const arms = summariseRotations(planWith({ certificateSeconds: 10 }), runs)?.arms ?? [];
  const leaf = arms.find(({ label }) => label === "leaf");
  assert.deepEqual(leaf?.events, none("no valid run"));
});

test("a plan that says nothing of certificates has no such table", () => {
  assert.equal(summariseRotations(planWith({}), [runWith("leaf", 1, [0, 0, 0, 0])]), undefined);
});

const objective = { rotation: { sloMilliseconds: 10 } };

function badOf(...blocks: readonly [placebo: number, leaf: number, events: number][]) {
  const plan = planWith({ certificateSeconds: 10 }, { ...objective, blocks: blocks.length });
  const runs = blocks.flatMap(([placebo, leaf, events], index) => [
    runWith("placebo", index + 1, [0, 0, 0, 0, placebo]),
    runWith("leaf", index + 1, [events, events, 0, 0, leaf]),
  ]);
  const rotations = summariseRotations(plan, runs);
  assert.ok(rotations);
  return { rotations, found: rotations.arms.find(({ label }) => label === "leaf")?.badPerEvent };
}

test("bad requests of an arm are told by the event, less those of its placebo", () => {
  // 30 of 4 events, 45 of 6, 15 of 2: 7.5 each, with a spread of none.
  const { found, rotations } = badOf([5, 35, 2], [3, 48, 3], [1, 16, 1]);
  assert.equal(found?.kind, "estimate");
  assert.ok(Math.abs(found.mean - 7.5) < 1e-9);
  // Student's interval has no width; that of two shares, 99 and 9 of 3600, has.
  assert.ok(found.low > 5.5 && found.low < 6 && found.high > 9 && found.high < 9.5);
  const text = renderTables([rotationTable(rotations)]).replace(/\s+/g, " ");
  assert.match(
    text,
    /leaf: bad requests an event, over those of placebo: \+7\.50 \[\+5\.\d\d, \+9/,
  );
  assert.match(
    text,
    /bad: requests of a run that failed, were not sent, or took longer than 10 ms/,
  );
});

test("events that bring nothing bad have an interval none the less", () => {
  const { found } = badOf([0, 0, 2], [0, 0, 2]);
  assert.equal(found?.kind, "estimate");
  assert.equal(found.mean, 0);
  // Wilson's bound of 0 of 2400 is 0.0016; 300 requests an event.
  assert.ok(found.high > 0.4 && found.high < 0.6, String(found.high));
});

test("bad requests that come together widen the interval", () => {
  const { found } = badOf([0, 0, 2], [0, 0, 2], [0, 120, 2]);
  assert.equal(found?.kind, "estimate");
  assert.ok(Math.abs(found.mean - 10) < 1e-9);
  // t(0.975, 2) * 17.32 / sqrt(3) = 43.0
  assert.ok(Math.abs(found.high - 53.03) < 0.01, String(found.high));
});

test("without an objective or two blocks, bad requests are not told by the event, and why", () => {
  assert.deepEqual(badOf([0, 0, 2]).found, {
    kind: "none",
    reason: "two blocks are needed in which it renews and both were measured",
  });
  const runs = [runWith("placebo", 1, [0, 0, 0, 0]), runWith("leaf", 1, [2, 2, 0, 0])];
  const arms = summariseRotations(planWith({ certificateSeconds: 10 }), runs)?.arms;
  assert.deepEqual(arms?.find(({ label }) => label === "leaf")?.badPerEvent, {
    kind: "none",
    reason: "the plan has no objective for them",
  });
  assert.throws(
    () => planWith({}, objective),
    /rotation.*must be absent, no treatment has certificateSeconds/s,
  );
});

test("what a renewal breaks is counted, though its run is invalid for it", () => {
  const plan = planWith({ certificateSeconds: 10 }, objective);
  const gateOf = (id: string) => [{ id, outcome: "invalid" }] as unknown as JudgedRun["gates"];
  const leafOf = (block: number, gate: string): JudgedRun => ({
    ...runWith("leaf", block, [1, 1, 0, 0, 40]),
    ...{ verdict: "INVALID", gates: gateOf(gate) },
  });
  const of = (gate: string) => {
    const placebos = [1, 2].map((block) => runWith("placebo", block, [0, 0, 0, 0, 0]));
    const runs = [...placebos, leafOf(1, gate), leafOf(2, gate)];
    return summariseRotations(plan, runs)?.arms.find(({ label }) => label === "leaf");
  };
  const found = of("goodput")?.badPerEvent;
  assert.equal(found?.kind, "estimate");
  assert.equal(found.mean, 20);
  assert.deepEqual(numberOf(of("goodput")?.figures.bad ?? none("")), 40);
  assert.equal(of("rotations")?.badPerEvent?.kind, "none");
});

test("beside what renews, too, or has no certificates, bad requests are not told, and why", () => {
  const reasonOf = (placebo: Counts | undefined, leaf: Counts) => {
    const runs = [1, 2].flatMap((block) => [
      runWith("placebo", block, placebo),
      runWith("leaf", block, leaf),
    ]);
    const plan = planWith({ certificateSeconds: 10 }, objective);
    const found = summariseRotations(plan, runs)?.arms.find(({ label }) => label === "leaf");
    return found?.badPerEvent?.kind === "none" ? found.badPerEvent.reason : undefined;
  };
  const leaf: Counts = [1, 1, 0, 0, 4];
  assert.equal(reasonOf([1, 1, 0, 0, 2], leaf), "placebo renews certificates, too");
  assert.equal(reasonOf(undefined, leaf), "placebo has no certificates");
  assert.equal(reasonOf([0, 0, 0, 0, 0], [0, 0, 0, 0, 4]), "nothing was renewed");
});
