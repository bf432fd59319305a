/** What the lab reads from the machine: addresses, processes, control groups, CPUs, facts. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { overlaps } from "../../../contracts/ipv4.ts";
import { parseFacts } from "../../../hosts/lab/boot.ts";
import { cgroupRoots } from "../../../hosts/lab/cgroups.ts";
import { lastLines } from "../../../hosts/lab/command.ts";
import { layLab } from "../../../hosts/lab/layout.ts";
import { checkOwner, checkPrograms, checkRoot, rangeConflict } from "../../../hosts/lab/machine.ts";
import { openLab } from "../../../hosts/lab/options.ts";
import {
  isSupervisor,
  isWatcher,
  parseStat,
  type FoundProcess,
} from "../../../hosts/lab/processes.ts";
import { labCpus, labTestbed } from "../../../hosts/lab/testbed.ts";

const layout = layLab("labx", 3);

test("prefixes overlap when one holds the other, whichever is larger", () => {
  assert.equal(overlaps("198.18.19.0/24", "198.18.19.7"), true);
  assert.equal(overlaps("198.18.0.0/15", "198.18.19.0/24"), true);
  assert.equal(overlaps("0.0.0.0/0", "198.18.19.0/24"), true);
  assert.equal(overlaps("198.18.18.0/24", "198.18.19.0/24"), false);
  assert.equal(overlaps("198.18.19.0/25", "198.18.19.128/25"), false);
});

const address = (ifname: string, local: string, prefixlen: number) => ({
  ifname,
  addr_info: [{ local, prefixlen }],
});

test("an address or route of something else in the range is named", () => {
  const found = rangeConflict([address("vpn0", "198.18.19.200", 26)], [], layout);
  assert.equal(found, "address 198.18.19.200/26 on vpn0");
  const route = rangeConflict([], [{ dst: "198.18.0.0/15", dev: "vpn0" }], layout);
  assert.equal(route, "route 198.18.0.0/15 on vpn0");
});

test("the lab's own links, other labs and the default route are no conflict", () => {
  const addresses = [
    address("labx-client", "198.18.19.1", 32),
    address("laby-client", "198.18.20.1", 32),
    { ifname: "down0" },
  ];
  const routes = [
    { dst: "default", dev: "eth0" },
    { dst: "198.18.19.10", dev: "labx-client" },
    { dst: "198.18.20.10", dev: "laby-client" },
    { dev: "eth0" },
  ];
  assert.equal(rangeConflict(addresses, routes, layout), undefined);
});

test("only root may raise a lab", () => {
  checkRoot(0);
  assert.throws(() => {
    checkRoot(1000);
  }, /needs root, run by user id 1000, 0 expected/);
});

test("missing programs are named with their packages, all at once", async () => {
  const empty = await mkdtemp(join(tmpdir(), "lab-"));
  try {
    await assert.rejects(checkPrograms(empty), {
      message: /mmdebstrap \(package mmdebstrap\).*systemd-nspawn \(package systemd-container\)/,
      hint: "make tools",
    });
  } finally {
    await rm(empty, { recursive: true });
  }
});

const running = (argv: readonly string[]): FoundProcess => ({
  pid: 7,
  startTicks: "1",
  parent: 1,
  argv,
  networkNamespace: undefined,
});
const supervisor = (bind: string): FoundProcess =>
  running(["/usr/bin/systemd-nspawn", "--machine=ztlab-labx-client", bind]);

test("supervisors and watchers are told by exact machine name", () => {
  const found = supervisor("--bind=/s/labx/hosts/client:/var/lib/ztbench");
  assert.equal(isSupervisor(found, "ztlab-labx-client"), true);
  assert.equal(isSupervisor(found, "ztlab-labx-cli"), false);
  assert.equal(isSupervisor(running(["grep", ...found.argv]), "ztlab-labx-client"), false);
  const watcher = running(["sh", "-c", "script", "ztbench-lab-watch", "ztlab-labx-client"]);
  assert.equal(isWatcher(watcher, "ztlab-labx-client"), true);
  assert.equal(isWatcher(watcher, "ztlab-labx-server"), false);
});

test("a lab of the same name from another state directory is refused by its place", () => {
  const lab = openLab({ name: "labx", network: 3, stateDir: "/s" }, {});
  checkOwner(lab, [supervisor("--bind=/s/labx/hosts/client:/var/lib/ztbench")]);
  assert.throws(() => {
    checkOwner(lab, [supervisor("--bind=/t/labx/hosts/client:/var/lib/ztbench")]);
  }, /already up from another state directory, host data in \/t\/labx\/hosts\/client/);
});

test("the start time is read past a name with spaces and brackets; a zombie has none", () => {
  const fields = Array.from({ length: 30 }, (_, index) => String(index + 4)).join(" ");
  assert.deepEqual(parseStat(`12 (a) b (c)) S ${fields}`), { parent: 4, startTicks: "22" });
  assert.equal(parseStat(`12 (a) Z ${fields}`), undefined);
  assert.equal(parseStat(""), undefined);
});

test("control groups are found on unified and hybrid machines", () => {
  const unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
  assert.deepEqual(cgroupRoots(unified), { host: ["/sys/fs/cgroup"], controllers: [] });
  const hybrid = [
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
    "32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd",
    "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    "",
  ].join("\n");
  assert.deepEqual(cgroupRoots(hybrid), {
    host: ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"],
    controllers: ["/sys/fs/cgroup/cpu"],
  });
  assert.deepEqual(cgroupRoots(""), { host: [], controllers: [] });
});

test("load has a CPU of its own as soon as there are two", () => {
  const cpus = (count: number) => labCpus(Array.from({ length: count }, (_, cpu) => cpu + 2));
  assert.deepEqual(cpus(1), { system: "", irq: "", load: "2", proxy: "2", service: "2" });
  assert.deepEqual(cpus(2), { system: "", irq: "", load: "2", proxy: "3", service: "3" });
  assert.deepEqual(cpus(3), { system: "", irq: "", load: "2", proxy: "3", service: "3" });
  assert.deepEqual(cpus(4), { system: "", irq: "", load: "2", proxy: "3", service: "4" });
});

test("the testbed document of a lab pins each host's key", () => {
  const key = (letter: string): string => `ssh-ed25519 AAAA${letter}`;
  const testbed = labTestbed({
    layout,
    keys: {
      identityFile: "/s/labx/keys/id",
      hostKeys: { client: key("c"), gateway: key("g"), server: key("s") },
    },
    instance: "0123456789abcdef",
    cpus: labCpus([0, 1]),
    scheduling: "rr",
  });
  assert.equal(testbed.class, "lab");
  assert.equal(testbed.name, "labx");
  assert.deepEqual(
    testbed.hosts.map((host) => [host.role, host.managementAddress, host.hostKey, host.nic]),
    [
      ["client", "198.18.19.10", key("c"), "data0"],
      ["gateway", "198.18.19.20", key("g"), "data0"],
      ["server", "198.18.19.30", key("s"), "data0"],
    ],
  );
});

test("a host's facts are read from what it prints, whatever is missing", () => {
  assert.deepEqual(parseFacts("state running\nfailed\nrealtime\n"), {
    systemState: "running",
    failedUnits: [],
    realtime: true,
  });
  assert.deepEqual(parseFacts("state degraded\nfailed a.service b.service\n"), {
    systemState: "degraded",
    failedUnits: ["a.service", "b.service"],
    realtime: false,
  });
  assert.equal(parseFacts("").systemState, "unknown");
});

test("the last lines of an output fit on one line", () => {
  assert.equal(lastLines("a\n\nb\nc\n", 2), "b | c");
});
