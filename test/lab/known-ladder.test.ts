/**
 * A ladder whose layers are known: a proxy that holds each request back for 200, 400 and 700 µs.
 * Real requests over loopback, the real load driver, the real analysis: it must find 200 and 300.
 * It stands among the tests of the lab since those run one at a time, so that nothing disturbs it.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { $ } from "zx";
import { attribute } from "../../analysis/attribution.ts";
import type { JudgedRun } from "../../analysis/judged-run.ts";
import { measureLatency } from "../../analysis/latency.ts";
import { tInterval } from "../../analysis/statistics.ts";
import { type Plan, planSchema } from "../../contracts/plan.ts";
import { loadPlanSchema } from "../../contracts/record.ts";
import { orderRuns, type PlannedRun } from "../../loadgen/order.ts";
import { toolPaths } from "../../tools/paths.ts";
import { findGo, goEnvironment } from "../../tools/toolchain.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { hostBin } = toolPaths(root);
/**
 * Not from 0: programs in Go look for work for some tens of µs before they sleep, so a request that
 * takes no longer saves whoever waits for it a wake-up. From 0 to 200 µs it really costs 30 to 60 µs
 * more than the delay.
 */
const delaysUs = { forwarding: 200, crypto: 400, policy: 700 } as const;
type Label = keyof typeof delaysUs;

/** A test that runs always must not fail once in twenty times, as 95 % intervals do. */
const level = 0.999;
/** Wider than this, an interval would also hold what is wrong: 0 for 200, 200 for 300. */
const halfWidthMaxUs = 90;

function planOf(blocks: number): Plan {
  const labels = Object.keys(delaysUs);
  return planSchema.parse({
    schema: "ztbench/plan/1",
    name: "known-ladder",
    purpose: "test",
    seed: 11,
    blocks,
    baseline: "forwarding",
    treatments: labels.map((label) => ({ label, topology: "baseline" })),
    load: {
      rateQps: 200,
      prewarm: { rateQps: 50, seconds: 0 },
      warmupSeconds: 0.2,
      durationSeconds: 1,
      connections: 4,
    },
    ladder: { rungs: { R0: "forwarding", R4: "crypto", R5: "policy" } },
    equivalenceMargin: 0.05,
  });
}

let scratch: string;
const children: ChildProcess[] = [];
const targets = {} as Record<Label, string>;
/** Words before a command: real time, as on hosts, so that whatever else runs here waits instead. */
let ahead: readonly string[] = [];

before(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), "ztbench-ladder-"));
  const realtime = ["chrt", "--rr", "10"];
  const probe = $({ quiet: true, nothrow: true, timeout: "10s" });
  if ((await probe`${realtime} true`).exitCode === 0) ahead = realtime;
  const proxy = path.join(scratch, "ztdelay");
  const go = await findGo();
  const build = $({ quiet: true, cwd: path.join(root, "service"), env: goEnvironment() });
  await build`${go.command} build -o ${proxy} ./testing/ztdelay`.timeout("240s");
  const server = `127.0.0.1:${await freePort()}`;
  start(path.join(hostBin, "ztnull"), [`-listen=${server}`, "-body-bytes=256"]);
  await answering(server);
  for (const [label, delay] of Object.entries(delaysUs) as [Label, number][]) {
    const flags = ["-listen=127.0.0.1:0", `-to=${server}`, `-delay=${delay}us`];
    const address = await firstLine(start(proxy, flags));
    targets[label] = path.join(scratch, `${label}.targets`);
    writeFileSync(targets[label], `GET http://${address}/\n`);
  }
});

after(() => {
  for (const child of children) child.kill("SIGTERM");
  rmSync(scratch, { recursive: true, force: true });
});

function start(program: string, flags: readonly string[]): ChildProcess {
  const [command = program, ...words] = [...ahead, program, ...flags];
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  return child;
}

async function firstLine(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line", { signal: AbortSignal.timeout(10_000) })) as [string];
  return line;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  server.close();
  await once(server, "close");
  return address.port;
}

async function answering(address: string): Promise<void> {
  const [host = "", port = ""] = address.split(":");
  for (const end = Date.now() + 10_000; Date.now() < end;) {
    const socket = connect(Number(port), host);
    const connected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected) return;
  }
  assert.fail(`${address} does not answer within 10 s`);
}

/** One run: load driven, split and measured by what campaigns use. */
async function measure(plan: Plan, planned: PlannedRun): Promise<JudgedRun> {
  const { label } = planned;
  const name = `${planned.run}-${label}-${planned.arm}`;
  const out = path.join(scratch, name);
  mkdirSync(out);
  const { load } = plan;
  const seconds = load.warmupSeconds + load.durationSeconds;
  const shape = [`-rate=${load.rateQps}`, `-duration=${seconds}s`];
  const [records, driven] = [path.join(out, "records"), path.join(out, "plan.json")];
  const ztload = path.join(hostBin, "ztload");
  const shell = $({ quiet: true, timeout: "20s" });
  const target = targets[label as Label];
  const files = [`-targets=${target}`, `-output=${records}`, `-plan=${driven}`];
  await shell`${ahead} ${ztload} attack ${files} ${shape} -connections=${load.connections}`;
  const parts = [`-in=${records}`, `-out=${out}`, `-plan=${driven}`];
  await shell`${ztload} split ${parts} ${shape} -warmup=${load.warmupSeconds}s`;
  const text = readFileSync(path.join(out, "load-plan.json"), "utf8");
  const latency = await measureLatency({
    path: path.join(out, "requests.csv.gz"),
    name,
    loadPlan: loadPlanSchema.parse(JSON.parse(text)),
    measuredFromNs: "0",
  });
  assert.equal(latency.failed, 0, `${name}: no request fails`);
  const nothing = { kind: "none", reason: "not measured here" } as const;
  const resources = { units: [], cpuPerRequest: nothing, cores: nothing };
  const run = { ...planned, name, condition: "steady", verdict: "VALID", gates: [], latency };
  return { ...run, resources } as unknown as JudgedRun;
}

type Layer = {
  readonly meanUs: number;
  readonly lowUs: number;
  readonly highUs: number;
};

/**
 * What the ladder adds at p50. A constant delay moves each quantile by itself, so that of all of
 * them, and of the mean, the median is as right as any, and least moved by what else the machine
 * does: a request that lost the CPU for 10 ms moves the mean of 200 by 50 µs.
 */
function layersOf(plan: Plan, runs: readonly JudgedRun[]): Layer[] {
  const found = attribute(plan, runs);
  assert.equal(found?.blocks.length, plan.blocks);
  return found.steps.map(({ costs: { p50Ns } }) => {
    assert.equal(p50Ns.kind, "estimate");
    const { mean, sd, pairs } = p50Ns;
    const { low, high } = tInterval({ mean, sd, n: pairs }, level);
    return { meanUs: mean / 1000, lowUs: low / 1000, highUs: high / 1000 };
  });
}

test("layers of 200 and 300 µs are found by the load driver and the ladder", async (t) => {
  const [few, many] = [planOf(8), planOf(16)];
  const runs: JudgedRun[] = [];
  const sureOf = async (plan: Plan): Promise<Layer[]> => {
    for (const planned of orderRuns(plan).slice(runs.length)) {
      runs.push(await measure(plan, planned));
    }
    const layers = layersOf(plan, runs);
    for (const { meanUs, lowUs, highUs } of layers) {
      const range = [lowUs, highUs].map((us) => us.toFixed(0)).join(" to ");
      t.diagnostic(`${plan.blocks} blocks: ${meanUs.toFixed(0)} µs, ${range}`);
    }
    return layers;
  };
  const isWide = ({ lowUs, highUs }: Layer) => (highUs - lowUs) / 2 > halfWidthMaxUs;
  let layers = await sureOf(few);
  // A busy machine widens intervals, and more blocks narrow them; what is wrong stays wrong.
  if (layers.some(isWide)) layers = await sureOf(many);
  assert.deepEqual(
    layers.filter(isWide).map(({ lowUs, highUs }) => `${lowUs} to ${highUs}`),
    [],
  );
  assert.equal(layers.length, 2);
  for (const [index, known] of [200, 300].entries()) {
    const { lowUs = Number.NaN, highUs = Number.NaN } = layers[index] ?? {};
    assert.ok(lowUs <= known && known <= highUs, `${known} µs, found ${lowUs} to ${highUs}`);
  }
});
