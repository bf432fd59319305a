import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { knownPlanSchema } from "../../../cli/known-plan.ts";
import { parseDocument } from "../../../contracts/document.ts";

const plans = path.resolve(import.meta.dirname, "../../../plans");
const smoke = readFileSync(path.join(plans, "smoke.yaml"), "utf8");

test("every plan that comes with ztbench can be deployed", () => {
  const files = readdirSync(plans);
  assert.ok(files.includes("smoke.yaml"));
  for (const file of files) {
    parseDocument(knownPlanSchema, readFileSync(path.join(plans, file), "utf8"), file);
  }
});

const cases: [name: string, treatment: string, expected: RegExp][] = [
  ["an unknown topology", "topology: jwtt", /:11:29: treatments\.1\.topology: must be one of base/],
  [
    "a name of all objects",
    "topology: __proto__",
    /treatments\.1\.topology: must be one of baseli/,
  ],
  [
    "another runtime",
    "topology: jwt, runtime: k3s",
    /treatments\.1\.runtime: must be native, there/,
  ],
  [
    "a parameter that nothing reads",
    "topology: jwt, parameters: { nope: 1 }",
    /^smoke\.yaml:11:46: treatments\.1\.parameters: parameter nope: not known to topology jwt, known/,
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
