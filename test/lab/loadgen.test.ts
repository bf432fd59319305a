/** A campaign on real hosts: an echo service started by hand stands for the deployed topology. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { openBundle } from "../../analysis/bundle.ts";
import { analyse } from "../../analysis/report.ts";
import type { Deployment } from "../../contracts/deployment.ts";
import { Failure } from "../../contracts/failure.ts";
import { type Plan, planSchema } from "../../contracts/plan.ts";
import type { RunRecord } from "../../contracts/record.ts";
import type { Testbed } from "../../contracts/testbed.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { runCampaign } from "../../loadgen/campaign.ts";
import type { CampaignOptions, Deployer } from "../../loadgen/options.ts";
import type { CampaignEvent } from "../../loadgen/progress.ts";
import { openTransport, runChecked, type Transport } from "../../loadgen/ssh.ts";
import { binaryDirectory } from "../../loadgen/vegeta.ts";
import { type LabHosts, raiseLab } from "../support/lab-hosts.ts";

const lab = openLab({ name: "labl", network: 4 });
const programs = ["vegeta", "ztecho", "ztload", "ztprobe", "ztsample"];
const unit = "ztbench-service.service";
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

/** What is left of a run on all hosts: units and directories. */
async function traces(): Promise<string[]> {
  const text =
    "systemctl list-units --all --plain --no-legend 'ztbench-*'; ls /run/ztbench/run || :";
  const found = await Promise.all(testbed.hosts.map(({ name }) => on(name, `{ ${text}; } 2>&1`)));
  return found.flatMap((output) =>
    output.split("\n").filter((line) => line !== "" && !line.includes("No such file")),
  );
}

const plan = (changes: object = {}): Plan =>
  planSchema.parse({
    schema: "ztbench/plan/1",
    name: "hand",
    purpose: "test",
    seed: 1,
    blocks: 1,
    baseline: "paced",
    treatments: [{ label: "paced", topology: "echo" }],
    load: { rateQps: 500, warmupSeconds: 1, durationSeconds: 2, connections: 8 },
    equivalenceMargin: 0.05,
    ...changes,
  });

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
    parameters: {},
    entry: { host: "client", url, http: "1.1", headers: { "X-User-Id": "user-1" } },
    legs: [{ from: "load", to: "service", http: "1.1", tls: "none", wire: {} }],
    units: [
      {
        name: unit,
        host: "server",
        kind: "service",
        program: "ztecho",
        cpus: server.cpus.service,
        dataPlane: true,
      },
    ],
    // Not a proxy, but it answers on loopback like one.
    admin: [],
    probes: [
      {
        id: "answers",
        kind: "positive",
        shows: "the path answers",
        host: "client",
        url,
        http: "1.1",
        headers: {},
        timeoutSeconds: 1,
        expect: { outcome: "status", status: 200 },
      },
      {
        id: "closed-port",
        kind: "negative",
        shows: "nothing listens beside the service",
        host: "gateway",
        url: url.replace("8080", "8081"),
        http: "1.1",
        headers: {},
        timeoutSeconds: 1,
        expect: { outcome: "refused" },
      },
    ],
    scheduling: testbed.scheduling,
    configurationDigest: "0".repeat(64),
  };
}

const deployer: Deployer = {
  async deploy(_treatment, _load, signal) {
    const start =
      `systemd-run --quiet --collect --unit=${unit} --service-type=notify ` +
      `${binaryDirectory}/ztecho -listen 0.0.0.0:8080`;
    const script = { title: "start of the echo", text: start, timeoutSeconds: 20 };
    await runChecked(transport, "server", script, signal);
    return describeEcho();
  },
  configuration: () => ({ "server/echo.txt": "started by hand" }),
  async destroy() {
    await on("server", `systemctl stop ${unit} 2>/dev/null || true`);
  },
  async proveAbsent() {
    await on("server", `! systemctl is-active --quiet ${unit}`);
  },
};

function options(given: Partial<CampaignOptions> & { bundleDir: string }): CampaignOptions {
  const used = given.plan ?? plan();
  return {
    plan: used,
    planText: JSON.stringify(used),
    testbed,
    resume: false,
    deployer,
    hooks: {
      readback: () => Promise.resolve({ server: { somaxconn: "applied 4096" } }),
      facts: async () => ({ server: { kernel: await on("server", "uname -r") } }),
      lease: { take: () => Promise.resolve(), release: () => Promise.resolve() },
    },
    programs: [],
    commit: { id: "0".repeat(40), dirty: false },
    versionSet: "lab",
    warnings: [],
    progress: () => undefined,
    signal: never,
    ...given,
  };
}

const sum = (seconds: Record<string, number>, phases: readonly string[]) =>
  phases.reduce((total, phase) => total + (seconds[phase] ?? 0), 0);

test("measures both drivers and leaves a bundle that analysis can open", async (t) => {
  const bundleDir = join(scratch, "both");
  const two = plan({
    treatments: [
      { label: "paced", topology: "echo" },
      { label: "cli", topology: "echo", driver: "vegeta" },
    ],
  });
  const events: CampaignEvent[] = [];
  const done = await runCampaign(
    options({ bundleDir, plan: two, progress: (event) => events.push(event) }),
  );
  assert.deepEqual(done, { bundleDir, runs: 3, failed: 0 });
  const bundle = await openBundle(bundleDir);
  for (const { name, record } of bundle.runs) {
    assert.equal(record.schema, "ztbench/record/1");
    const directory = join(bundleDir, "runs", name);
    const rows = gunzipSync(await readFile(join(directory, "requests.csv.gz"))).toString();
    const [header, ...lines] = rows.trimEnd().split("\n");
    assert.equal(header, "seq,timestampNs,latencyNs,code,error");
    assert.equal(record.loadPlan.planned, 1000);
    // The command line stops by the clock and may leave a last request out.
    assert.ok(lines.length >= 990 && lines.length <= 1000, `${lines.length} rows of ${name}`);
    const codes = new Set(lines.map((line) => line.split(",")[3]));
    assert.deepEqual([...codes], ["200"]);
    assert.equal(record.loadPlan.driver, record.treatment.driver);
    assert.equal(
      record.loadPlan.startNs,
      record.treatment.driver === "vegeta" ? undefined : record.measuredFromNs,
    );
    checkBounds(record, lines);
    const samples = await readFile(join(directory, "samples/client.txt"), "utf8");
    assert.ok(samples.includes(` unit ${record.generator.unit} cpu.stat`));
    const server = await readFile(join(directory, "samples/server.txt"), "utf8");
    assert.ok(server.includes(` unit ${unit} cpu.stat`));
    const passed = [...record.probes.before.results, ...record.probes.after.results];
    assert.deepEqual(
      passed.map((probe) => probe.passed),
      [true, true, true, true],
    );
    const overhead = sum(record.phaseSeconds, [
      "probe before",
      "start",
      "collect",
      "probe after",
      "clear",
    ]);
    const load = sum(record.phaseSeconds, ["warm-up", "load"]);
    t.diagnostic(
      `${name}: overhead ${overhead.toFixed(2)} s, load phases ${load.toFixed(2)} of 3 s`,
    );
  }
  const { runs } = await analyse(bundleDir);
  assert.deepEqual(
    runs.map(({ resources }) => [
      resources?.cpuPerRequest.kind,
      resources?.generatorCpuPerRequest.kind,
    ]),
    runs.map(() => ["value", "value"]),
  );
  assert.deepEqual(await traces(), []);
  assert.equal(events.filter(({ kind }) => kind === "finished").length, 3);
});

/** Rows lie within what the record says was measured, and all of it after the warm-up. */
function checkBounds(record: RunRecord, lines: readonly string[]): void {
  const sent = lines.map((line) => BigInt(line.split(",")[1] ?? ""));
  const first = sent.reduce((a, b) => (a < b ? a : b));
  const last = sent.reduce((a, b) => (a > b ? a : b));
  const [from, to] = [BigInt(record.measuredFromNs), BigInt(record.measuredToNs)];
  assert.ok(first >= from && last <= to, `rows ${first} to ${last} within ${from} to ${to}`);
  const seconds = Number(last - first) / 1e9;
  assert.ok(seconds > 1.9 && seconds < 2.5, `rows span ${seconds} s`);
}

test("keeps what was measured when interrupted, and goes on from there", async () => {
  const bundleDir = join(scratch, "interrupted");
  const stop = new AbortController();
  const progress = (event: CampaignEvent) => {
    if (event.kind === "phase" && event.run.run === 2 && event.phase === "load") stop.abort();
  };
  await assert.rejects(
    runCampaign(options({ bundleDir, progress, signal: stop.signal })),
    (error: unknown) =>
      error instanceof Failure &&
      error.code === "interrupted" &&
      error.message.includes("1 runs are kept"),
  );
  assert.deepEqual(await traces(), []);
  const kept = await readdir(join(bundleDir, "runs"));
  assert.equal(kept.length, 1);
  const first = await readFile(join(bundleDir, "runs", kept[0] ?? "", "record.json"), "utf8");

  const done = await runCampaign(options({ bundleDir, resume: true }));
  assert.deepEqual(done, { bundleDir, runs: 2, failed: 0 });
  const bundle = await openBundle(bundleDir);
  assert.deepEqual(
    bundle.runs.map(({ record }) => record.run),
    [1, 2],
  );
  assert.equal(
    await readFile(join(bundleDir, "runs", kept[0] ?? "", "record.json"), "utf8"),
    first,
  );
});

test("clears what a killed campaign left on a host, and says so", async () => {
  const left = "ztbench-load-00000000-1.service";
  await on("client", `systemd-run --quiet --collect --unit=${left} sleep 600`);
  const notices: string[] = [];
  await runCampaign(
    options({
      bundleDir: join(scratch, "swept"),
      progress: (event) => {
        if (event.kind === "notice") notices.push(event.text);
      },
    }),
  );
  assert.deepEqual(notices, [`host client: cleared what an earlier campaign left, ${left}`]);
  assert.deepEqual(await traces(), []);
});

test("keeps a run whose service died with its reason, and tries it once more", async () => {
  const bundleDir = join(scratch, "died");
  const progress = (event: CampaignEvent) => {
    if (event.kind === "phase" && event.run.run === 1 && event.phase === "load") {
      void on("server", `systemctl kill -s KILL ${unit}`);
    }
  };
  const done = await runCampaign(options({ bundleDir, progress }));
  assert.deepEqual(done, { bundleDir, runs: 3, failed: 1 });
  const { runs } = await openBundle(bundleDir);
  assert.match(
    runs[0]?.record.failure ?? "",
    /units that did not live through the run: ztbench-service\.service on host server/,
  );
  assert.deepEqual(
    runs.map(({ record }) => record.failure === undefined),
    [false, true, true],
  );
});

test("names within seconds a host that does not answer, or has another key", async () => {
  const [client] = testbed.hosts;
  assert.ok(client);
  const script = { title: "test", text: "true", timeoutSeconds: 10 };
  const attempts = [
    { host: { ...client, managementPort: 2 }, says: /host client: no answer from/ },
    {
      host: { ...client, hostKey: testbed.hosts[1]?.hostKey ?? "" },
      says: /host client: its key is not the pinned one/,
    },
    {
      host: { ...client, user: "nobody" },
      says: /host client: user nobody was refused with identityFile/,
    },
  ];
  for (const { host, says } of attempts) {
    const other = await openTransport({ ...testbed, hosts: [host] });
    const begin = Date.now();
    await assert.rejects(
      other.run("client", script, never),
      (error: unknown) =>
        error instanceof Failure && error.code === "testbed" && says.test(error.message),
    );
    assert.ok(Date.now() - begin < 8000);
    await other.close();
  }
});

test("ends a script that takes too long, and says which", async () => {
  const script = { title: "long sleep", text: "sleep 30", timeoutSeconds: 1 };
  await assert.rejects(transport.run("client", script, never), /long sleep was not done in 1 s/);
});
