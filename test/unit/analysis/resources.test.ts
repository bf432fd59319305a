import assert from "node:assert/strict";
import { test } from "node:test";
import { numberOf } from "../../../analysis/cell.ts";
import { countCpus, describeSoftirq, measureResources } from "../../../analysis/resources.ts";
import { growthWithin, parseSamples } from "../../../analysis/samples.ts";
import { planOf, recordOf, sampleText, startNs } from "../../support/bundle.ts";

const plan = planOf({});
const record = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
const served = [{ unit: "ztbench-echo.service", usPerSecond: 150_000 }];
const sent = [{ unit: record.generator.unit, usPerSecond: 250_000 }];
const parse = (text: string) => parseSamples(text, "server.txt", String(startNs));
const sent10k = { sent: 10_000, planned: 10_000 };

function measure(server: string, client: string) {
  const samples = new Map([
    ["server", parse(server)],
    ["client", parse(client)],
  ]);
  return measureResources(record, sent10k, samples);
}

test("CPU time per request, cores and the generator's share come out as put in", () => {
  const used = measure(sampleText(served, 10), sampleText(sent, 10));
  assert.ok(Math.abs((numberOf(used.cpuPerRequest) ?? 0) - 150) < 0.01);
  assert.ok(Math.abs((numberOf(used.cores) ?? 0) - 0.15) < 1e-5);
  assert.ok(Math.abs((numberOf(used.generatorShare) ?? 0) - 0.25) < 1e-5);
  assert.deepEqual(Object.keys(used.cpuPerRequestByKind), ["service"]);
  const [echo] = used.units;
  assert.equal(numberOf(echo?.memory ?? used.cores), 20_480 * 1024);
  assert.ok(Math.abs((numberOf(echo?.runQueueWait ?? used.cores) ?? 0) - 0.001) < 1e-9);
  assert.equal(numberOf(echo?.restarts ?? used.cores), 0);
});

test("a container in the older hierarchies, which tell nanoseconds, uses just as much", () => {
  const older = sampleText(served, 10).replaceAll(
    /cpu\.stat\nusage_usec (\d+)\nuser_usec \d+/g,
    (_, usage: string) => `cpuacct.usage\n${usage}000`,
  );
  assert.match(older, /cpuacct\.usage/);
  const used = measure(older, "");
  assert.ok(Math.abs((numberOf(used.cpuPerRequest) ?? 0) - 150) < 0.01);
});

test("fewer requests sent means more CPU time for each", () => {
  const samples = new Map([["server", parse(sampleText(served, 10))]]);
  const used = measureResources(record, { sent: 7_500, planned: 10_000 }, samples);
  assert.ok(Math.abs((numberOf(used.cpuPerRequest) ?? 0) - 200) < 0.01);
});

test("a host without samples gives reasons, not zeros", () => {
  const used = measureResources(record, sent10k, new Map());
  for (const cell of [used.cpuPerRequest, used.cores, used.generatorShare]) {
    assert.deepEqual(cell, { kind: "none", reason: "not sampled" });
  }
});

test("a process that is replaced, and a group that is gone, count as restarts", () => {
  const [before, after] = [
    sampleText(served, 4),
    sampleText([{ unit: "ztbench-echo.service", usPerSecond: 150_000, pid: 200 }], 4),
  ];
  const later = after.replaceAll(String(startNs).slice(0, 10), "1790000005");
  const replaced = measure(before + later, "");
  assert.equal(numberOf(replaced.units[0]?.restarts ?? replaced.cores), 1);
  const gone = measure(`${before}### ${startNs + 9n} unit ztbench-echo.service absent\n`, "");
  assert.equal(numberOf(gone.units[0]?.restarts ?? gone.cores), 1);
});

test("a data plane with one unit that was not counted has no total", () => {
  const { deployment } = record;
  const [echo] = deployment.units;
  assert.ok(echo !== undefined);
  const proxied = {
    ...record,
    deployment: {
      ...deployment,
      units: [echo, { ...echo, name: "ztbench-envoy.service", kind: "proxy" as const }],
    },
  };
  const samples = new Map([["server", parse(sampleText(served, 10))]]);
  const used = measureResources(proxied, sent10k, samples);
  assert.equal(used.cpuPerRequest.kind, "none");
  assert.equal(used.cpuPerRequestByKind["service"]?.kind, "value");
  assert.equal(used.cpuPerRequestByKind["proxy"]?.kind, "none");
});

test("growth needs readings over half of the window and a counter that never falls", () => {
  const points = [0, 1, 2, 3, 4].map((at) => ({ atNs: at * 1e9, value: at * 7 }));
  assert.deepEqual(growthWithin(points, 0.5e9, 4e9, 0.5), { fromNs: 1e9, toNs: 4e9, delta: 21 });
  assert.equal(growthWithin(points, 0, 20e9, 0.5), "samples cover too little of the run");
  assert.equal(growthWithin(points, 5e9, 9e9, 0.5), "not sampled");
  const reset = [...points, { atNs: 5e9, value: 0 }];
  assert.equal(growthWithin(reset, 0, 5e9, 0.5), "counter started anew");
});

test("blocks keep their source, time and lines", () => {
  const first = `### ${startNs + 5n} file /proc/stat\ncpu 1 2\n ### no head\n`;
  const text = `${first}### ${startNs} unit a absent\n`;
  assert.deepEqual(parse(text), [
    { atNs: 5, source: "file /proc/stat", content: "cpu 1 2\n ### no head", line: 1 },
    { atNs: 0, source: "unit a absent", content: "", line: 4 },
  ]);
});

test("text that is no sample is refused with its line", () => {
  assert.throws(() => parse("usage_usec 5\n"), /^Failure: server\.txt:1: must be "### <nano/);
  assert.throws(() => parse(`### ${startNs} a\n### soon b\n`), /^Failure: server\.txt:2: /);
});

test("CPU lists are counted, and an empty one is none", () => {
  assert.deepEqual(["0", "0-3", "0-3,8,10-11", ""].map(countCpus), [1, 4, 7, undefined]);
});

test("where interrupt time is charged is what the kernels say", () => {
  const have = "CONFIG_HAVE_IRQ_TIME_ACCOUNTING=y";
  const on = { irq: `${have}\nCONFIG_IRQ_TIME_ACCOUNTING=y` };
  const off = { irq: `# CONFIG_IRQ_TIME_ACCOUNTING is not set\n${have}` };
  assert.match(describeSoftirq({ a: on, b: on }), /counted apart/);
  assert.match(describeSoftirq({ a: off }), /charged to tasks/);
  assert.match(describeSoftirq({ a: on, b: off }), /hosts differ/);
  assert.match(describeSoftirq({ a: { irq: have } }), /does not tell/);
  assert.match(describeSoftirq({}), /does not tell/);
});

test("more blocks than a run can have are refused before they fill the memory", () => {
  const many = `### ${startNs} x\n`.repeat(1_000_001);
  assert.throws(
    () => parse(many),
    /^Failure: server\.txt:1000001: too many blocks, allowed 1000000/,
  );
});
