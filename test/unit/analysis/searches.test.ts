/** Searches in a bundle: read, decided again from their rows, and shown. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { numberOf } from "../../../analysis/cell.ts";
import { analyse, report } from "../../../analysis/report.ts";
import type { CapacitySearch } from "../../../contracts/capacity-search.ts";
import { capacitySchema } from "../../../contracts/capacity.ts";
import type { Plan } from "../../../contracts/plan.ts";
import { Failure } from "../../../contracts/failure.ts";
import {
  makeBundle,
  planOf,
  recordOf,
  removeBundle,
  renderRows,
  sealBundle,
  startNs,
  steadyRows,
} from "../../support/bundle.ts";

const capacity = capacitySchema.parse({
  blocks: 1,
  sloMilliseconds: 10,
  startQps: 500,
  maxQps: 2000,
  confirmations: 1,
  ceiling: false,
});
const withCapacity = (plan: Plan): Plan => ({ ...plan, capacity });

let bundle: string;

/** Requests of the rate: all in time up to the capacity, every tenth late above it. */
async function addSearch(label: string, capacityQps: number, lie = false): Promise<void> {
  const plan = planOf({ editPlan: withCapacity, labels: ["baseline", "jwt"] });
  const record = recordOf(plan, { block: 1, label, arm: "a" }, 1, 1);
  const home = path.join(bundle, "capacity", `b1-${label}`);
  const rates = [
    { purpose: "search", rateQps: capacityQps },
    { purpose: "search", rateQps: 2 * capacityQps },
    { purpose: "confirm", rateQps: capacityQps },
  ] as const;
  const probes: CapacitySearch["probes"] = [];
  for (const [index, { purpose, rateQps }] of rates.entries()) {
    const directory = `00${index + 1}-${purpose}-${rateQps}`;
    const load = { ...record.load, rateQps, durationSeconds: 4 };
    const isOver = rateQps > capacityQps;
    const late = (seq: number) => (isOver && seq % 10 === 0 ? 20_000_000 : 1_000_000);
    const rows = steadyRows({ ...plan, load }, late);
    await mkdir(path.join(home, directory), { recursive: true });
    await writeFile(path.join(home, directory, "requests.csv.gz"), renderRows(rows));
    const { generator, probes: asked } = record;
    const measured = {
      generator,
      probes: asked,
      loadPlan: {
        ...record.loadPlan,
        rateQps,
        intervalNs: Math.floor(1e9 / rateQps),
        planned: rows.length,
      },
      measuredFromNs: String(startNs),
      measuredToNs: String(startNs + 4_000_000_000n),
    };
    const passed = lie ? true : !isOver;
    probes.push({ directory, purpose, rateQps, load, measured, passed, reasons: [] });
  }
  const { block, position, treatment, deployment, startedAt, finishedAt } = record;
  const search = { block, position, label, treatment, deployment, startedAt, finishedAt };
  const document: CapacitySearch = {
    schema: "ztbench/capacity-search/1",
    ...search,
    ended: "confirmed",
    probes,
    files: {},
  };
  await writeFile(path.join(home, "search.json"), JSON.stringify(document));
}

before(async () => {
  bundle = await makeBundle({
    blocks: 1,
    labels: ["baseline", "jwt"],
    editPlan: withCapacity,
    content: (_, plan) => ({ rows: steadyRows(plan, () => 200_000), cpuPerRequestUs: 100 }),
  });
  await addSearch("baseline", 1000);
  await addSearch("jwt", 600);
  await sealBundle(bundle);
});
after(() => removeBundle(bundle));

test("capacities and their loss are computed from the rows of the probes", async () => {
  const { capacities, comparison } = await analyse(bundle);
  const [baseline, jwt] = capacities?.treatments ?? [];
  assert.equal(numberOf(baseline?.capacityQps ?? { kind: "none", reason: "" }), 1000);
  assert.equal(numberOf(jwt?.blocks[0]?.firstFailQps ?? { kind: "none", reason: "" }), 1200);
  const loss = comparison.losses.find(({ label }) => label === "jwt");
  assert.equal(loss?.throughput.kind, "point");
  assert.ok(Math.abs(loss.throughput.ratio - 0.6) < 1e-12);
});

test("a report shows them in the loss table and in files of their own", async () => {
  await report(bundle);
  const shown = readFileSync(path.join(bundle, "tables/loss.txt"), "utf8");
  assert.match(shown, /throughput +\+40 %/);
  const table = readFileSync(path.join(bundle, "tables/capacity.txt"), "utf8");
  assert.match(table, /^jwt +1 +600 +1200/m);
  assert.ok(existsSync(path.join(bundle, "tables/capacity.json")));
  assert.match(readFileSync(path.join(bundle, "report.html"), "utf8"), /id="capacity"/);
});

test("a probe that was decided otherwise than its requests say is refused", async () => {
  for (const derived of ["tables", "report.html"]) {
    await rm(path.join(bundle, derived), { recursive: true });
  }
  await addSearch("jwt", 600, true);
  await sealBundle(bundle);
  await assert.rejects(analyse(bundle), (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.equal(error.code, "document");
    const where = "^capacity/b1-jwt/search.json: 002-search-1200: passed is true, ";
    assert.match(
      error.message,
      new RegExp(`${where}its requests say that it does not hold, 480 over`),
    );
    return true;
  });
});
