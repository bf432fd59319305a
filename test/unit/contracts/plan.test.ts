import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import {
  baselineOf,
  coldStartOf,
  isBaseline,
  loadOf,
  type Plan,
  planSchema,
  type Treatment,
} from "../../../contracts/plan.ts";

const plans = path.resolve(import.meta.dirname, "../../../plans");

const text = `schema: ztbench/plan/1
name: rates
purpose: a test
seed: 1
blocks: 2
baseline: base
treatments:
  - { label: base, topology: baseline }
  - { label: base-5k, topology: baseline, rateQps: 5000 }
  - { label: jwt, topology: jwt }
  - { label: jwt-5k, topology: jwt, rateQps: 5000, baseline: base-5k }
load: { rateQps: 1000, warmupSeconds: 1, durationSeconds: 2, connections: 4 }
equivalenceMargin: 0.05
`;

const read = (from = "", to = "") => parseDocument(planSchema, text.replace(from, to), "plan.yaml");

function treatment(plan: Plan, label: string): Treatment {
  const found = plan.treatments.find((candidate) => candidate.label === label);
  assert.ok(found, label);
  return found;
}

test("a treatment is loaded at its own rate, the others at that of the plan", () => {
  const plan = read();
  const rates = plan.treatments.map((t) => loadOf(plan, t).rateQps);
  assert.deepEqual(rates, [1000, 5000, 1000, 5000]);
  assert.equal(loadOf(plan, treatment(plan, "jwt-5k")).durationSeconds, 2);
});

test("a cold start is loaded without pre-warming and warm-up, a steady treatment with both", () => {
  const plan = read("topology: jwt }", "topology: jwt, condition: cold-start }");
  const { prewarm, warmupSeconds } = loadOf(plan, treatment(plan, "jwt"));
  assert.deepEqual([prewarm.seconds, warmupSeconds], [0, 0]);
  const steady = loadOf(plan, treatment(plan, "base"));
  assert.deepEqual([steady.prewarm, steady.warmupSeconds], [{ rateQps: 50, seconds: 2 }, 1]);
});

test("pre-warming is never faster than the load itself", () => {
  const plan = read("rateQps: 1000", "rateQps: 20");
  assert.equal(loadOf(plan, treatment(plan, "base")).prewarm.rateQps, 20);
  assert.equal(loadOf(plan, treatment(plan, "base-5k")).prewarm.rateQps, 50);
});

test("a storm is more than four times the declared connections unless the plan says otherwise", () => {
  assert.deepEqual(coldStartOf(read()), { stormFactor: 4, sloMilliseconds: 10 });
  const own = read("equivalenceMargin", "coldStart: { stormFactor: 2 }\nequivalenceMargin");
  assert.deepEqual(coldStartOf(own), { stormFactor: 2, sloMilliseconds: 10 });
});

test("a treatment is compared with the baseline it names, else with that of the plan", () => {
  const plan = read();
  const baselines = plan.treatments.map((t) => baselineOf(plan, t));
  assert.deepEqual(baselines, ["base", "base-5k", "base", "base-5k"]);
  assert.deepEqual(
    plan.treatments.map(({ label }) => isBaseline(plan, label)),
    [true, true, false, false],
  );
});

const bad: [name: string, from: string, to: string, expected: RegExp][] = [
  [
    "compared at two rates",
    ", baseline: base-5k }",
    " }",
    /plan\.yaml:\d+:\d+: treatments\.\d\.baseline: .*same rate \(5000\/s\), base has 1000\/s/,
  ],
  [
    "compared with what is not there",
    "baseline: base-5k }",
    "baseline: base-6k }",
    /11:62: treatments\.3\.baseline: must be the label of a treatment \(base, base-5k, jwt, jwt-5k\)/,
  ],
  [
    "compared with itself",
    "{ label: jwt, topology: jwt }",
    "{ label: jwt, topology: jwt, baseline: jwt }",
    /10:\d+: treatments\.2\.baseline: must be absent, jwt is a baseline itself/,
  ],
  [
    "with the driver's own connections in a steady row",
    "topology: jwt }",
    "topology: jwt, driver: vegeta, connectionLimit: driver-default }",
    /10:\d+: treatments\.2\.connectionLimit: .*driver-default goes with condition cold-start only/,
  ],
  [
    "with the connections of a driver that has no default",
    "topology: jwt }",
    "topology: jwt, condition: cold-start, connectionLimit: driver-default }",
    /treatments\.2\.connectionLimit: .*goes with driver vegeta only/,
  ],
  [
    "that is steady without a warm-up",
    "warmupSeconds: 1",
    "warmupSeconds: 0",
    /load\.warmupSeconds: must be greater than 0, base is steady/,
  ],
  ["at no rate", "rateQps: 5000, b", "rateQps: 0, b", /treatments\.3\.rateQps: must be greater/],
];
for (const [name, from, to, expected] of bad) {
  test(`a treatment ${name} is refused with its position`, () => {
    assert.throws(
      () => read(from, to),
      (error) =>
        error instanceof Failure && error.code === "document" && expected.test(error.message),
    );
  });
}

test("every plan of the repository is valid", () => {
  const files = readdirSync(plans).filter((name) => name.endsWith(".yaml"));
  assert.ok(files.length >= 4);
  for (const file of files) {
    parseDocument(planSchema, readFileSync(path.join(plans, file), "utf8"), file);
  }
});

const published = (name: string) =>
  parseDocument(planSchema, readFileSync(path.join(plans, `${name}.yaml`), "utf8"), name);

test("the published measurement is planned at its five rates with its driver", () => {
  const plan = published("published");
  const grid = (topology: string) =>
    plan.treatments.filter((t) => t.topology === topology).map((t) => loadOf(plan, t).rateQps);
  for (const topology of ["baseline", "jwt", "gateway"]) {
    assert.deepEqual(grid(topology), [1000, 5000, 10_000, 18_000, 20_000]);
  }
  for (const topology of ["mtls-h1", "mtls-h2"]) {
    assert.deepEqual(grid(topology), [1000, 5000, 10_000, 18_000]);
  }
  for (const { driver, arrival } of plan.treatments) {
    assert.deepEqual([driver, arrival], ["vegeta", "uniform"]);
  }
  assert.equal(plan.minimum?.serviceCpus, 8);
});

test("its scaled-down plan has the same topologies, driver and arrivals at the lowest rate", () => {
  const [whole, lab] = [published("published"), published("published-lab")];
  const topologies = (plan: Plan) => [...new Set(plan.treatments.map((t) => t.topology))];
  assert.deepEqual(topologies(lab), topologies(whole));
  assert.deepEqual([...new Set(lab.treatments.map((t) => t.driver))], ["vegeta"]);
  assert.equal(lab.load.rateQps, 1000);
  assert.equal(lab.minimum?.serviceCpus, 1);
});
