/** The lab on this machine: raised, disturbed in every way we know, taken down without a trace. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { $ } from "zx";
import { Failure } from "../../contracts/failure.ts";
import { labDown, labStatus, labUp, type LabUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import { isSupervisor, isWatcher, listProcesses, waitForEnd } from "../../hosts/lab/processes.ts";
import { differences, takeSnapshot, type Snapshot } from "../../hosts/lab/snapshot.ts";

const lab = openLab({ name: "labt", network: 7 });
const second = openLab({ name: "labu", network: 8 });
const { machineAddress, hosts } = lab.layout;
const [, gateway, server] = hosts;
assert.ok(gateway && server);

let pristine: Snapshot;

before(async () => {
  await labDown(lab);
  await labDown(second);
  pristine = await takeSnapshot();
});

after(async () => {
  await labDown(second);
  await labDown(lab);
});

async function on(role: string, command: string): Promise<{ exitCode: number; output: string }> {
  const argv = ["ssh", "-F", lab.paths.sshConfig, role, command];
  const result = await $({ quiet: true, nothrow: true, timeout: "20s" })`${argv}`;
  return { exitCode: result.exitCode ?? -1, output: (result.stdout + result.stderr).trim() };
}

/** Whether a TCP connection from the client host can be opened within two seconds. */
async function clientReaches(address: string, port: number): Promise<boolean> {
  const attempt = `timeout 2 bash -c 'exec 3<>/dev/tcp/${address}/${port}'`;
  return (await on("client", attempt)).exitCode === 0;
}

async function until(what: string, seconds: number, check: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await check())) {
    assert.ok(Date.now() < deadline, `${what} within ${seconds} s`);
    await delay(50);
  }
}

async function supervisors(): Promise<number[]> {
  const processes = await listProcesses();
  const found = processes.filter((p) => hosts.some((host) => isSupervisor(p, host.machine)));
  return found.map((process) => process.pid).sort((a, b) => a - b);
}

/** The lab must be whole, with one supervisor a host and every host answering. */
async function assertWhole(up: LabUp): Promise<void> {
  const status = await labStatus(lab);
  assert.deepEqual(status.missing, []);
  assert.equal(status.state, "up");
  assert.equal(status.testbed?.instance, up.testbed.instance);
  assert.equal((await supervisors()).length, 3);
}

/** Kills the supervisor or the watcher of a host, as the machine's memory killer might. */
async function killOne(matches: typeof isSupervisor, machine: string): Promise<void> {
  const processes = await listProcesses();
  const victim = processes.find((process) => matches(process, machine));
  assert.ok(victim, "hosts run under a watcher where PID 1 is not systemd, as here");
  process.kill(victim.pid, "SIGKILL");
  assert.ok(await waitForEnd(victim, 5));
}

async function failureOf(action: Promise<unknown>): Promise<Failure> {
  const error = await action.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Failure, `expected a Failure, got ${String(error)}`);
  assert.equal(error.code, "testbed");
  return error;
}

async function listen(): Promise<{ server: Server; port: number }> {
  const listener = createServer((socket) => socket.destroy()).listen(0, "0.0.0.0");
  await once(listener, "listening");
  const address = listener.address();
  assert.ok(typeof address === "object" && address !== null);
  return { server: listener, port: address.port };
}

test("up raises three hosts that run systemd and answer by their pinned keys", async () => {
  const up = await labUp(lab);
  assert.equal(up.changed, true);
  assert.deepEqual(up.warnings, []);
  await assertWhole(up);
  for (const { role, dataAddress } of hosts) {
    const facts = await on(role, "hostname; cat /proc/1/comm; ip -4 -br address show data0");
    assert.match(facts.output, new RegExp(`^${role}\nsystemd\ndata0.* ${dataAddress}/24`));
  }
});

test("a second up keeps the same processes and the same instance", async () => {
  const pids = await supervisors();
  const before = await labStatus(lab);
  const up = await labUp(lab);
  assert.equal(up.changed, false);
  assert.equal(up.testbed.instance, before.testbed?.instance);
  assert.deepEqual(await supervisors(), pids);
});

test("the snapshot shows a lab that is up", async () => {
  const found = differences(pristine, await takeSnapshot(), lab.layout);
  for (const section of ["links", "routes", "namespaces", "nftTables", "cgroups", "processes"]) {
    assert.ok(
      found.some((line) => line.startsWith(`+ ${section}: `)),
      `${section} in ${found.join("\n")}`,
    );
  }
});

test("hosts reach each other over the data network and nothing else", async () => {
  const { server: listener, port } = await listen();
  try {
    assert.equal((await on("client", "ip route show default; ip -6 address")).output, "");
    assert.equal(await clientReaches(server.dataAddress, 22), true);
    assert.equal(await clientReaches(server.managementAddress, 22), false);
    assert.equal(await clientReaches(machineAddress, port), false);
    const route = await on("client", "ip route get 192.0.2.2");
    assert.match(route.output, /unreachable/);
  } finally {
    listener.close();
  }
});

test("a lost guard or a killed watcher makes the lab broken, and up mends both", async () => {
  const { server: listener, port } = await listen();
  try {
    await $({ quiet: true })`nft delete table netdev ${lab.layout.prefix}`;
    assert.equal(await clientReaches(machineAddress, port), true);
    assert.deepEqual((await labStatus(lab)).missing, [`nft table ${lab.layout.prefix}`]);
    await killOne(isWatcher, gateway.machine);
    const status = await labStatus(lab);
    assert.equal(status.state, "broken");
    assert.ok(status.missing.includes(`watcher of ${gateway.machine}`));
    await assertWhole(await labUp(lab));
    assert.equal(await clientReaches(machineAddress, port), false);
  } finally {
    listener.close();
  }
});

test("a host with another key than the pinned one is refused", async () => {
  const directory = await mkdtemp(join(tmpdir(), "labt-"));
  try {
    const pinned = await readFile(join(lab.paths.keys, "known_hosts"), "utf8");
    const keys = pinned.split("\n").map((line) => line.split(" ").slice(1).join(" "));
    const swapped = join(directory, "known_hosts");
    await writeFile(swapped, `client ${keys[1] ?? ""}\n`);
    const options = ["-F", lab.paths.sshConfig, "-o", `UserKnownHostsFile=${swapped}`];
    const login = await $({ quiet: true, nothrow: true })`ssh ${options} client true`;
    assert.equal(login.exitCode, 255);
    assert.match(login.stderr, /verification failed/i);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a host that reboots comes back with its network and its persistent directory", async () => {
  const look = "cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net; ";
  const keep = "sysctl -qw net.ipv4.tcp_fin_timeout=17; echo kept >/var/lib/ztbench/probe";
  const [boot, namespace] = (await on("client", look + keep)).output.split("\n");
  assert.ok(boot !== undefined && namespace !== undefined);
  await on("client", "touch /root/volatile; systemctl reboot");
  await until("a new boot id", 20, async () => {
    const now = await on("client", "cat /proc/sys/kernel/random/boot_id");
    return now.exitCode === 0 && now.output !== boot;
  });
  const checks = "cat /var/lib/ztbench/probe; sysctl -n net.ipv4.tcp_fin_timeout; ls /root";
  const after = (await on("client", look + checks)).output.split("\n");
  assert.deepEqual(after.slice(1), [namespace, "kept", "17"]);
  assert.equal((await labUp(lab)).changed, false);
});

test("a killed supervisor makes the lab broken, and up mends it", async () => {
  await killOne(isSupervisor, gateway.machine);
  assert.equal((await labStatus(lab)).state, "broken");
  await assertWhole(await labUp(lab));
});

test("up recovers when the run directory was deleted under a running lab", async () => {
  const before = await labStatus(lab);
  await rm(lab.runDir, { recursive: true });
  const up = await labUp(lab);
  assert.notEqual(up.testbed.instance, before.testbed?.instance);
  await assertWhole(up);
});

test("another state directory must not take over a running lab", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "labt-"));
  try {
    const pids = await supervisors();
    const given = { name: lab.name, network: lab.network, stateDir };
    assert.match((await failureOf(labUp(given))).message, /another state directory/);
    assert.match((await failureOf(labDown(given))).message, /another state directory/);
    assert.deepEqual(await supervisors(), pids);
  } finally {
    await rm(stateDir, { recursive: true });
  }
});

test("two labs are up side by side, and one goes without the other", async () => {
  await labUp(second);
  assert.equal((await labStatus(lab)).state, "up");
  await labDown(second);
  assert.deepEqual((await labStatus(second)).traces, []);
  assert.equal((await labUp(lab)).changed, false);
});

test("up refuses an address range that something else uses", async () => {
  const address = "198.18.24.77/32";
  await $({ quiet: true })`ip address add ${address} dev lo`;
  try {
    assert.match((await failureOf(labUp(second))).message, /198\.18\.24\.0\/24 is in use.* on lo/);
    assert.deepEqual((await labStatus(second)).traces, []);
  } finally {
    await $({ quiet: true })`ip address delete ${address} dev lo`;
  }
});

test("up refuses a link of its name that it did not make, and leaves it alone", async () => {
  await $({ quiet: true })`ip link add labu-client type veth peer name labu-other`;
  try {
    assert.match((await failureOf(labUp(second))).message, /labu-client: exists and is not/);
    await $({ quiet: true })`ip link show labu-client`;
  } finally {
    await $({ quiet: true })`ip link delete labu-client`;
  }
});

/** Runs the other lab with a program replaced by a script. */
async function withProgram(
  name: string,
  script: string,
  action: (stateDir: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "labt-"));
  const path = process.env["PATH"] ?? "";
  try {
    await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(directory, name), 0o755);
    process.env["PATH"] = `${directory}:${path}`;
    await action(join(directory, "state"));
  } finally {
    process.env["PATH"] = path;
    await rm(directory, { recursive: true });
  }
}

// mmdebstrap is given suite, directory and sources last.
const half = 'while [ $# -gt 2 ]; do shift; done; mkdir "$1"; touch "$1/half"';

test("a base that cannot be built says why and leaves nothing", async () => {
  await withProgram("mmdebstrap", `${half}; echo "E: no archive" >&2; exit 25`, async (state) => {
    const failure = await failureOf(labUp({ ...second, stateDir: state }));
    assert.match(failure.message, /mmdebstrap failed, exit code 25: .*E: no archive/);
    assert.deepEqual(
      (await readdir(state)).filter((entry) => entry.startsWith("base-")),
      [],
    );
  });
});

test("a killed up takes its base build with it", async () => {
  await withProgram("mmdebstrap", `${half}; exec sleep 987`, async (state) => {
    const isBuild = (argv: readonly string[]): boolean => argv.join(" ") === "sleep 987";
    const count = async (): Promise<number> =>
      (await listProcesses()).filter((process) => isBuild(process.argv)).length;
    const child = raiseElsewhere(second.name, second.network, state);
    await until("a build", 20, async () => (await count()) === 1);
    child.kill("SIGKILL");
    await until("the end of the build", 5, async () => (await count()) === 0);
    const parts = async (): Promise<string[]> =>
      (await readdir(state)).filter(
        (entry) => entry.startsWith("base-") && !entry.endsWith("lock"),
      );
    assert.equal((await parts()).length, 1);
    await labDown({ ...second, stateDir: state });
    assert.deepEqual(await parts(), []);
  });
});

test("a host that dies at once shows its own last words", async () => {
  await withProgram("systemd-nspawn", 'echo "no such root"; exit 1', async () => {
    const failure = await failureOf(labUp(second));
    assert.match(failure.message, /supervisor has ended; its last lines: .*no such root/);
    assert.deepEqual((await labStatus(second)).traces, []);
  });
});

function raiseElsewhere(name: string, network: number, stateDir: string): ReturnType<typeof spawn> {
  const program = fileURLToPath(new URL("raise.ts", import.meta.url));
  const argv = ["--import", "tsx", program, name, String(network), stateDir];
  return spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
}

test("up recovers after an earlier up was killed half way", async () => {
  await labDown(lab);
  const child = raiseElsewhere(lab.name, lab.network, lab.stateDir);
  assert.ok(child.stdout);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  assert.match(line.toString(), /networks wired/);
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.equal((await labStatus(lab)).state, "broken");
  await assertWhole(await labUp(lab));
});

test("down leaves nothing, not even a stray process in a host's namespace", async () => {
  const argv = ["netns", "exec", server.machine, "sleep", "986"];
  const stray = spawn("ip", argv, { stdio: "ignore" });
  const ended = once(stray, "exit");
  await labDown(lab);
  await ended;
  assert.equal(stray.signalCode, "SIGKILL");
  assert.deepEqual((await labStatus(lab)).traces, []);
  assert.deepEqual(differences(pristine, await takeSnapshot(), lab.layout), []);
});
