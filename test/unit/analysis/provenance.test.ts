import assert from "node:assert/strict";
import { test } from "node:test";
import { from, type From, ratioOf } from "../../../analysis/provenance.ts";

const ours = from("measured", 3);
const theirs = from("published", 2);
const inLab = from("lab", 4);

/** Each line below must not compile; `tsc` complains of a line that does. */
function mixes(): void {
  // @ts-expect-error a measured figure over a published one
  ratioOf(ours, theirs);
  // @ts-expect-error a figure from a lab over a measured one
  ratioOf(inLab, ours);
  // @ts-expect-error a figure from nowhere
  ratioOf(3, 2);
  // @ts-expect-error a published figure where a measured one is wanted
  const wrong: From<"measured", number> = theirs;
  assert.ok(wrong);
}

test("figures of one provenance have a ratio, and mixing them does not compile", () => {
  assert.equal(ratioOf(ours, from("measured", 2)), 1.5);
  assert.equal(typeof mixes, "function");
});
