/** What opening a connection costs, from arms whose costs are known. */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { layerTables } from "../../../analysis/attribution-table.ts";
import { attribute } from "../../../analysis/attribution.ts";
import { none, value } from "../../../analysis/cell.ts";
import type { HandshakeCost, HandshakeCosts } from "../../../analysis/handshake-cost.ts";
import type { JudgedRun } from "../../../analysis/judged-run.ts";
import { renderTables } from "../../../analysis/text.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";
import { normal, seeded } from "../../support/bundle.ts";
import { assertGolden } from "../../support/golden.ts";

const counts = [1, 10, 0] as const;
const kinds = ["tls", "full", "plain"] as const;
type Kind = (typeof kinds)[number];

/**
 * Latency in µs: a request with TLS takes 400 and a connection 900 more, 2900 if its handshake is a
 * full one; without TLS 300 and 150.
 */
const truth = {
  tls: { steady: 400, opening: 900 },
  full: { steady: 400, opening: 2900 },
  plain: { steady: 300, opening: 150 },
} as const;

const labelOf = (kind: Kind, n: number) => `${kind}-${n}`;
const arms = counts.map((n) => ({
  requestsPerConnection: n,
  tls: labelOf("tls", n),
  plain: labelOf("plain", n),
}));
const fullArms = arms.map((arm) => {
  const n = arm.requestsPerConnection;
  return n === 0 ? arm : { ...arm, full: labelOf("full", n) };
});

function planOf(blocks: number, given: object = { handshake: arms }): Plan {
  const churned = counts.flatMap((n) =>
    kinds.map((kind) => ({
      label: labelOf(kind, n),
      topology: kind === "plain" ? "sidecar-http" : "mtls-only",
      parameters: {
        requestsPerConnection: n,
        ...(kind === "full" ? { sessionResumption: 0 } : {}),
      },
    })),
  );
  return planSchema.parse({
    schema: "ztbench/plan/1",
    name: "handshake",
    purpose: "a test",
    seed: 1,
    blocks,
    baseline: "direct",
    treatments: [{ label: "direct", topology: "baseline" }, ...churned],
    load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 10, connections: 8 },
    ladder: { rungs: { R0: "direct", R4: "tls-0" }, ...given },
    equivalenceMargin: 0.05,
  });
}

type Shape = { readonly block: number; readonly label: string; readonly us: number };

function run({ block, label, us }: Shape, opened: number, failed = 0): JudgedRun {
  const ns = value(us * 1000, "ns");
  const quantiles = { p50: ns, p95: ns, p99: ns, "p99.9": none("few") };
  const response = { count: 1000, minNs: ns, maxNs: ns, meanNs: ns, quantiles };
  const leg = { from: "a", to: "b", expected: {}, observed: {} };
  return {
    name: `${label}-${block}`,
    block,
    label,
    arm: "a",
    condition: "steady",
    verdict: "VALID",
    gates: [],
    latency: { response, failed },
    resources: { units: [], cpuPerRequest: value(us / 2, "us"), cores: value(us / 1e4, "cores") },
    wire: [
      { ...leg, counts: {} },
      { ...leg, counts: { opened, requests: 1000 } },
    ],
  } as unknown as JudgedRun;
}

/** @param spreadUs standard deviation of what a run adds by itself */
function runsOf(blocks: number, spreadUs: number, seed = 1): JudgedRun[] {
  const random = seeded(seed);
  return Array.from({ length: blocks }, (_, index) => index + 1).flatMap((block) => {
    const level = 50 * block;
    const noise = () => spreadUs * normal(random);
    const churned = counts.flatMap((n) =>
      kinds.map((kind) => {
        const { steady, opening } = truth[kind];
        const us = steady + (n === 0 ? 0 : opening / n) + level + noise();
        return run({ block, label: labelOf(kind, n), us }, n === 0 ? 0 : 1000 / n);
      }),
    );
    return [run({ block, label: "direct", us: 100 + level }, 0), ...churned];
  });
}

function costsOf(plan: Plan, runs: readonly JudgedRun[]): HandshakeCosts {
  const found = attribute(plan, runs)?.handshake;
  assert.ok(found, "the ladder has arms");
  return found;
}

function fitted(cost: HandshakeCost): HandshakeCost & { kind: "fit" } {
  assert.equal(cost.kind, "fit");
  return cost;
}

type Estimate = ReturnType<typeof fitted>["tls"]["handshake"];
const close = (estimate: Estimate, us: number) => {
  assert.equal(estimate.kind, "estimate");
  assert.ok(Math.abs(estimate.mean - us * 1000) < 20, `${estimate.mean}, wanted ${us} µs`);
};
const holds = (estimate: Estimate, truly: number) => {
  assert.equal(estimate.kind, "estimate");
  const { low, high } = estimate;
  assert.ok(low <= truly && truly <= high, `${low} to ${high} holds ${truly}`);
};

test("request, connection and handshake are found, whatever a block does to all arms", () => {
  const { costs, blocks } = costsOf(planOf(5), runsOf(5, 0.001));
  assert.deepEqual(blocks, [1, 2, 3, 4, 5]);
  const { tls, full, plain } = fitted(costs.meanNs);
  assert.equal(full, undefined);
  // The level of the blocks, 150 µs on average, is part of every request.
  close(tls.steady, 550);
  close(plain.steady, 450);
  close(tls.opening, 900);
  close(plain.opening, 150);
  close(tls.handshake, 750);
  // 900 / (0.05 * 550) = 32.7; CPU has half of each.
  assert.deepEqual(tls.crossover, value(33, "count"));
  assert.deepEqual(fitted(costs.cpuUs).tls.crossover, value(33, "count"));
});

test("full handshakes are told beside resumed ones, over the same plaintext", () => {
  const plan = planOf(5, { handshake: fullArms });
  const { costs, arms: found } = costsOf(plan, runsOf(5, 0.001));
  const { full, tls } = fitted(costs.meanNs);
  assert.ok(full);
  close(full.steady, 550);
  close(full.opening, 2900);
  close(full.handshake, 2750);
  close(tls.handshake, 750);
  // 2900 / (0.05 * 550) = 105.5
  assert.deepEqual(full.crossover, value(106, "count"));
  assert.deepEqual(
    found.map(({ treatments }) => treatments.map(({ label }) => label)),
    [
      ["tls-1", "full-1", "plain-1"],
      ["tls-10", "full-10", "plain-10"],
      ["tls-0", "plain-0"],
    ],
  );
});

test("full handshakes are asked for in every arm that has handshakes, or in none", () => {
  const [one, ten, never] = fullArms;
  assert.ok(one && ten && never);
  const without = { ...ten, full: undefined };
  assert.throws(
    () => planOf(3, { handshake: [one, without, never] }),
    /must name full in every arm that closes connections, or in none/,
  );
  assert.throws(
    () => planOf(3, { handshake: [one, ten, { ...never, full: "full-0" }] }),
    /must not name full where connections are never closed/,
  );
  assert.throws(
    () => planOf(3, { handshake: [{ ...one, full: "tls-1" }, ten, never] }),
    /must have sessionResumption 0 in tls-1, found 1/,
  );
  assert.throws(
    () => planOf(3, { handshake: [{ ...one, tls: "full-1" }, ten, never] }),
    /must have sessionResumption 1 in full-1, found 0/,
  );
});

test("95 % intervals of the handshake hold it in about 95 of 100 campaigns", () => {
  let held = 0;
  for (let seed = 1; seed <= 400; seed += 1) {
    const { handshake } = fitted(costsOf(planOf(5), runsOf(5, 20, seed)).costs.meanNs).tls;
    assert.equal(handshake.kind, "estimate");
    if (handshake.low <= 750_000 && 750_000 <= handshake.high) held += 1;
  }
  // 4 standard deviations of a binomial of 400 at 0.95 are 17.
  assert.ok(held >= 363 && held <= 397, `${held} of 400`);
});

test("the misfit of a line is about 1, that of a bend is far above", () => {
  const straight = runsOf(20, 20);
  const bent = straight.map((one) => {
    if (one.label !== "tls-10") return one;
    const cell = one.latency?.response.meanNs;
    assert.equal(cell?.kind, "value");
    return run({ block: one.block, label: one.label, us: cell.value / 1000 + 200 }, 100);
  });
  const misfit = (runs: JudgedRun[]) => fitted(costsOf(planOf(20), runs).costs.meanNs).tls.misfit;
  assert.ok(misfit(straight) < 6, String(misfit(straight)));
  assert.ok(misfit(bent) > 50, String(misfit(bent)));
});

test("an opening that may cost nothing has no crossover, and says so", () => {
  const jittered = runsOf(5, 20).map((one, index) =>
    run({ block: one.block, label: one.label, us: 300 + 5 * Math.sin(index * 1.7) }, 1),
  );
  const { tls } = fitted(costsOf(planOf(5), jittered).costs.meanNs);
  holds(tls.opening, 0);
  assert.deepEqual(tls.crossover, none("the interval of what opening costs holds 0"));
});

test("what connections really carried is counted, not believed", () => {
  const [one, ten, never] = costsOf(planOf(3), runsOf(3, 20)).arms;
  assert.deepEqual(one?.treatments[0]?.carried, value(1, "ratio"));
  assert.deepEqual(ten?.treatments[1]?.carried, value(10, "ratio"));
  assert.deepEqual(never?.treatments[0]?.carried, none("none was opened"));
  const uncounted = runsOf(3, 20).map((one): JudgedRun => ({ ...one, wire: [] }));
  assert.deepEqual(
    costsOf(planOf(3), uncounted).arms[0]?.treatments[0]?.carried,
    none("no proxy has counted its connections and requests"),
  );
});

test("handshakes that took up a session again are told apart", () => {
  const counted = (one: JudgedRun, full: number, resumed: number): JudgedRun => ({
    ...one,
    wire: (one.wire ?? []).map((leg) => {
      const counts = { ...leg.counts, fullHandshakes: full, resumedHandshakes: resumed };
      return leg.counts.opened === undefined ? leg : { ...leg, counts };
    }),
  });
  const resumedBy = (full: number, resumed: number) => {
    const runs = runsOf(3, 20).map((one) => counted(one, full, resumed));
    return costsOf(planOf(3), runs).arms[0]?.treatments[0]?.resumed;
  };
  assert.deepEqual(resumedBy(1, 3), value(0.75, "ratio"));
  assert.deepEqual(resumedBy(0, 0), none("no handshake"));
  const [secured, plain] = costsOf(planOf(3), runsOf(3, 20)).arms[0]?.treatments ?? [];
  assert.deepEqual(secured?.resumed, none("no proxy has counted its handshakes"));
  assert.equal(plain?.resumed, undefined);
});

for (const [what, change, reason] of [
  [
    "failed requests in an arm",
    (one: JudgedRun) =>
      one.label === "tls-1" ? run({ block: one.block, label: one.label, us: 1 }, 1, 2) : one,
    "tls-1: 2 requests failed",
  ],
  [
    "arms that do not vary",
    (one: JudgedRun) => run({ block: one.block, label: one.label, us: 300 }, 1),
    "an arm does not vary over the blocks, so that it has no weight",
  ],
  [
    "one valid block",
    (one: JudgedRun): JudgedRun =>
      one.block > 1 && one.label === "plain-10" ? { ...one, verdict: "INVALID" } : one,
    "two blocks in which every arm is valid are needed, there is one",
  ],
] as const) {
  test(`${what}: no fit, and the reason instead`, () => {
    const runs = runsOf(3, 20).map(change);
    assert.deepEqual(costsOf(planOf(3), runs).costs.meanNs, none(reason));
  });
}

test("a ladder without arms has no handshake", () => {
  assert.equal(attribute(planOf(3, {}), runsOf(3, 20))?.handshake, undefined);
});

test("an arm whose treatment closes connections otherwise is refused", () => {
  const [first, second] = arms;
  assert.ok(first && second);
  const swapped = [{ ...first, tls: second.tls }, second];
  assert.throws(
    () => planOf(3, { handshake: swapped }),
    /must have requestsPerConnection 1 in tls-10, found 10/,
  );
});

test("the tables of layers are the reviewed ones", () => {
  const found = attribute(planOf(5, { handshake: fullArms }), runsOf(5, 20));
  assert.ok(found);
  const golden = path.join(import.meta.dirname, "golden", "layers.txt");
  assertGolden(golden, renderTables(layerTables(found)));
});
