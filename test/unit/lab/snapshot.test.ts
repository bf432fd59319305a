import assert from "node:assert/strict";
import { test } from "node:test";
import { layLab } from "../../../hosts/lab/layout.ts";
import { differences, type Snapshot } from "../../../hosts/lab/snapshot.ts";

const layout = layLab("labx", 3);
const empty: Snapshot = {
  links: [],
  addresses: [],
  routes: ["default via 192.0.2.1 dev eth0"],
  rules: ["0: from all lookup local"],
  namespaces: [],
  mounts: [],
  nftTables: [],
  sysctls: ["net.ipv4.ip_forward = 0"],
  cgroups: [],
  processes: [],
  files: [],
};

test("equal snapshots have no differences", () => {
  assert.deepEqual(differences(empty, empty, layout), []);
});

test("whatever bears the lab's name or addresses counts", () => {
  const after: Snapshot = {
    ...empty,
    links: ["labx-client (ztbench lab labx)"],
    routes: [...empty.routes, "198.18.19.10 dev labx-client scope link"],
    namespaces: ["ztlab-labx-switch"],
    processes: ["systemd-nspawn --machine=ztlab-labx-client"],
  };
  assert.deepEqual(differences(empty, after, layout), [
    "+ links: labx-client (ztbench lab labx)",
    "+ routes: 198.18.19.10 dev labx-client scope link",
    "+ namespaces: ztlab-labx-switch",
    "+ processes: systemd-nspawn --machine=ztlab-labx-client",
  ]);
});

test("a setting, rule, mount or default route that changed counts, though it names no lab", () => {
  const after: Snapshot = {
    ...empty,
    routes: [],
    rules: [...empty.rules, "100: from all lookup 7"],
    sysctls: ["net.ipv4.ip_forward = 1"],
    mounts: ["/run/netns"],
    files: ["/tmp/nspawn-root-1"],
  };
  assert.deepEqual(differences(empty, after, layout), [
    "- routes: default via 192.0.2.1 dev eth0",
    "+ rules: 100: from all lookup 7",
    "+ mounts: /run/netns",
    "+ sysctls: net.ipv4.ip_forward = 1",
    "- sysctls: net.ipv4.ip_forward = 0",
    "+ files: /tmp/nspawn-root-1",
  ]);
});

test("other labs and other people's objects come and go without notice", () => {
  const after: Snapshot = {
    ...empty,
    links: ["docker0", "laby-client (ztbench lab laby)"],
    addresses: ["docker0 inet 172.17.0.1/16", "laby-client inet 198.18.20.1/32"],
    routes: [...empty.routes, "198.18.20.10 dev laby-client"],
    namespaces: ["other", "ztlab-laby-switch"],
    mounts: ["/run/netns", "/run/netns/ztlab-laby-switch"],
    processes: ["sleep 5", "systemd-nspawn --machine=ztlab-laby-client"],
    files: ["/run/ztbench-lab/laby", "/run/netns"],
  };
  assert.deepEqual(differences(empty, after, layout), []);
  assert.deepEqual(differences(after, empty, layout), []);
});
