/** Brackets, medians, losses and ladders of searches whose answers are known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  describeSearch,
  type JudgedSearch,
  summariseCapacities,
  type TriedRate,
} from "../../../analysis/capacity.ts";
import type { ProbeResult } from "../../../analysis/capacity-probe.ts";
import { none, numberOf, value } from "../../../analysis/cell.ts";
import { capacitySchema } from "../../../contracts/capacity.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";

const settings = capacitySchema.parse({
  blocks: 3,
  sloMilliseconds: 10,
  startQps: 500,
  maxQps: 20_000,
});

const plan: Plan = planSchema.parse({
  schema: "ztbench/plan/1",
  name: "capacity",
  purpose: "a test",
  seed: 1,
  blocks: 3,
  baseline: "baseline",
  treatments: [
    { label: "baseline", topology: "baseline" },
    { label: "jwt", topology: "jwt" },
  ],
  load: { rateQps: 100, warmupSeconds: 1, durationSeconds: 10, connections: 8 },
  capacity: settings,
  equivalenceMargin: 0.05,
});

const tried = (
  purpose: TriedRate["purpose"],
  rateQps: number,
  passed: boolean,
  result?: ProbeResult,
): TriedRate => ({
  purpose,
  rateQps,
  passed,
  reasons: passed ? [] : ["late"],
  ...(result && { result }),
});

const confirmed = (rate: number) => [1, 2, 3].map(() => tried("confirm", rate, true));

function search(given: Partial<JudgedSearch>): JudgedSearch {
  const common = { block: 1, position: 1, label: "jwt", topology: "jwt", ended: "confirmed" };
  return { ...common, tried: [], ...given } as JudgedSearch;
}

const found = (label: string, block: number, rate: number) =>
  search({
    label,
    block,
    tried: [tried("search", rate, true), tried("search", rate + 20, false), ...confirmed(rate)],
  });

test("a bracket is the confirmed rate and the lowest one above it that did not hold", () => {
  const block = describeSearch(
    settings,
    search({
      tried: [
        tried("search", 500, true),
        tried("search", 750, false),
        tried("search", 612, true),
        tried("search", 677, false),
        tried("confirm", 612, true),
        tried("confirm", 612, false),
        ...confirmed(602),
      ],
    }),
  );
  assert.equal(numberOf(block.lastPassQps), 602);
  // 612 held twice and then did not: it is where the bracket ends.
  assert.equal(numberOf(block.firstFailQps), 612);
  assert.equal(block.probes, 9);
});

test("a search that found nothing says why instead of a number", () => {
  const nothing = describeSearch(settings, search({ ended: "none holds" }));
  assert.deepEqual(nothing.lastPassQps, none("no rate holds the objective"));
  const broken = describeSearch(settings, search({ ended: "broke off" }));
  assert.deepEqual(broken.firstFailQps, none("the search broke off"));
});

test("a rate confirmed less often than the plan says is no capacity", () => {
  const twice = [tried("confirm", 612, true), tried("confirm", 612, true)];
  const block = describeSearch(settings, search({ ended: "broke off", tried: twice }));
  assert.equal(block.lastPassQps.kind, "none");
});

test("the loss is made of capacities paired by block, and the capacity is their median", () => {
  // Each block halves the baseline exactly: ratio 1/2 without any spread.
  const searches = [1000, 1100, 1400].flatMap((rate, index) => [
    found("baseline", index + 1, rate),
    found("jwt", index + 1, rate / 2),
  ]);
  const { treatments, ceilingQps } = summariseCapacities(plan, settings, searches);
  const [baseline, jwt] = treatments;
  assert.deepEqual(baseline?.capacityQps, {
    kind: "value",
    value: 1100,
    unit: "per second",
    interval: { low: 1000, high: 1400, kind: "range" },
  });
  assert.equal(baseline.throughputLoss, undefined);
  const loss = jwt?.throughputLoss;
  assert.ok(loss?.kind === "value" && loss.interval !== undefined);
  assert.ok(Math.abs(loss.value - 0.5) < 1e-12);
  assert.ok(Math.abs(loss.interval.low - 0.5) < 1e-12);
  assert.deepEqual(ceilingQps, none("no search against a null server"));
});

test("the interval of a loss is that of the paired log-ratios", () => {
  // ln ratios -0.6, -0.5, -0.4: mean -0.5, sd 0.1, t(0.975; 2) = 4.30265, half-width 0.24842.
  const searches = [-0.6, -0.5, -0.4].flatMap((log, index) => [
    found("baseline", index + 1, 1e9),
    found("jwt", index + 1, 1e9 * Math.exp(log)),
  ]);
  const loss = summariseCapacities(plan, settings, searches).treatments[1]?.throughputLoss;
  assert.ok(loss?.kind === "value" && loss.interval !== undefined);
  assert.ok(Math.abs(loss.value - (1 - Math.exp(-0.5))) < 1e-6);
  assert.ok(Math.abs(loss.interval.low - (1 - Math.exp(-0.5 + 0.24842))) < 1e-4);
  assert.ok(Math.abs(loss.interval.high - (1 - Math.exp(-0.5 - 0.24842))) < 1e-4);
});

test("no loss is made of a capacity beyond the highest rate of the plan", () => {
  const open = search({ label: "baseline", ended: "at most", tried: confirmed(20_000) });
  const { treatments } = summariseCapacities(plan, settings, [open, found("jwt", 1, 900)]);
  assert.deepEqual(
    treatments[1]?.throughputLoss,
    none("a capacity lies beyond the highest rate of the plan"),
  );
  assert.deepEqual(treatments[0]?.blocks[0]?.firstFailQps, none("nothing above 20000/s was tried"));
});

test("a capacity near the driver's own ceiling is told to be the driver's", () => {
  const searches = [found("ceiling", 1, 2000), found("baseline", 1, 1500), found("jwt", 1, 900)];
  const { warnings, ceilingQps } = summariseCapacities(plan, settings, searches);
  assert.equal(numberOf(ceilingQps), 2000);
  assert.deepEqual(warnings, [
    "baseline: its capacity is 75 % of what the load driver itself reaches",
  ]);
});

test("a ladder tells collapse, and what differs between the ways up and down", () => {
  const result = (goodShare: number, p99Ms: number): ProbeResult => ({
    passed: true,
    reasons: [],
    counts: { planned: 1000, sent: 1000, failed: 0, over: 0, windows: [] },
    goodShare,
    responseP99: value(p99Ms * 1e6, "ns"),
  });
  const laddered = { ...settings, ladder: { steps: 3, from: 0.5, to: 1.1, secondsPerStep: 5 } };
  const block = describeSearch(
    laddered,
    search({
      tried: [
        ...confirmed(600),
        tried("up", 300, true, result(1, 2)),
        tried("up", 450, true, result(0.96, 4)),
        tried("up", 660, false, result(0.94, 50)),
        tried("down", 660, false, result(0.94, 50)),
        tried("down", 450, true, result(0.99, 5)),
        tried("down", 300, true, result(1, 2.2)),
      ],
    }),
  );
  assert.equal(numberOf(block.collapseQps), 660);
  assert.ok(Math.abs((numberOf(block.hysteresis) ?? 0) - 0.25) < 1e-12);
});
