/** The mesh on lab hosts: what a good run shows, and what each fault ends in. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import type { Analysis } from "../../analysis/analysis.ts";
import type { JudgedRun } from "../../analysis/judged-run.ts";
import { analyse } from "../../analysis/report.ts";
import { type Plan, planSchema } from "../../contracts/plan.ts";
import type { Testbed } from "../../contracts/testbed.ts";
import { renderAbsence } from "../../hosts/absence.ts";
import { openLab } from "../../hosts/lab/options.ts";
import type { HostPayload } from "../../hosts/payload.ts";
import { programDirectory } from "../../hosts/programs.ts";
import { runCampaign } from "../../loadgen/campaign.ts";
import type { Deployer } from "../../loadgen/options.ts";
import { runChecked, type Transport } from "../../loadgen/ssh.ts";
import { topologyNamed } from "../../topologies/catalogue.ts";
import { type Rendering, renderNative } from "../../topologies/native.ts";
import { readParameters } from "../../topologies/parameters.ts";
import { type Direct, openDirect } from "../support/direct.ts";
import { type LabHosts, raiseLab } from "../support/lab-hosts.ts";

const lab = openLab({ name: "labm", network: 3 });
const never = new AbortController().signal;

let testbed: Testbed;
let transport: Transport;
let direct: Direct;
let scratch: string;

let hosts: LabHosts | undefined;
before(async () => {
  hosts = await raiseLab(lab);
  ({ testbed, transport, scratch } = hosts);
  direct = openDirect(transport, never);
});
after(() => hosts?.lower());

const on = (host: string, text: string) =>
  runChecked(transport, host, { title: "test", text, timeoutSeconds: 20 }, never);

/** All that a mesh may leave on a host. */
const traces = () =>
  Promise.all(
    testbed.hosts.map(async (host) => [
      await on(host.name, renderAbsence(host)),
      await on(host.name, "nft list ruleset; ip route; getent passwd; ss -Hltn | sort"),
    ]),
  );

type Spoil = (payload: HostPayload) => HostPayload;

function rendering(
  name: string,
  spoil: Spoil = (payload) => payload,
  parameters: Record<string, unknown> = {},
): Rendering {
  const topology = topologyNamed(name);
  const { hosts, deployment } = renderNative(topology, readParameters(topology, parameters), {
    testbed,
    scheduling: testbed.scheduling,
    programs: programDirectory,
  });
  return { hosts: hosts.map(spoil), deployment };
}

/** Replaces text in files and steps; that it is there is made sure of. */
function replacing(host: string, from: string | RegExp, to: string): Spoil {
  return (payload) => {
    if (payload.host !== host || payload.name === "identity") return payload;
    const edit = (text: string) => text.replace(from, to);
    const files = payload.files.map((file) => ({ ...file, content: edit(file.content) }));
    const steps = (payload.steps ?? []).map((step) => ({ ...step, make: edit(step.make) }));
    const spoilt = { ...payload, files, steps };
    assert.notDeepEqual(spoilt, payload, `something was to be replaced on ${host}`);
    return spoilt;
  };
}

/** What keeps a spoilt mesh from coming up; all of it is taken off again. */
async function refusal(spoil: Spoil): Promise<string> {
  const failure: unknown = await direct.put(rendering("mtls-h2", spoil)).then(
    () => undefined,
    (error: unknown) => error,
  );
  await direct.remove();
  assert.ok(failure instanceof Error, "it does not come up");
  return failure.message;
}

/** Declared as HTTP/2 towards the client, but the port is told to speak HTTP/1.1. */
const mismatch = replacing(
  "gateway",
  /"name": "http2",\s+"protocol": "HTTP2"/,
  '"name": "http", "protocol": "HTTP"',
);

const plan: Plan = planSchema.parse({
  schema: "ztbench/plan/1",
  name: "mesh",
  purpose: "test",
  seed: 1,
  blocks: 1,
  baseline: "h2",
  treatments: [
    { label: "h2", topology: "mtls-h2" },
    { label: "h1", topology: "mtls-h1" },
    { label: "mismatch", topology: "mtls-h2" },
    { label: "killed", topology: "mtls-h2" },
    { label: "bytes", topology: "sidecar-tcp" },
    { label: "plain", topology: "sidecar-http" },
    { label: "closing", topology: "mtls-only", parameters: { requestsPerConnection: 50 } },
    {
      label: "full",
      topology: "mtls-only",
      parameters: { requestsPerConnection: 50, sessionResumption: 0 },
    },
  ],
  load: {
    rateQps: 1000,
    prewarm: { rateQps: 50, seconds: 1 },
    warmupSeconds: 1,
    durationSeconds: 2,
    connections: 32,
  },
  equivalenceMargin: 0.05,
});

const deployer: Deployer = {
  deploy: ({ topology, label, parameters }) =>
    direct.put(rendering(topology, label === "mismatch" ? mismatch : undefined, parameters)),
  configuration: () => ({}),
  destroy: () => direct.remove(),
  proveAbsent: () => Promise.resolve(),
};

/** Certificates of 10 s, renewed every 5 s, beside such that outlast their run. */
const rotation: Plan = planSchema.parse({
  ...plan,
  name: "rotation",
  baseline: "lasting",
  treatments: [
    { label: "lasting", topology: "mtls-h2" },
    { label: "renewed", topology: "mtls-h2", parameters: { certificateSeconds: 10 } },
  ],
  load: { ...plan.load, rateQps: 200, durationSeconds: 8 },
});

/** Kills the client's Envoy in the middle of the first run that is to lose it. */
let killed = 0;
async function campaign(measured: Plan): Promise<Analysis> {
  const bundleDir = join(scratch, measured.name);
  await runCampaign({
    plan: measured,
    planText: JSON.stringify(measured),
    testbed,
    bundleDir,
    resume: false,
    deployer,
    hooks: {
      readback: () => Promise.resolve({ server: { somaxconn: "applied 4096" } }),
      facts: () => Promise.resolve({ server: {} }),
      lease: { take: () => Promise.resolve(), release: () => Promise.resolve() },
    },
    programs: [],
    commit: { id: "0".repeat(40), dirty: false },
    versionSet: "lab",
    warnings: [],
    progress: (event) => {
      if (event.kind !== "phase" || event.phase !== "load") return;
      if (event.run.label !== "killed" || killed > 0) return;
      killed += 1;
      void on("client", "systemctl kill --kill-whom=all -s KILL ztbench-client-sidecar");
    },
    signal: never,
  });
  return analyse(bundleDir);
}

const failedGates = ({ gates }: JudgedRun) =>
  gates
    .filter(({ outcome }) => outcome === "invalid")
    .map(({ id, measured }) => `${id}: ${measured}`);

test("a campaign sees each leg as declared, voids what is not, and keeps what broke", async (t) => {
  const pristine = await traces();
  const { runs } = await campaign(plan);
  assert.deepEqual(await traces(), pristine);
  const all = (label: string) => runs.filter((run) => run.label === label);
  for (const run of runs) {
    const { p50, p99 } = run.latency?.response.quantiles ?? {};
    t.diagnostic(`${run.name} ${run.verdict} ${JSON.stringify([p50, p99])}`);
    for (const { from, counts } of run.wire ?? [])
      t.diagnostic(`${from} ${JSON.stringify(counts)}`);
  }
  for (const run of [...all("h2"), ...all("h1")]) assert.deepEqual(failedGates(run), []);
  const between = all("h2")[0]?.wire?.[1];
  assert.ok(between, "the mesh's leg was seen");
  assert.deepEqual(between.observed, {
    ...between.expected,
    http: "2",
    alpn: "h2",
    keyType: "rsa-2048",
    caller: "spiffe://cluster.local/ns/ztbench/sa/client",
  });
  assert.equal(between.counts.open, 1);
  assertRungs(all);
  for (const run of all("mismatch")) {
    assert.equal(run.verdict, "INVALID");
    assert.match(
      failedGates(run).join("\n"),
      /^wire: .*client-sidecar to server-sidecar: http 1\.1 instead of 2/m,
    );
  }
  const [first, second] = all("killed");
  assert.ok(first !== undefined && second !== undefined, "what broke is tried once more");
  assert.equal(first.verdict, "INVALID");
  assert.match(
    failedGates(first).join("\n"),
    /did not live through the run: ztbench-client-sidecar\.service on host client/,
  );
  assert.deepEqual(failedGates(second), []);
});

/** Sidecars that pass bytes on, that speak HTTP in plaintext, and that close connections. */
function assertRungs(all: (label: string) => readonly JudgedRun[]): void {
  for (const run of ["bytes", "plain", "closing", "full"].flatMap(all)) {
    assert.deepEqual(failedGates(run), []);
  }
  const between = (label: string) =>
    all(label)[0]?.wire?.find(({ from }) => from === "client-sidecar");
  assert.deepEqual(between("bytes")?.observed, { carries: "bytes" });
  // A connection of the driver has one of its own behind it.
  assert.ok((between("bytes")?.counts.open ?? 0) >= 1);
  assert.deepEqual(between("plain")?.observed, { http: "1.1" });
  const counts = between("closing")?.counts ?? {};
  const { opened = 0, requests = 0, fullHandshakes = 0, resumedHandshakes = 0 } = counts;
  // The bound, and what load spikes open besides; those open now have not carried all of theirs.
  assert.ok(requests >= 2000 && opened >= requests / 50 - 32, JSON.stringify(counts));
  assert.ok(Math.abs(fullHandshakes + resumedHandshakes - opened) <= 3, JSON.stringify(counts));
  assert.ok(resumedHandshakes > 0, JSON.stringify(counts));
  const each = between("full")?.counts ?? {};
  assert.equal(each.resumedHandshakes ?? 0, 0, JSON.stringify(each));
  assert.ok((each.fullHandshakes ?? 0) >= 2000 / 50 - 32, JSON.stringify(each));
}

test("certificates are renewed under load by both sidecars, and a placebo's are not", async (t) => {
  const { runs, rotations } = await campaign(rotation);
  for (const { name, rotation: found } of runs) t.diagnostic(`${name} ${JSON.stringify(found)}`);
  for (const run of runs) assert.deepEqual(failedGates(run), []);
  const renewals = (label: string) =>
    runs
      .filter((run) => run.label === label)
      .flatMap((run) => Object.entries(run.rotation?.renewals ?? {}));
  const units = ["ztbench-client-sidecar.service", "ztbench-server-sidecar.service"];
  const placebo = renewals("lasting");
  assert.deepEqual(
    placebo,
    [...units, ...units].map((unit) => [unit, 0]),
  );
  const renewed = renewals("renewed");
  assert.deepEqual(
    renewed.map(([unit]) => unit),
    units,
  );
  // One each at the least, and one every 4.5 s at the most, in little more than the 8 s of load.
  for (const [unit, count] of renewed) assert.ok(count >= 1 && count <= 3, `${unit}: ${count}`);
  const arm = rotations?.arms.find(({ label }) => label === "renewed");
  assert.equal(arm?.placebo, "lasting");
});

test("SSH and all other traffic of the hosts is left alone by the sidecars", async () => {
  await direct.put(rendering("mtls-h2"));
  for (const { name } of testbed.hosts) {
    const fresh = [
      "ssh",
      "-F",
      lab.paths.sshConfig,
      "-o",
      "ControlMaster=no",
      "-o",
      "ControlPath=none",
    ];
    const done = await $({ quiet: true, timeout: "10s" })`${[...fresh, name, "hostname"]}`;
    assert.equal(done.stdout.trim(), name);
  }
  const server = testbed.hosts.find(({ role }) => role === "server");
  const banner = await on(
    "client",
    `exec 3<>/dev/tcp/${server?.dataAddress ?? ""}/22; read -r line <&3; echo "$line"`,
  );
  assert.match(banner, /^SSH-2\.0-/);
  const captured = await on("client", "nft list chain ip nat ISTIO_OUTPUT");
  const redirected = captured.split("\n").filter((line) => line.includes("jump ISTIO_REDIRECT"));
  assert.equal(redirected.length, 1);
  assert.match(redirected[0] ?? "", /ip daddr 198\.18\.64\.1 /);
  await direct.remove();
});

test("a control plane that is down is what the sidecars of each host say", async () => {
  const said = await refusal((payload) => ({
    ...payload,
    units: payload.units.filter(({ name }) => name !== "ztbench-control.service"),
  }));
  assert.match(said, /unit ztbench-(client|server)-sidecar\.service: does not listen on port/);
  assert.match(said, /198\.18\.0\.20:15012: connect: connection refused/);
});

test("a certificate that has expired is refused before anything starts, with its dates", async () => {
  const said = await refusal(replacing("gateway", /-ttl 86400s/g, "-ttl -3600s"));
  assert.match(said, /sidecar (client|server)-sidecar: its certificate cannot be used/);
  assert.match(said, /certificate of spiffe:\/\/cluster\.local\S+: not valid at .*, valid from/);
});

test("a certificate of another trust domain gets no sidecar into the mesh", async () => {
  const elsewhere = "-id spiffe://other.test/ns/ztbench/sa/client -ttl";
  const own = "-id spiffe://cluster.local/ns/ztbench/sa/client -ttl";
  const said = await refusal(replacing("gateway", own, elsewhere));
  assert.match(said, /unit ztbench-client-sidecar\.service: does not listen on port/);
  assert.match(said, /failed to sign: .*tls: bad certificate/);
});

test("a policy that names a wrong principal fails the probe of the path, with its status", async () => {
  const said = await refusal(
    replacing(
      "gateway",
      'cluster.local/ns/ztbench/sa/client"',
      'cluster.local/ns/ztbench/sa/other"',
    ),
  );
  assert.match(said, /not ready after 15 s/);
  assert.match(said, /"status": 403/);
});
