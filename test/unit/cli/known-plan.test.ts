import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { knownPlanSchema } from "../../../cli/known-plan.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { baselineOf, planSchema } from "../../../contracts/plan.ts";

const plans = path.resolve(import.meta.dirname, "../../../plans");
const smoke = readFileSync(path.join(plans, "smoke.yaml"), "utf8");

test("every plan that comes with ztbench can be deployed", () => {
  const files = readdirSync(plans);
  assert.ok(files.includes("smoke.yaml"));
  for (const file of files) {
    parseDocument(knownPlanSchema, readFileSync(path.join(plans, file), "utf8"), file);
  }
});

test("plans of rotations renew within each run, twenty times an arm where it is published", () => {
  for (const [file, eventsLeast] of [
    ["rotation.yaml", 20],
    ["rotation-lab.yaml", 6],
  ] as const) {
    const text = readFileSync(path.join(plans, file), "utf8");
    const plan = parseDocument(knownPlanSchema, text, file);
    const { durationSeconds } = plan.load;
    for (const treatment of plan.treatments.filter(({ label }) => label.startsWith("leaf"))) {
      const { certificateSeconds, ...others } = treatment.parameters;
      // A renewal falls due after half of the life time, and takes up to a second.
      const events =
        plan.blocks * Math.floor(durationSeconds / (Number(certificateSeconds) / 2 + 1));
      assert.ok(events >= eventsLeast, `${file}: ${treatment.label} has ${events} events`);
      const placebo = plan.treatments.find(({ label }) => label === baselineOf(plan, treatment));
      assert.deepEqual(placebo?.parameters, others, `${file}: ${treatment.label} has its placebo`);
      assert.equal(placebo.topology, treatment.topology);
    }
  }
});

test("every plan says what may be published of it, and how a smaller testbed does it", () => {
  for (const file of readdirSync(plans)) {
    const plan = parseDocument(planSchema, readFileSync(path.join(plans, file), "utf8"), file);
    assert.notEqual(plan.publishes, undefined, file);
    const { otherwise } = plan.minimum ?? {};
    if (otherwise !== undefined) assert.ok(existsSync(path.join(plans, "..", otherwise)), file);
    // What may be published needs a testbed that is fit for it.
    if (plan.publishes === "results") assert.ok((plan.minimum?.serviceCpus ?? 0) >= 8, file);
  }
});

test("too few blocks to publish are refused", () => {
  const text = smoke.replace("publishes: nothing", "publishes: results");
  assert.throws(
    () => parseDocument(knownPlanSchema, text, "smoke.yaml"),
    /blocks: must be at least 10 to publish results, found 6/,
  );
});

const cases: [name: string, treatment: string, expected: RegExp][] = [
  ["an unknown topology", "topology: jwtt", /:13:29: treatments\.1\.topology: must be one of base/],
  [
    "a name of all objects",
    "topology: __proto__",
    /treatments\.1\.topology: must be one of baseli/,
  ],
  [
    "a parameter that only another runtime reads",
    "topology: baseline, parameters: { hostNetwork: 1 }",
    /treatments\.1\.parameters: parameter hostNetwork: not known .* in runtime native/,
  ],
  [
    "a parameter that nothing reads",
    "topology: jwt, parameters: { nope: 1 }",
    /^smoke\.yaml:13:46: treatments\.1\.parameters: parameter nope: not known to topology jwt\b.*, known/,
  ],
  [
    "a parameter out of range",
    "topology: jwt, parameters: { tokens: -5 }",
    /parameters: parameter tokens: not usable, -5, allowed are whole numbers 1 to 10000/,
  ],
];
for (const [name, treatment, expected] of cases) {
  test(`a plan with ${name} is refused before anything is deployed`, () => {
    const text = smoke.replace("topology: jwt ", `${treatment} `);
    assert.throws(
      () => parseDocument(knownPlanSchema, text, "smoke.yaml"),
      (error: Error) => expected.test(error.message) || assert.fail(error.message),
    );
  });
}
