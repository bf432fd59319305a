/** What is handed to ip, nft, nspawn, systemd-run, mmdebstrap and ssh. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  baseFiles,
  baseKey,
  basePackages,
  mmdebstrapArgv,
  sealedArgv,
} from "../../../hosts/lab/base-recipe.ts";
import { knownHosts, sshConfig } from "../../../hosts/lab/keys.ts";
import { layLab } from "../../../hosts/lab/layout.ts";
import * as network from "../../../hosts/lab/network.ts";
import {
  nspawnArgv,
  nspawnEnvironment,
  rebootExitCode,
  systemdRunArgv,
  watchArgv,
  watchEnvironment,
} from "../../../hosts/lab/nspawn.ts";

const layout = layLab("labx", 3);
const [client] = layout.hosts;
assert.ok(client);

const machineOf = {
  profile: "native",
  host: client,
  baseDirectory: "/s/base-1",
  keysDirectory: "/s/labx/keys",
  persistentDirectory: "/s/labx/hosts/client",
} as const;
const nspawn = nspawnArgv(machineOf);

test("the machine's namespace gets host routes only, never a subnet or a default route", () => {
  const routes = [network.machineBatch(layout), network.machineAddressBatch(layout)]
    .join("")
    .split("\n")
    .filter((line) => /^(route|addr) add/.test(line));
  assert.equal(routes.length, 6);
  for (const line of routes) assert.match(line, /^(route|addr) add 198\.18\.19\.\d+\/32 dev labx-/);
});

test("a host gets the data network, one management route and nothing else", () => {
  assert.deepEqual(network.hostBatch(layout, client).trimEnd().split("\n"), [
    "link set lo up",
    "addr add 198.18.0.10/24 dev data0",
    "link set data0 up",
    "addr add 198.18.19.10/32 dev mgmt0",
    "link set mgmt0 up",
    "route add 198.18.19.1/32 dev mgmt0 src 198.18.19.10",
  ]);
});

test("the bridge exists in the switch namespace only", () => {
  assert.match(network.switchBatch(layout), /link add data type bridge/);
  assert.doesNotMatch(network.machineBatch(layout), /bridge/);
});

test("every link made in the machine's namespace is marked as the lab's", () => {
  const lines = network.machineBatch(layout).split("\n");
  for (const { link } of layout.hosts) {
    assert.ok(lines.includes(`link set ${link} alias "ztbench lab labx"`), link);
  }
});

test("the guard lets a host answer from port 22 but never open a connection from it", () => {
  const rules = network.guardRules(layout);
  assert.match(rules, /hook ingress devices = \{ labx-client, labx-gateway, labx-server \}/);
  assert.match(rules, /policy drop/);
  assert.match(rules, /tcp sport 22 tcp flags & \(fin \| syn \| rst \| ack\) != syn accept/);
  const accepting = rules.split("\n").filter((line) => line.includes("accept"));
  assert.deepEqual(accepting.map((line) => line.trim().split(" ").slice(0, 2).join(" ")).sort(), [
    "ether type",
    "icmp type",
    "tcp sport",
  ]);
});

test("the guard binds each source address to its own link", () => {
  for (const host of layout.hosts) {
    const rule =
      `iifname "${host.link}" ip saddr ${host.managementAddress} ` + "ip daddr 198.18.19.1 jump";
    assert.ok(network.guardRules(layout).includes(rule), rule);
  }
});

test("a host's root is read-only below a volatile overlay, with one writable directory", () => {
  assert.ok(nspawn.includes("--read-only") && nspawn.includes("--volatile=overlay"));
  assert.deepEqual(
    nspawn.filter((word) => word.startsWith("--bind=")),
    ["--bind=/s/labx/hosts/client:/var/lib/ztbench"],
  );
  assert.ok(nspawn.includes("--network-namespace-path=/run/netns/ztlab-labx-client"));
});

test("the watcher can be told by machine and runs exactly the given program", () => {
  const argv = watchArgv("ztlab-labx-client", nspawn);
  assert.deepEqual(argv.slice(3, 5), ["ztbench-lab-watch", "ztlab-labx-client"]);
  assert.deepEqual(argv.slice(5), nspawn);
  const environment = watchEnvironment(["/c/watch"], ["/c/a", "/d/a"]);
  assert.equal(environment["ZTBENCH_HOST_CGROUPS"], "/c/a /d/a");
  assert.equal(environment["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"], "1");
});

test("under systemd a host is a delegated service that restarts only to reboot", () => {
  const argv = systemdRunArgv("ztlab-labx-client", "/r/client.log", nspawn);
  assert.equal(argv[0], "systemd-run");
  assert.ok(argv.includes("--unit=ztlab-labx-client.service"));
  assert.ok(argv.includes("--property=Delegate=yes"));
  assert.ok(argv.includes(`--property=RestartForceExitStatus=${rebootExitCode}`));
  assert.ok(!argv.some((word) => word.startsWith("--property=Restart=")));
  assert.deepEqual(argv.slice(argv.indexOf("--") + 1), nspawn);
});

const target = {
  profile: "native",
  suite: "bookworm",
  architecture: "amd64",
  sources: "/etc/apt/sources.list",
} as const;

test("the base key changes with suite and architecture, not with the sources' place", () => {
  const key = baseKey(target);
  assert.match(key, /^[0-9a-f]{12}$/);
  assert.equal(baseKey({ ...target, sources: "/elsewhere" }), key);
  assert.notEqual(baseKey({ ...target, suite: "trixie" }), key);
  assert.notEqual(baseKey({ ...target, architecture: "arm64" }), key);
});

test("a node has a base of its own, with the container runtime, and the plain one has none", () => {
  const node = { ...target, profile: "kubernetes" } as const;
  assert.notEqual(baseKey(node), baseKey(target));
  const included = mmdebstrapArgv(node, "/s/base.part").find((word) => word.startsWith("--incl"));
  for (const name of basePackages) assert.ok(included?.includes(name), name);
  assert.match(included ?? "", /\bcontainerd\b.*\bipset\b/);
  assert.doesNotMatch(mmdebstrapArgv(target, "/s/base.part").join(" "), /containerd/);
});

test("a node may have containers, and has no more rights than that", () => {
  const node = nspawnArgv({ ...machineOf, profile: "kubernetes" });
  assert.deepEqual(
    node.filter((word) => !nspawn.includes(word)),
    [
      "--bind=/dev/kmsg",
      "--capability=CAP_SYSLOG",
      "--system-call-filter=add_key",
      "--system-call-filter=keyctl",
      "--bind-ro=/s/labx/keys/hosts:/etc/hosts",
    ],
  );
  assert.equal(nspawnEnvironment.SYSTEMD_NSPAWN_API_VFS_WRITABLE, "network");
});

test("the API server of a cluster is a second door, at one address and one port", () => {
  const cluster = layLab("labx", 3, "kubernetes");
  const routes = (of: typeof layout): string[] =>
    network
      .machineAddressBatch(of)
      .split("\n")
      .filter((line) => line.startsWith("route"));
  assert.deepEqual(
    routes(cluster).filter((line) => !routes(layout).includes(line)),
    ["route add 198.18.35.20/32 via 198.18.19.20 dev labx-gateway src 198.18.19.1"],
  );
  const plain = network.guardRules(layout).split("\n");
  const more = network
    .guardRules(cluster)
    .split("\n")
    .filter((line) => !plain.includes(line));
  assert.deepEqual(more, [
    '    iifname "labx-gateway" ip saddr 198.18.35.20 ip daddr 198.18.19.1 tcp sport 6443 ' +
      "tcp flags & (fin | syn | rst | ack) != syn accept",
  ]);
});

test("the base is built with all packages, into the directory asked for", () => {
  const argv = mmdebstrapArgv(target, "/s/base.part");
  assert.deepEqual(argv.slice(-3), ["bookworm", "/s/base.part", "/etc/apt/sources.list"]);
  assert.ok(argv.includes(`--include=${basePackages.join(",")}`));
  assert.ok(sealedArgv(argv).join(" ").endsWith(argv.join(" ")));
});

test("no host can look up names, and every host knows the others", () => {
  assert.equal(baseFiles["etc/resolv.conf"], "");
  for (const { role, dataAddress } of layout.hosts) {
    assert.ok(baseFiles["etc/hosts"]?.includes(`${dataAddress} ${role}\n`), role);
  }
});

test("ssh trusts nothing but the pinned keys", () => {
  const config = sshConfig(layout, "/k");
  for (const line of [
    "StrictHostKeyChecking yes",
    "UserKnownHostsFile /k/known_hosts",
    "GlobalKnownHostsFile /dev/null",
    "IdentitiesOnly yes",
  ]) {
    assert.ok(config.includes(`  ${line}\n`), line);
  }
  const keys = { client: "ssh-ed25519 A", gateway: "ssh-ed25519 B", server: "ssh-ed25519 C" };
  assert.equal(
    knownHosts(layout, keys),
    "client,198.18.19.10 ssh-ed25519 A\ngateway,198.18.19.20 ssh-ed25519 B\n" +
      "server,198.18.19.30 ssh-ed25519 C\n",
  );
});
