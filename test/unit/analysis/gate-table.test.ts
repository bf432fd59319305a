import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { format } from "prettier";
import { renderGateTable } from "../../../analysis/gates/describe.ts";

const file = path.resolve(import.meta.dirname, "../../../docs/explanation/gates.md");
const [begin, end] = ["<!-- gates: begin -->", "<!-- gates: end -->"];

test("the page of gates shows every gate with the limits that are applied", async () => {
  const page = readFileSync(file, "utf8");
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  const made = `${page.slice(0, from)}\n\n${renderGateTable()}\n\n${page.slice(to)}`;
  const wanted = await format(made, { parser: "markdown", printWidth: 100, proseWrap: "preserve" });
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, wanted);
  assert.equal(readFileSync(file, "utf8"), wanted);
});
