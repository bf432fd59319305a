import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { campaignToken } from "../../../cli/release.ts";

test("a bundle names its campaign however its path is written", () => {
  const token = campaignToken(path.resolve("results/tonight"));
  for (const spelt of ["results/tonight", "results/tonight/", "results/tonight/runs/.."]) {
    assert.equal(campaignToken(spelt), token);
  }
  assert.equal(campaignToken("."), campaignToken(process.cwd()));
  assert.notEqual(campaignToken("results/other"), token);
});
