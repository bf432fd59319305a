/** Real faults on real hosts: each gate must see the fault that was made for it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CampaignWatch } from "../../analysis/live.ts";
import { analyse } from "../../analysis/report.ts";
import type { GateId, GateResult } from "../../analysis/gates/gate.ts";
import type { JudgedRun } from "../../analysis/judged-run.ts";
import type { Deployment } from "../../contracts/deployment.ts";
import { planSchema } from "../../contracts/plan.ts";
import type { Testbed } from "../../contracts/testbed.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { runCampaign } from "../../loadgen/campaign.ts";
import type { CampaignHooks, Deployer } from "../../loadgen/options.ts";
import { runChecked, type Transport } from "../../loadgen/ssh.ts";
import { binaryDirectory } from "../../loadgen/vegeta.ts";
import { type LabHosts, raiseLab } from "../support/lab-hosts.ts";

const lab = openLab({ name: "labg", network: 11 });
const programs = ["vegeta", "ztecho", "ztload", "ztprobe", "ztsample"];
const unit = "ztbench-service.service";
const hog = "gate-hog.service";
const never = new AbortController().signal;

let testbed: Testbed;
let transport: Transport;
let scratch: string;

let hosts: LabHosts | undefined;
before(async () => {
  hosts = await raiseLab(lab, programs);
  ({ testbed, transport, scratch } = hosts);
});
after(() => hosts?.lower());

const on = (host: string, text: string) =>
  runChecked(transport, host, { title: "test", text, timeoutSeconds: 20 }, never);

const plan = planSchema.parse({
  schema: "ztbench/plan/1",
  name: "gates",
  purpose: "test",
  seed: 1,
  blocks: 1,
  baseline: "echo",
  treatments: [{ label: "echo", topology: "echo" }],
  load: { rateQps: 500, warmupSeconds: 1, durationSeconds: 2.5, connections: 8, timeoutSeconds: 1 },
  equivalenceMargin: 0.05,
});

const cpusOf = (role: "client" | "server", set: "load" | "service") =>
  testbed.hosts.find((host) => host.role === role)?.cpus[set] ?? "";

function describeEcho(): Deployment {
  const server = testbed.hosts.find(({ role }) => role === "server");
  assert.ok(server);
  const url = `http://${server.dataAddress}:8080/`;
  return {
    schema: "ztbench/deployment/1",
    topology: "echo",
    runtime: "native",
    testbed: testbed.name,
    testbedClass: testbed.class,
    parameters: { bodyBytes: 256 },
    entry: { host: "client", url, http: "1.1", headers: { "X-User-Id": "user-1" } },
    legs: [{ from: "load", to: "service", http: "1.1", tls: "none", wire: {} }],
    units: [
      {
        ...{ name: unit, host: "server", kind: "service", program: "ztecho", dataPlane: true },
        cpus: server.cpus.service,
      },
    ],
    admin: [],
    probes: [
      {
        ...{ id: "answers", kind: "positive", shows: "the path answers", host: "client" },
        ...{ url, http: "1.1", headers: {}, timeoutSeconds: 1 },
        expect: { outcome: "status", status: 200 },
      },
    ],
    scheduling: testbed.scheduling,
    configurationDigest: "0".repeat(64),
  };
}

const deployer: Deployer = {
  async deploy(_treatment, _load, signal) {
    const cpus = cpusOf("server", "service");
    const start =
      `systemd-run --quiet --collect --unit=${unit} --service-type=notify ` +
      `-p CPUAffinity=${cpus} ${binaryDirectory}/ztecho -listen 0.0.0.0:8080 -body-bytes 256`;
    const script = { title: "start of the echo", text: start, timeoutSeconds: 20 };
    await runChecked(transport, "server", script, signal);
    return describeEcho();
  },
  configuration: () => ({}),
  async destroy() {
    await on("server", `systemctl stop ${unit} 2>/dev/null || true`);
  },
  async proveAbsent() {
    await on("server", `! systemctl is-active --quiet ${unit}`);
  },
};

const hooks: CampaignHooks = {
  async readback() {
    const value = await on("server", "cat /proc/sys/net/core/somaxconn");
    return { server: { somaxconn: `applied ${value.trim()}` } };
  },
  facts: () => Promise.resolve({ server: { kernel: "6" } }),
  lease: { take: () => Promise.resolve(), release: () => Promise.resolve() },
};

/** The first run of a campaign in which something is done once its measured load goes on. */
async function faulty(name: string, fault: () => Promise<unknown>): Promise<JudgedRun> {
  const bundleDir = join(scratch, name);
  let done: Promise<unknown> | undefined;
  await runCampaign({
    ...{ plan, planText: JSON.stringify(plan), testbed, bundleDir, resume: false },
    ...{ deployer, hooks, programs: [], versionSet: "lab", warnings: [], signal: never },
    watch: new CampaignWatch(),
    commit: { id: "0".repeat(40), dirty: false },
    progress: (event) => {
      if (event.kind === "phase" && event.run.run === 1 && event.phase === "load") done ??= fault();
    },
  });
  await done;
  const [first] = (await analyse(bundleDir)).runs;
  assert.ok(first);
  return first;
}

function gateOf({ gates }: JudgedRun, id: GateId): GateResult {
  const found = gates.find((gate) => gate.id === id);
  assert.ok(found, id);
  return found;
}

test("a run without fault fails no gate, and reads what hosts have", async (t) => {
  const run = await faulty("calm", () => Promise.resolve());
  for (const gate of run.gates) {
    t.diagnostic(`${gate.number} ${gate.id}: ${gate.outcome}, ${gate.measured}`);
  }
  assert.deepEqual(
    run.gates.filter(({ outcome }) => outcome === "invalid").map(({ id }) => id),
    [],
  );
  for (const id of ["machine", "placement", "bodies", "profilers", "observer", "tuning-after"]) {
    assert.equal(gateOf(run, id as GateId).outcome, "pass", id);
  }
  assert.equal(gateOf(run, "kernel-log").outcome, "unavailable");
});

test("a service that stands still for a second is seen in the goodput or in flight", async () => {
  const stop = `systemctl kill -s STOP ${unit}; sleep 1.5; systemctl kill -s CONT ${unit}`;
  const run = await faulty("stalled", () => on("server", stop));
  assert.equal(gateOf(run, "goodput").outcome, "invalid");
  assert.equal(gateOf(run, "tuning-after").outcome, "pass");
});

test("a driver that others starve of its CPU is seen", async () => {
  const cpus = cpusOf("client", "load");
  const start =
    `systemd-run --quiet --collect --unit=${hog} -p CPUAffinity=${cpus} ` +
    `-p CPUSchedulingPolicy=rr -p CPUSchedulingPriority=50 -p RuntimeMaxSec=2 ` +
    `bash -c 'while :; do :; done'`;
  const run = await faulty("starved", () => on("client", start));
  const seen = (["lag", "sent", "generator-wait"] as const).map((id) => gateOf(run, id).outcome);
  assert.ok(
    seen.some((outcome) => outcome !== "pass"),
    seen.join(", "),
  );
});

test("a second tenant on the service's CPU is seen", async () => {
  const cpus = cpusOf("server", "service");
  const start =
    `systemd-run --quiet --collect --unit=${hog} -p CPUAffinity=${cpus} ` +
    `-p RuntimeMaxSec=4 bash -c 'while :; do :; done'`;
  const run = await faulty("tenant", () => on("server", start));
  assert.equal(gateOf(run, "foreign-load").outcome, "warn");
});

test("a sysctl that is edited within the block makes its runs invalid", async () => {
  const edit = "echo 128 >/proc/sys/net/core/somaxconn";
  const run = await faulty("edited", () => on("server", edit));
  await on("server", "echo 4096 >/proc/sys/net/core/somaxconn");
  const gate = gateOf(run, "tuning-after");
  assert.equal(gate.outcome, "invalid");
  assert.match(gate.measured, /server\.somaxconn was applied \d+, is applied 128/);
});

test("connections that nobody planned are seen", async () => {
  const server = testbed.hosts.find(({ role }) => role === "server");
  const open = `for i in {1..80}; do exec 3<>/dev/tcp/${server?.dataAddress}/8080; exec 3>&-; sleep 0.01; done`;
  const run = await faulty("connections", () => on("client", open));
  assert.equal(gateOf(run, "new-connections").outcome, "warn");
});

test("a service that is killed makes its run invalid, and the run is made once more", async () => {
  const bundle = "killed";
  const run = await faulty(bundle, () => on("server", `systemctl kill -s KILL ${unit}`));
  assert.equal(run.verdict, "INVALID");
  assert.equal(gateOf(run, "completed").outcome, "invalid");
  const { runs } = await analyse(join(scratch, bundle));
  assert.deepEqual(runs.map(({ arm, verdict }) => [arm, verdict === "INVALID"]).slice(0, 3), [
    [runs[0]?.arm, true],
    [runs[1]?.arm, false],
    [runs[0]?.arm, false],
  ]);
});
