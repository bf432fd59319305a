import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { planSchema } from "../../../contracts/plan.ts";
import { orderRuns } from "../../../loadgen/order.ts";

const directory = new URL("../../../plans/", import.meta.url);
const smoke = readFileSync(new URL("smoke.yaml", directory), "utf8");

for (const file of readdirSync(directory)) {
  test(`ships a valid ${file} that is called after its file`, () => {
    const text = readFileSync(new URL(file, directory), "utf8");
    const plan = parseDocument(planSchema, text, file);
    assert.equal(`${plan.name}.yaml`, file);
  });
}

test("measures five topologies in six blocks of six runs with the smoke plan", () => {
  const plan = parseDocument(planSchema, smoke, "smoke.yaml");
  assert.equal(orderRuns(plan).length, 36);
  assert.deepEqual(
    [plan.load.rateQps, plan.load.warmupSeconds, plan.load.durationSeconds, plan.load.connections],
    [1000, 4, 10, 32],
  );
});

/** Position of a text in the smoke plan once it is replaced, as messages give it. */
function positionOf(text: string, found: string): string {
  const before = text.slice(0, text.indexOf(found)).split("\n");
  return `${before.length}:${(before.at(-1) ?? "").length + 1}`;
}

const mistakes: readonly [string, string, string, string, RegExp][] = [
  ["rate 0", "rateQps: 1000", "rateQps: 0", "0", /load\.rateQps: must be greater than 0, found 0/],
  ["a negative rate", "rateQps: 1000", "rateQps: -5", "-5", /must be greater than 0, found -5/],
  [
    "a duration shorter than its warm-up",
    "durationSeconds: 10",
    "durationSeconds: 3",
    "3\n",
    /load\.durationSeconds: must not be shorter than warmupSeconds \(4\), found 3/,
  ],
  [
    "an arrival that its driver does not know",
    "topology: jwt",
    "topology: jwt, driver: vegeta, arrival: poisson",
    "poisson",
    /arrival: must be uniform with driver vegeta, which knows no other, found "poisson"/,
  ],
  ["a misspelt key", "blocks:", "blokcs:", "blokcs", /blokcs: unknown key/],
  ["an unknown baseline", "baseline: baseline", "baseline: none", "none", /must be the label of/],
];

for (const [name, from, to, at, says] of mistakes) {
  test(`refuses a plan with ${name}, at its position`, () => {
    const text = smoke.replace(from, to);
    assert.throws(
      () => parseDocument(planSchema, text, "plan.yaml"),
      (error: unknown) => {
        assert.ok(error instanceof Failure);
        assert.equal(error.code, "document");
        assert.match(error.message, says);
        const line = error.message.split("\n").find((text) => says.test(text)) ?? "";
        const offset = text.indexOf(to);
        const position = positionOf(text.slice(offset), at);
        const [row = 0, column = 0] = position.split(":").map(Number);
        const [base = 0, indent = 0] = positionOf(text, to).split(":").map(Number);
        const wanted = `plan.yaml:${base + row - 1}:${row === 1 ? indent + column - 1 : column}: `;
        assert.ok(line.startsWith(wanted), `${line} at ${wanted}`);
        return true;
      },
    );
  });
}
