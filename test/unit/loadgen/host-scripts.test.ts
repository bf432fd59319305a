import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { loadSchema, treatmentSchema } from "../../../contracts/plan.ts";
import {
  clearScript,
  collectScript,
  loadFiles,
  loadScript,
  scrapeScript,
  startScript,
  sweepScript,
} from "../../../loadgen/host-scripts.ts";
import { probeScript } from "../../../loadgen/probes.ts";
import type { RemoteScript } from "../../../loadgen/ssh.ts";
import { exampleDeployment, exampleTestbed } from "./example.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-scripts-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

/** As scripts are run on hosts. */
const strict = ["-e", "-u", "-o", "pipefail"];

const key = { token: "00c0ffee", run: 7 };
const [client, gateway, server] = exampleTestbed().hosts;
assert.ok(client && gateway && server);

const example = exampleDeployment();
const deployment = exampleDeployment({
  entry: { ...example.entry, headers: { "X-Note": "it's $HOME `here`" } },
  admin: [{ unit: "ztbench-gateway.service", host: "gateway", url: "http://127.0.0.1:9901/" }],
});
const attack = {
  treatment: treatmentSchema.parse({ label: "a", topology: "a" }),
  load: loadSchema.parse({ rateQps: 10, warmupSeconds: 1, durationSeconds: 2, connections: 1 }),
  entry: deployment.entry,
  files: loadFiles(key),
  cpuCount: 1,
  seed: 1,
};

const sampling = { intervalSeconds: 1, proxies: false };

const scripts: Readonly<Record<string, RemoteScript | undefined>> = {
  start: startScript(key, server, deployment, sampling),
  scrape: scrapeScript(key, gateway, deployment),
  load: loadScript(key, client, attack, true),
  collect: collectScript(key, gateway, deployment),
  clear: clearScript(key),
  sweep: sweepScript(),
  probe: probeScript(deployment.probes, "before"),
};

for (const [name, script] of Object.entries(scripts)) {
  test(`renders a ${name} script that bash can read`, () => {
    assert.ok(script);
    execFileSync("bash", ["-n"], { input: script.text });
  });
}

test("samples the units of a host, and the generator only where it runs", () => {
  const unitsIn = ({ text }: RemoteScript) =>
    [...text.matchAll(/-unit (\S+)/g)].map(([, unit]) => unit);
  assert.deepEqual(unitsIn(startScript(key, server, deployment, sampling)), [
    "ztbench-service.service",
  ]);
  assert.deepEqual(unitsIn(startScript(key, client, deployment, sampling)), [
    "ztbench-load-00c0ffee-7.service",
  ]);
  assert.deepEqual(unitsIn(startScript(key, gateway, deployment, sampling)), []);
});

test("forgets what the kernel learned of peers before it notes its state, and runs without that", () => {
  const lines = (scripts["start"]?.text ?? "").split("\n");
  const flush = lines.findIndex((line) => line.startsWith("ip tcp_metrics flush"));
  const noted = lines.findIndex((line) => line.includes("note tcp-metrics ip tcp_metrics show"));
  assert.ok(flush >= 0 && flush < noted, "the state tells whether it worked");
  const without = `ip() { echo 'Object "tcp_metrics" is unknown' >&2; return 1; }\n`;
  execFileSync("bash", ["-e"], { input: `${without}${lines[flush] ?? ""}` });
});

const container = "ztbench-service.container";
const namespace = "/run/ztbench/baseline.pods/load.net";
const [service] = example.units;
assert.ok(service);
const pods = exampleDeployment({
  runtime: "k3s",
  entry: { ...example.entry, networkNamespace: namespace },
  units: [{ ...service, name: container, cgroup: "/kubepods/pod1/c1" }],
  admin: [
    { unit: "a.container", host: "client", url: "http://127.0.0.1:15000/", networkNamespace: "/n" },
  ],
  cluster: {
    kind: "k3s",
    cgroupRoot: "/groups",
    images: { service: "s", envoy: "e", pause: "p" },
    versions: {},
    pods: [],
  },
});

test("samples containers by their groups, and asks the service manager only for its own", () => {
  const { text } = startScript(key, server, pods, sampling);
  const flags = `-group-root /groups -unit ${container}=/kubepods/pod1/c1`;
  assert.ok(text.includes(flags), text);
  assert.doesNotMatch(text, /systemctl show/);
});

test("notes of a container which process it is, and that it is gone", () => {
  const noteOf = (text: string) => {
    const lines = text.split("\n");
    const from = lines.findIndex((line) => line.startsWith("process="));
    return lines.slice(from, from + 2).join("\n");
  };
  const run = (cgroup: string) => {
    const units = [{ ...service, name: container, cgroup }];
    const { text } = startScript(key, server, { ...pods, units }, sampling);
    const script = noteOf(text).replace(/>>\S+/, "");
    return execFileSync("bash", strict, { input: script, encoding: "utf8" });
  };
  assert.equal(run("/no-such-group"), `\nId=${container}\nActiveState=\nMainPID=\n`);
  // Each process is in some group.
  assert.match(run("/"), new RegExp(`^\nId=${container}\nActiveState=active\nMainPID=\\d+\n$`));
});

test("a driver that fails without a word, or with collections of garbage only, tells its code", () => {
  const log = "/run/ztbench/run/00c0ffee-7/out/load.log";
  for (const said of ["", "gc 1 @0.1s 0%: 0.1+0.2\n", "too many open files\n"]) {
    const start = (scripts["load"]?.text ?? "").split("\n").find((line) => line.includes(log));
    assert.ok(start);
    const file = path.join(scratch, "load.log");
    writeFileSync(file, said);
    const input = `systemd-run() { return 137; }\n${start.replaceAll(log, file)}`;
    const { status, stderr } = spawnSync("bash", strict, { input, encoding: "utf8" });
    assert.deepEqual([status, stderr], [137, said.startsWith("gc ") ? "" : said]);
  }
});

test("sends load, and looks at its connections, from the namespace of the entry", () => {
  const load = loadScript(key, client, { ...attack, entry: pods.entry }, true).text;
  assert.ok(load.includes(`-p NetworkNamespacePath=${namespace}`));
  const scrape = scrapeScript(key, client, pods)?.text ?? "";
  assert.ok(scrape.includes(`nsenter --net=${namespace} ss `), scrape);
  assert.ok(scrape.includes("-scrape stats=http://127.0.0.1:15000/stats@/n "), scrape);
});

test("asks the probes of a host from the namespaces that they name", () => {
  const [probe] = example.probes;
  assert.ok(probe);
  const inside = { ...probe, id: "inside", networkNamespace: namespace };
  const { text } = probeScript([probe, inside], "after");
  const asked = text.split("\n").filter((line) => line.includes("ztprobe"));
  assert.equal(asked.length, 2);
  assert.ok(asked[0]?.startsWith("/var/lib/ztbench/bin/ztprobe <<"));
  assert.ok(asked[1]?.startsWith(`nsenter --net=${namespace} /var/lib/ztbench/bin/ztprobe <<`));
});

test("asks a proxy before and after the load, and a host without one not at all", () => {
  const lines = (text: string) => text.split("\n").filter((line) => line.includes("-once"));
  const base = "http://127.0.0.1:9901";
  const command = (when: string) =>
    `/var/lib/ztbench/bin/ztsample -once -scrape stats=${base}/stats ` +
    `-scrape server_info=${base}/server_info -scrape certs=${base}/certs ` +
    `-out /run/ztbench/run/00c0ffee-7/out/proxies/ztbench-gateway.service-${when}.txt`;
  assert.deepEqual(lines(scripts["scrape"]?.text ?? ""), [command("before")]);
  assert.deepEqual(lines(scripts["collect"]?.text ?? ""), [`${command("after")} || true`]);
  assert.equal(scrapeScript(key, server, deployment), undefined);
});

test("samples the counters of a proxy only where that is wanted, each time", () => {
  const { text } = startScript(key, gateway, deployment, { intervalSeconds: 0.25, proxies: true });
  const filter = "cx_total%7Ccx_active%7Cssl.handshake%7Cssl.session_reused";
  const flags =
    "-interval 250ms .* -scrape-every 250ms -scrape " +
    `'ztbench-gateway.service=http://127.0.0.1:9901/stats\\?usedonly&filter=${filter}'`;
  assert.match(text, new RegExp(flags));
  assert.doesNotMatch(scripts["start"]?.text ?? "", /scrape/);
  const without = startScript(key, server, deployment, { intervalSeconds: 0.25, proxies: true });
  assert.doesNotMatch(without.text, /scrape/);
});

test("asks the kernel of the sending host for its connections to the entry", () => {
  const { text } = scrapeScript(key, client, deployment) ?? { text: "" };
  const ask = "ss -Htn state established dst 198.18.0.12:8080 >/run/ztbench/run/00c0ffee-7/out/";
  assert.equal(text, `${ask}connections/client-before.txt`);
});

test("pre-warms the vegeta command line by an attack of its own, which is cleared as well", () => {
  const treatment = treatmentSchema.parse({ label: "a", topology: "a", driver: "vegeta" });
  const attacks = ({ text }: RemoteScript) =>
    text.split("\n").filter((line) => line.includes("/vegeta ") && line.includes("-rate"));
  const [first, second, ...more] = attacks(loadScript(key, client, { ...attack, treatment }, true));
  assert.match(
    first ?? "",
    /-unit=ztbench-load-00c0ffee-7-prewarm.service .*-rate 50\/1s .*2000000/,
  );
  assert.match(
    second ?? "",
    /-unit=ztbench-load-00c0ffee-7.service .*-rate 10\/1s .*-duration 3000/,
  );
  assert.deepEqual(more, []);
  assert.match(clearScript(key).text, /stop ztbench-load-00c0ffee-7-prewarm.service/);
  assert.doesNotMatch(scripts["load"]?.text ?? "", /prewarm\.service/);
});

test("keeps targets out of what is fetched, and removes them whatever happens", () => {
  assert.equal(attack.files.targets, "/run/ztbench/run/00c0ffee-7/private/targets");
  const [first] = (scripts["load"]?.text ?? "").split("\n");
  assert.equal(first, "trap 'rm -rf /run/ztbench/run/00c0ffee-7/private' EXIT");
  assert.match(scripts["collect"]?.text ?? "", /tar -C \/run\/ztbench\/run\/00c0ffee-7\/out /);
});
