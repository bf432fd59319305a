/** Every topology on a lab of its own, by the real engine: up, asked, unchanged, down, no trace. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { $ } from "zx";
import {
  type Deployment,
  deploymentSchema,
  type ProbeRequest,
  probeResultsSchema,
} from "../../contracts/deployment.ts";
import { labDown, labUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { programDirectory } from "../../hosts/programs.ts";
import { catalogue } from "../../topologies/catalogue.ts";
import { probingHosts } from "../../topologies/ready.ts";
import { type Done, type Engine, openEngine } from "../support/engine.ts";

const lab = openLab({ name: "labp", network: 5 });
const roles = ["client", "gateway", "server"] as const;
const quickly = ["--yes", "--skip-preview"];
const aToken = /eyJ[\w-]+\.[\w-]+\./;

let engine: Engine;

before(async () => {
  await labDown(lab);
  const { testbed } = await labUp(lab);
  engine = openEngine(testbed);
  for (const stack of ["hosts", ...Object.keys(catalogue), "mtls-h9"]) await engine.init(stack);
  succeeded(await engine.run("up", "hosts", quickly));
});

after(async () => {
  await labDown(lab);
  engine.close();
});

function succeeded(done: Done): Done {
  assert.equal(done.exitCode, 0, done.output);
  return done;
}

async function on(host: string, command: string, input = ""): Promise<string> {
  const argv = ["ssh", "-F", lab.paths.sshConfig, host, command];
  const done = await $({ quiet: true, nothrow: true, timeout: "20s", input })`${argv}`;
  assert.equal(done.exitCode, 0, `${host}: ${command}: ${done.stderr}`);
  return done.stdout;
}

/** All that a topology may leave on a host. */
function traces(host: string): Promise<string> {
  return on(
    host,
    `ls -A /run/systemd/system /run/ztbench 2>&1 || :
     systemctl list-units --all --plain --no-legend 'ztbench-*'
     ss -Hltn | sort
     nft list ruleset
     ip route
     getent passwd
     ls -A /var/lib/ztbench/lease 2>&1 || :`,
  );
}

const allTraces = () => Promise.all(roles.map(traces));

async function askOnce(deployment: Deployment) {
  const prober = `${programDirectory}/ztprobe 2>/dev/null || :`;
  const answers = probingHosts(deployment).map(async (host) => {
    const request: ProbeRequest = {
      schema: "ztbench/probe-request/1",
      deadlineSeconds: 10,
      until: "once",
      probes: deployment.probes.filter((probe) => probe.host === host),
    };
    const answer = await on(host, prober, JSON.stringify(request));
    return probeResultsSchema.parse(JSON.parse(answer)).results;
  });
  return (await Promise.all(answers)).flat();
}

/** One request through the path as a person would send it, from the load host's network. */
async function curlEntry({ entry }: Deployment): Promise<string> {
  const headers = Object.entries(entry.headers).map(([name, value]) => `${name}: ${value}`);
  if (entry.tokensFile !== undefined) {
    const token = await on(entry.host, `head -n 1 ${entry.tokensFile}`);
    headers.push(`authorization: Bearer ${token.trim()}`);
  }
  const version = entry.http === "2" ? ["--http2-prior-knowledge"] : [];
  const curl = ["curl", "--silent", "--fail", "--max-time", "5", ...version, "--header", "@-"];
  const argv = ["ip", "netns", "exec", "ztlab-labp-client", ...curl, entry.url];
  const done = await $({ quiet: true, timeout: "10s", input: headers.join("\n") })`${argv}`;
  return done.stdout;
}

async function up(topology: string): Promise<Deployment> {
  succeeded(await engine.run("up", topology, quickly));
  return deploymentSchema.parse(await engine.output(topology, "deployment"));
}

async function down(topology: string): Promise<Done> {
  return succeeded(await engine.run("destroy", topology, quickly));
}

for (const topology of Object.keys(catalogue)) {
  test(`${topology}: up, every probe holds, nothing to change, and no trace after down`, async (t) => {
    const pristine = await allTraces();
    const raised = succeeded(await engine.run("up", topology, quickly));
    t.diagnostic(`up ${raised.seconds.toFixed(1)} s`);
    const output = await engine.output(topology, "deployment");
    const deployment = deploymentSchema.parse(output);
    assert.notDeepEqual(await allTraces(), pristine);
    const failed = (await askOnce(deployment)).filter(({ passed }) => !passed);
    assert.deepEqual(failed, []);
    const answer = topology === "null" ? /^x+$/ : /"user":"(claimed-user|user-\d{6}|spiffe:\S+)"/;
    assert.match(await curlEntry(deployment), answer);
    await assertPinned(deployment);
    succeeded(await engine.run("preview", topology, ["--expect-no-changes"]));
    assertNoSecret(engine.stateText() + JSON.stringify(output) + raised.output);
    const destroyed = await down(topology);
    t.diagnostic(`destroy ${destroyed.seconds.toFixed(1)} s`);
    assert.deepEqual(await allTraces(), pristine);
  });
}

function assertNoSecret(text: string): void {
  assert.match(text, /ztbench-service\.service/);
  assert.doesNotMatch(text, aToken);
  assert.doesNotMatch(text, /PRIVATE KEY/);
}

/** What the units say of CPUs and scheduling class is what their processes have. */
async function assertPinned({ units, scheduling }: Deployment): Promise<void> {
  for (const { host, name, cpus, dataPlane } of units) {
    const seen = await on(
      host,
      `pid=$(systemctl show -p MainPID --value ${name})
       grep Cpus_allowed_list /proc/$pid/status; chrt -p $pid`,
    );
    if (cpus !== "") assert.match(seen, new RegExp(`Cpus_allowed_list:\\s+${cpus}\\n`));
    const realtime = seen.includes("SCHED_RR");
    assert.equal(realtime, dataPlane && scheduling === "rr", `${name}: ${seen}`);
  }
}

test("a second topology is refused while one is up, and names it", async () => {
  await up("baseline");
  const refused = await engine.run("up", "jwt", quickly);
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.output, /held by stack baseline/);
  assert.match(refused.output, /pulumi destroy -s baseline/);
  await down("jwt");
  await down("baseline");
});

test("down succeeds after a host was rebooted under the topology", async (t) => {
  const pristine = await allTraces();
  await up("gateway");
  await reboot(t, "server");
  await down("gateway");
  assert.deepEqual(await allTraces(), pristine);
});

async function reboot(t: TestContext, host: string): Promise<void> {
  const bootOf = () => on(host, "systemctl show -p UserspaceTimestampMonotonic --value; uptime -s");
  const before = await bootOf();
  await on(host, "systemctl reboot");
  const deadline = Date.now() + 30_000;
  for (;;) {
    const now = await bootOf().catch(() => before);
    if (now !== before) return;
    assert.ok(Date.now() < deadline, `${host} comes back within 30 s`);
    await delay(100, undefined, { signal: t.signal });
  }
}

test("down takes off what an interrupted engine has put on a host and forgotten", async () => {
  const pristine = await allTraces();
  await up("gateway");
  const urn = "urn:pulumi:gateway::ztbench::command:remote:Command::server-payload";
  succeeded(await engine.forget("gateway", urn));
  await down("gateway");
  assert.deepEqual(await allTraces(), pristine);
});

test("a port that is in use is named with its owner, and nothing is changed", async () => {
  const address = lab.layout.hosts.find(({ role }) => role === "server")?.dataAddress ?? "";
  const squatter = `${programDirectory}/ztecho -listen=${address}:8080`;
  const pristine = await allTraces();
  await on(
    "server",
    `systemd-run --quiet --collect --unit=squatter --service-type=notify ${squatter}`,
  );
  const before = await traces("server");
  const refused = await engine.run("up", "baseline", quickly);
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.output, /server: port 8080: already in use by ztecho \(pid \d+\)/);
  assert.match(refused.output, /next: stop it: ss -ltnp 'sport = :8080'/);
  await down("baseline");
  assert.equal(await traces("server"), before);
  await on("server", "systemctl stop squatter");
  assert.deepEqual(await allTraces(), pristine);
});

test("a unit that fails shows its own last lines, and leaves nothing", async () => {
  const pristine = await allTraces();
  engine.setParameters("jwt", { tokenBytes: 100 });
  const refused = await engine.run("up", "jwt", quickly);
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.output, /client: unit ztbench-issuer\.service: failed to start/);
  assert.match(refused.output, /ztissuer: .*\b100\b/);
  await down("jwt");
  assert.deepEqual(await allTraces(), pristine);
  engine.setParameters("jwt", {});
});

test("an unknown parameter and an unknown topology are refused before any host is asked", async () => {
  engine.setParameters("baseline", { tokens: 5 });
  const parameter = await engine.run("up", "baseline", quickly);
  assert.notEqual(parameter.exitCode, 0);
  assert.match(
    parameter.output,
    /parameter tokens: not known to topology baseline in runtime native, known are/,
  );
  engine.setParameters("baseline", {});
  const topology = await engine.run("up", "mtls-h9", quickly);
  assert.notEqual(topology.exitCode, 0);
  assert.match(topology.output, /topology mtls-h9: not known, known are baseline, jwt, gateway/);
  for (const { output } of [parameter, topology]) assert.doesNotMatch(output, /^\s+at /m);
});
