import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { type Plan, planSchema } from "../../../contracts/plan.ts";
import type { CpuLayout, Testbed } from "../../../contracts/testbed.ts";
import { requireFeasible } from "../../../loadgen/feasibility.ts";
import { examplePlan, exampleTestbed } from "./example.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const planNamed = (name: string): Plan => {
  const file = `plans/${name}.yaml`;
  return parseDocument(planSchema, readFileSync(path.join(root, file), "utf8"), file);
};

/** The example testbed with other CPU sets on one host, or on all. */
function testbedWith(cpus: Partial<CpuLayout>, only?: string): Testbed {
  const testbed = exampleTestbed();
  return {
    ...testbed,
    hosts: testbed.hosts.map((host) =>
      only === undefined || host.name === only
        ? { ...host, cpus: { ...host.cpus, ...cpus } }
        : host,
    ),
  };
}

function refusal(plan: Plan, testbed: Testbed): Failure {
  try {
    requireFeasible(plan, testbed);
  } catch (error) {
    assert.ok(error instanceof Failure);
    return error;
  }
  throw new Error("it was taken for feasible");
}

test("the published plan is refused on a lab, with need, finding and the plan to take instead", () => {
  const failure = refusal(planNamed("published"), exampleTestbed());
  assert.equal(failure.code, "testbed");
  assert.equal(
    failure.message,
    "plan published on example: needs 8 service CPUs on host server, found 1 (CPUs 1)",
  );
  assert.match(failure.hint ?? "", /\.\/ztbench campaign plans\/published-lab\.yaml$/);
  const other = planNamed("published").minimum?.otherwise ?? "";
  assert.ok(existsSync(path.join(root, other)), other);
});

test("its scaled-down plan is accepted there", () => {
  assert.deepEqual(requireFeasible(planNamed("published-lab"), exampleTestbed()), []);
});

test("eight service CPUs carry the published plan, on the server alone", () => {
  const testbed = testbedWith({ service: "28,30,32-37" }, "server");
  assert.deepEqual(requireFeasible(planNamed("published"), testbed), []);
});

test("more service CPUs than the plan speaks of are told, since GOMAXPROCS follows them", () => {
  const warnings = requireFeasible(planNamed("published"), testbedWith({ service: "0-15" }));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^host server: the service has 16 CPUs, the plan speaks of 8/);
});

test("every set that is too small is named, unreserved ones too", () => {
  const plan = { ...examplePlan(["baseline"]), minimum: { loadCpus: 2, proxyCpus: 1 } };
  const failure = refusal(plan, testbedWith({ proxy: "" }, "gateway"));
  assert.match(failure.message, /needs 2 load CPUs on host client, found 1 \(CPUs 1\)/);
  assert.match(failure.message, /needs 1 proxy CPUs on host gateway, none reserved/);
  assert.match(failure.hint ?? "", /correct cpus in the testbed document/);
});

test("a plan without a minimum is never refused", () => {
  assert.deepEqual(requireFeasible(examplePlan(["baseline"]), testbedWith({ service: "" })), []);
});

test("pods on a testbed without a cluster are refused before anything is deployed", () => {
  const plan = examplePlan(["baseline", "jwt"]);
  const treatments = plan.treatments.map((treatment) =>
    treatment.label === "jwt" ? { ...treatment, runtime: "k3s" as const } : treatment,
  );
  assert.throws(
    () => requireFeasible({ ...plan, treatments }, exampleTestbed()),
    /plan example on example: runtime k3s of jwt needs a cluster, clusterKind none/,
  );
  const cluster: Testbed = { ...exampleTestbed(), clusterKind: "kubernetes" };
  assert.deepEqual(requireFeasible({ ...plan, treatments }, cluster), []);
});
