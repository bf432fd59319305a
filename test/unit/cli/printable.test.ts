import assert from "node:assert/strict";
import { test } from "node:test";
import { printable } from "../../../cli/printable.ts";

test("what a bundle says cannot steer the terminal", () => {
  const text = "run 1 INVALID\u001b[2K\rrun 1 valid\u0007\u009b1A\u007f";
  assert.equal(printable(text), "run 1 INVALID\\x1b[2K\\x0drun 1 valid\\x07\\x9b1A\\x7f");
});

test("line ends, tabs and letters of all languages stay as they are", () => {
  const text = "µs\tp99 ± 3 %\n→ 速い";
  assert.equal(printable(text), text);
});
