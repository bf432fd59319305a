/** A bundle whose plan has a ladder: what `report` derives from it, and where people see it. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Analysis } from "../../../analysis/analysis.ts";
import { renderMarkdown } from "../../../analysis/markdown.ts";
import { htmlFile, report } from "../../../analysis/report.ts";
import { renderText } from "../../../analysis/text.ts";
import { makeBundle, normal, removeBundle, seeded, steadyRows } from "../../support/bundle.ts";
import { assertGolden } from "../../support/golden.ts";

/** Microseconds of latency and of CPU time of each rung. */
const costs: Readonly<Record<string, readonly [number, number]>> = {
  direct: [200, 100],
  bytes: [380, 150],
  http: [450, 240],
  crypto: [650, 290],
  policy: [950, 310],
  rules: [750, 260],
};
const rungs = { R0: "direct", R2: "bytes", R3: "http", R4: "crypto", R5: "policy" };

let directory: string;
let analysis: Analysis;
const derived = (file: string) => readFile(path.join(directory, file), "utf8");

before(async () => {
  directory = await makeBundle({
    blocks: 4,
    labels: Object.keys(costs),
    rateQps: 200,
    durationSeconds: 10,
    editPlan: (plan) => ({
      ...plan,
      baseline: "direct",
      ladder: { rungs, policyWithoutCrypto: "rules" },
    }),
    content: ({ block, label, arm }, plan) => {
      const [latencyUs = 0, cpuUs = 0] = costs[label] ?? [];
      const order = Object.keys(costs).indexOf(label);
      const random = seeded(block * 100 + order * 10 + (arm === "b" ? 1 : 0));
      const levelUs = 15 * block + 3 * normal(random);
      const rows = steadyRows(plan, () => 1000 * (latencyUs + levelUs + 20 * random()));
      return { rows, cpuPerRequestUs: cpuUs + normal(random) };
    },
  });
  analysis = await report(directory);
});
after(() => removeBundle(directory));

test("layers that were put into a bundle are found in it", () => {
  const found = new Map(analysis.attribution?.layers.map((layer) => [layer.layer, layer.costs]));
  for (const [layer, latencyUs, cpuUs] of [
    ["proxy forwarding", 250, 140],
    ["transport crypto", 200, 50],
    ["local policy", 300, 20],
  ] as const) {
    const { meanNs, cpuUs: cpu } = found.get(layer) ?? {};
    assert.equal(meanNs?.kind, "estimate");
    assert.ok(meanNs.low <= latencyUs * 1000 && latencyUs * 1000 <= meanNs.high, layer);
    assert.equal(cpu?.kind, "estimate");
    assert.ok(cpu.low <= cpuUs && cpuUs <= cpu.high, layer);
  }
  // Policy costs 300 with and without crypto.
  assert.equal(analysis.attribution?.interaction?.verdict, "does not matter");
});

test("the tables of layers are written beside those of losses, and are the reviewed ones", async () => {
  const golden = path.join(import.meta.dirname, "golden", "ladder");
  assertGolden(`${golden}.txt`, await derived("tables/layers.txt"));
  assertGolden(`${golden}.md`, await derived("tables/layers.md"));
  const stored: unknown = JSON.parse(await derived("tables/layers.json"));
  assert.deepEqual(stored, JSON.parse(JSON.stringify(analysis.attribution)));
});

test("terminal text, Markdown and page show what each layer costs", async () => {
  const row = /local policy\W+R4 → R5\W+\+[23]\d\d/;
  assert.match(renderText(analysis), row);
  assert.match(renderMarkdown(analysis), row);
  const page = await derived(htmlFile);
  assert.match(page, /<h2 id="layers">Layers of cost<\/h2>/);
  assert.match(page, /local policy/);
  const long = renderText(analysis)
    .split("\n")
    .filter((line) => line.length > 100);
  assert.deepEqual(long, []);
});
