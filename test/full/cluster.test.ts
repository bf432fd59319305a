/** A cluster on a lab of its own, by the real engine: what it can do, and that nothing is left. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { $ } from "zx";
import { hostOf, type Testbed } from "../../contracts/testbed.ts";
import { labDown, labStatus, labUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { isSupervisor, isWatcher, listProcesses, waitForEnd } from "../../hosts/lab/processes.ts";
import { differences, type Snapshot, takeSnapshot } from "../../hosts/lab/snapshot.ts";
import { renderLease } from "../../hosts/lease.ts";
import { renderHostScript } from "../../hosts/runner.ts";
import { toolPaths } from "../../tools/paths.ts";
import { type Done, type Engine, openEngine } from "../support/engine.ts";
import { remainsOf } from "../support/remains.ts";
import { friendsOnly, greedyPod, serviceImage, workload } from "./workload.ts";

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root, for a lab";
const lab = openLab({ name: "labk", network: 9, profile: "kubernetes" });
const quickly = ["--yes", "--skip-preview"];
const root = path.resolve(import.meta.dirname, "..", "..");
const { clusterBin } = toolPaths(root);
const readySeconds = 60;

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-cluster-"));
const kubeconfigFile = path.join(scratch, "kubeconfig");

let engine: Engine;
let testbed: Testbed;
let pristine: Snapshot;
let firstIdentifier: unknown;
/** What the prepared hosts were like before the cluster. */
const prepared = new Map<string, string>();

before(async () => {
  if (!isRoot) return;
  await labDown(lab);
  pristine = await takeSnapshot();
  await raise();
});

after(async () => {
  if (!isRoot) return;
  await labDown(lab);
  engine.close();
  rmSync(scratch, { recursive: true });
});

async function raise(): Promise<void> {
  const up = (await labUp(lab)).testbed;
  assert.ok(up.cluster);
  // A mesh adds nothing to what is tested here.
  testbed = { ...up, cluster: { ...up.cluster, mesh: "none" } };
  engine = openEngine(testbed);
  for (const stack of ["hosts", "cluster"]) await engine.init(stack);
  succeeded(await engine.run("up", "hosts", quickly));
  for (const { name } of testbed.hosts) prepared.set(name, await readback(name));
}

function succeeded(done: Done): Done {
  assert.equal(done.exitCode, 0, done.output);
  return done;
}

function failed(done: Done, ...messages: RegExp[]): Done {
  assert.notEqual(done.exitCode, 0, done.output);
  const said = done.output.slice(-4000);
  for (const message of messages) assert.match(said, message);
  assert.doesNotMatch(done.output, /^ +at /m);
  return done;
}

async function on(host: string, command: string, input = ""): Promise<string> {
  const argv = ["ssh", "-F", lab.paths.sshConfig, host, command];
  const done = await $({ quiet: true, nothrow: true, timeout: "30s", input })`${argv}`;
  assert.equal(done.exitCode, 0, `${host}: ${command}: ${done.stderr}`);
  return done.stdout.trim();
}

async function kubectl(argv: readonly string[], input = ""): Promise<string> {
  const words = [path.join(clusterBin, "kubectl"), "--kubeconfig", kubeconfigFile, ...argv];
  const done = await $({ quiet: true, nothrow: true, timeout: "30s", input })`${words}`;
  assert.equal(done.exitCode, 0, `${argv.join(" ")}: ${done.stderr}`);
  return done.stdout.trim();
}

async function until(
  what: string,
  seconds: number,
  check: () => Promise<boolean>,
): Promise<number> {
  const started = performance.now();
  while (!(await check())) {
    assert.ok(performance.now() - started < seconds * 1000, `${what} within ${seconds} s`);
    await delay(100);
  }
  return (performance.now() - started) / 1000;
}

/** What of a host is not as before the cluster, by lines. */
async function changes(host: string): Promise<string[]> {
  const before = prepared.get(host)?.split("\n") ?? [];
  const now = (await readback(host)).split("\n");
  return [
    ...now.filter((line) => !before.includes(line)).map((line) => `${host}: + ${line}`),
    ...before.filter((line) => !now.includes(line)).map((line) => `${host}: - ${line}`),
  ];
}

async function allChanges(): Promise<string[]> {
  return (await Promise.all(testbed.hosts.map(({ name }) => changes(name)))).flat();
}

/** Everything of a host that a cluster could have changed. */
function readback(host: string): Promise<string> {
  const script = `
    cd /proc/sys
    grep -r . net vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops 2>/dev/null |
      grep -v -e conntrack_count -e route/flush -e /eth0/ | sort
    nft list ruleset; ipset list -name; ip -4 rule; ip -4 route show table all; ip -oneline link |
      sed 's/^[0-9]*: //; s/ qlen.*//'
    find /var/lib/ztbench -maxdepth 2 | sort; ls -A /run/systemd/system /run /var/lib /var/log /etc
    awk '{print $5}' /proc/self/mountinfo; find /sys/fs/cgroup -maxdepth 1 -type d | sort
    ps -eo comm= | grep -e kube -e etcd -e containerd -e pause -e ztecho || true`;
  return on(host, "bash -s", script);
}

/** What answers a request from inside a pod, or from a host where no pod is named: a status line. */
async function ask(host: string, address: string, pod?: string): Promise<string> {
  const request = "GET /api/echo HTTP/1.0\\r\\n\\r\\n";
  const uid =
    pod === undefined ? "" : await kubectl(["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"]);
  // No process of another pod has this group; without a pod, the host's own namespace is entered.
  const script = `
    pid=1
    [ -z "${uid}" ] || for p in $(pgrep ztecho); do
      ! grep -q "pod${uid}" "/proc/$p/cgroup" || pid=$p
    done
    nsenter --target="$pid" --net timeout 1 bash -c '
      exec 3<>/dev/tcp/${address}/8080
      printf "${request}" >&3
      read -r line <&3
      echo "$line"' 2>/dev/null || true`;
  return (await on(host, "bash -s", script)).trim();
}

const isAnswered = async (host: string, address: string, pod?: string): Promise<boolean> =>
  (await ask(host, address, pod)).includes(" 200 ");

async function installCluster(): Promise<Done> {
  const done = succeeded(await engine.run("up", "cluster", quickly));
  const kubeconfig = await engine.secret("cluster", "kubeconfig");
  writeFileSync(kubeconfigFile, String(kubeconfig), { mode: 0o600 });
  return done;
}

test("without prepared hosts, or on a lab without one, there is no cluster", { skip }, async () => {
  const none = { ...testbed, clusterKind: "none" as const, cluster: undefined };
  for (const [document, ...messages] of [
    [testbed, /hosts: not up, the stack has no outputs/, /next: pulumi up -s hosts/],
    [none, /cluster: testbed labk has none, clusterKind none, kubernetes or k3s expected/],
  ] as const) {
    const other = openEngine(document);
    try {
      for (const stack of ["hosts", "cluster"]) await other.init(stack);
      failed(await other.run("up", "cluster", quickly), ...messages);
    } finally {
      other.close();
    }
  }
});

test(
  "an agent that never joins is named in bounded time, and up goes on from there",
  { skip },
  async (t) => {
    const { apiPort } = testbed.cluster ?? { apiPort: 0 };
    const hook = "type filter hook output priority 0";
    const block = `table inet labtest {\nchain out {\n${hook}\ntcp dport ${apiPort} drop\n}\n}\n`;
    await on("client", "nft -f -", block);
    const done = await engine.run("up", "cluster", quickly);
    await on("client", "nft delete table inet labtest");
    failed(done, /node client: has not joined the cluster after \d+ s, Ready expected: /);
    assert.doesNotMatch(done.output, /node (server|gateway): has not joined/);
    assert.ok(done.seconds < 180, `${done.seconds} s`);
    t.diagnostic(`named after ${done.seconds.toFixed(1)} s`);
    await installCluster();
  },
);

test("up makes three nodes that are Ready, and says what they are", { skip }, async () => {
  const label = String.raw`jsonpath={range .items[*]}{.metadata.labels.ztbench/role} {end}`;
  const shown = await kubectl(["get", "nodes", "-o", label]);
  assert.deepEqual(shown.split(" ").sort(), ["client", "gateway", "server"]);
  const nodes = (await engine.output("cluster", "nodes")) as Record<string, Record<string, string>>;
  for (const { name } of testbed.hosts) {
    const node = nodes[name] ?? {};
    assert.equal(node["cpu-manager-policy"], "static");
    assert.match(node["container-runtime"] ?? "", /^containerd:\/\/1\./);
  }
  const versions = (await engine.output("cluster", "versions")) as Record<string, string>;
  assert.equal(versions["apiserver"], "v1.28.15");
});

test(
  "the machine keeps its settings, and no key is in the state in the clear",
  { skip },
  async () => {
    const sysctls = differences(pristine, await takeSnapshot(), lab.layout).filter((line) =>
      line.includes(" sysctls: "),
    );
    assert.deepEqual(sysctls, []);
    assert.doesNotMatch(engine.stateText(), /PRIVATE KEY-----|LS0tLS1CRUdJTi[A-Z]*BQUklW/);
  },
);

test(
  "pods run, answer over the address of a service, and their logs can be read",
  { skip },
  async (t) => {
    const image = await serviceImage(root);
    const seen = async () => kubectl(["get", "serviceaccount", "default", "--ignore-not-found"]);
    await until("the default account", readySeconds, async () => (await seen()) !== "");
    await kubectl(["apply", "-f", "-"], workload(image));
    await kubectl(["wait", "--for=condition=Ready", "pod", "--all", "--timeout=25s"]);
    const address = await serviceAddress();
    for (const [host, pod] of [
      ["gateway", "friend"],
      ["client", "stranger"],
      ["client", undefined],
    ] as const) {
      const seconds = await until(`an answer to ${pod ?? host}`, 20, () =>
        isAnswered(host, address, pod),
      );
      t.diagnostic(`${pod ?? host} answered after ${seconds.toFixed(1)} s`);
    }
    assert.match(await kubectl(["logs", "echo"]), /ztecho: start .* gomaxprocs=1 cpus=1 /);
  },
);

test(
  "a pod that asks for a whole CPU gets one to itself, and a second one waits",
  { skip },
  async () => {
    const state = JSON.parse(
      await on("server", "cat /var/lib/ztbench/cluster/node/kubelet/cpu_manager_state"),
    ) as { entries: Record<string, Record<string, string>>; defaultCpuSet: string };
    const [own = ""] = Object.values(state.entries).map(({ main }) => main);
    const { proxy, service } = hostOf(testbed, "server").cpus;
    assert.ok([proxy, service].includes(own), own);
    assert.ok(!state.defaultCpuSet.split(",").includes(own));
    const uid = await kubectl(["get", "pod", "echo", "-o", "jsonpath={.metadata.uid}"]);
    const allowed = await on(
      "server",
      `for p in $(pgrep ztecho); do ! grep -q pod${uid} /proc/$p/cgroup ||
      sed -n 's/^Cpus_allowed_list:\\t//p' /proc/$p/status; done`,
    );
    assert.equal(allowed, own);
    // Otherwise a machine with more CPUs would have one to spare.
    if (proxy !== service) return;
    await kubectl(["apply", "-f", "-"], greedyPod(await serviceImage(root)));
    const reason = ["get", "pod", "greedy", "-o", "jsonpath={.status.conditions[*].message}"];
    await until("a reason to wait", 20, async () =>
      (await kubectl(reason)).includes("Insufficient cpu"),
    );
    await kubectl(["delete", "pod", "greedy", "--now"]);
  },
);

test(
  "a network policy keeps strangers out and lets friends in, until it goes",
  { skip },
  async (t) => {
    const address = await serviceAddress();
    await until("kube-router's first pass", 30, () => isAnswered("client", address, "stranger"));
    await kubectl(["apply", "-f", "-"], friendsOnly);
    const closed = await until("the stranger refused", 20, async () => {
      return !(await isAnswered("client", address, "stranger"));
    });
    assert.ok(await isAnswered("gateway", address, "friend"));
    assert.equal(await ask("client", address, "stranger"), "");
    await kubectl(["delete", "networkpolicy", "friends-only"]);
    const open = await until("the stranger let in", 20, () =>
      isAnswered("client", address, "stranger"),
    );
    t.diagnostic(`refused after ${closed.toFixed(1)} s, let in after ${open.toFixed(1)} s`);
  },
);

async function serviceAddress(): Promise<string> {
  return kubectl(["get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}"]);
}

test("a second up changes nothing and keeps the identifier", { skip }, async () => {
  const identifier = await engine.output("cluster", "clusterIdentifier");
  firstIdentifier = identifier;
  const done = succeeded(await engine.run("up", "cluster", quickly));
  assert.match(done.output, /\n {4}\d+ unchanged\n/);
  assert.equal(await engine.output("cluster", "clusterIdentifier"), identifier);
  assert.equal(
    identifier,
    await kubectl(["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]),
  );
});

test(
  "hosts stay while a cluster is on them, and the cluster while a topology is",
  { skip },
  async () => {
    failed(
      await engine.run("destroy", "hosts", quickly),
      /cluster: there is one, \w+ is held by stack cluster since /,
      /next: pulumi destroy -s cluster/,
    );
    const [client] = testbed.hosts;
    assert.ok(client);
    const lease = renderHostScript(renderLease(client, { owner: "test/b", stack: "jwt" }));
    await on(client.name, "bash -s create", lease);
    failed(
      await engine.run("destroy", "cluster", quickly),
      /lease: hosts are taken, client is held by stack jwt since /,
    );
    await on(client.name, "bash -s remove", lease);
    assert.equal(await kubectl(["get", "--raw", "/readyz"]), "ok");
  },
);

test(
  "destroy leaves the hosts as they were, also with the API server down",
  { skip },
  async (t) => {
    await on(
      "gateway",
      "systemctl kill -s KILL ztcluster-apiserver ztcluster-etcd; systemctl stop ztcluster-apiserver",
    );
    const done = succeeded(await engine.run("destroy", "cluster", quickly));
    assert.deepEqual(await allChanges(), []);
    t.diagnostic(`destroy ${done.seconds.toFixed(1)} s`);
  },
);

test("another cluster has another identifier", { skip }, async (t) => {
  const done = await installCluster();
  assert.notEqual(await engine.output("cluster", "clusterIdentifier"), firstIdentifier);
  t.diagnostic(`up ${done.seconds.toFixed(1)} s`);
});

test(
  "a host that is gone is named in bounded time, and nothing is half undone",
  { skip },
  async (t) => {
    await powerOff("client");
    const done = failed(await engine.run("destroy", "cluster", quickly), /client-cluster-guard/);
    assert.ok(done.seconds < 120, `${done.seconds} s`);
    t.diagnostic(`named after ${done.seconds.toFixed(1)} s`);
    assert.equal(await kubectl(["get", "--raw", "/readyz"]), "ok");
  },
);

async function powerOff(role: string): Promise<void> {
  const machine = lab.layout.hosts.find((host) => host.role === role)?.machine ?? "";
  for (const matches of [isWatcher, isSupervisor]) {
    const found = (await listProcesses()).find((process) => matches(process, machine));
    if (found === undefined) continue;
    const inside = (await listProcesses()).filter(({ parent }) => parent === found.pid);
    for (const { pid } of matches === isSupervisor ? [...inside, found] : [found]) {
      process.kill(pid, "SIGKILL");
    }
    assert.ok(await waitForEnd(found, 5));
  }
}

test("lab down with a running cluster leaves nothing on the machine", { skip }, async (t) => {
  assert.equal((await labStatus(lab)).profile, "kubernetes");
  const { seconds } = await labDown(lab);
  assert.deepEqual((await labStatus(lab)).traces, []);
  const networks = ["198.18.25.", "198.18.41."];
  assert.deepEqual(remainsOf(pristine, await takeSnapshot(), lab.layout, networks), []);
  t.diagnostic(`down ${seconds.toFixed(1)} s`);
});
