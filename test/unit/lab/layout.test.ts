import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Failure } from "../../../contracts/failure.ts";
import { overlaps } from "../../../contracts/ipv4.ts";
import { highestNetwork, layLab, longestLabName } from "../../../hosts/lab/layout.ts";
import { openLab } from "../../../hosts/lab/options.ts";

const labName = fc
  .stringMatching(/^[a-z][a-z0-9]{0,6}$/)
  .filter((name) => name.length <= longestLabName);
const network = fc.integer({ min: 0, max: highestNetwork });

test("every interface name fits into the kernel's 15 characters", () => {
  fc.assert(
    fc.property(labName, network, (name, number) => {
      for (const host of layLab(name, number).hosts) assert.ok(host.link.length <= 15, host.link);
    }),
  );
});

test("labs with different names and networks share no name and no management address", () => {
  fc.assert(
    fc.property(labName, labName, network, network, (a, b, m, n) => {
      fc.pre(a !== b && m !== n);
      const unique = (name: string, number: number): string[] =>
        layLab(name, number).hosts.flatMap((host) => [
          host.machine,
          host.link,
          host.managementAddress,
          host.dataMac,
          host.uuid,
        ]);
      const others = new Set(unique(b, n));
      assert.deepEqual(
        unique(a, m).filter((word) => others.has(word)),
        [],
      );
    }),
  );
});

test("management addresses follow the network number inside 198.18.0.0/15", () => {
  const { hosts, managementSubnet, machineAddress } = layLab("lab", 7);
  assert.equal(managementSubnet, "198.18.23.0/24");
  assert.equal(machineAddress, "198.18.23.1");
  assert.deepEqual(
    hosts.map((host) => [host.role, host.managementAddress, host.dataAddress, host.link]),
    [
      ["client", "198.18.23.10", "198.18.0.10", "lab-client"],
      ["gateway", "198.18.23.20", "198.18.0.20", "lab-gateway"],
      ["server", "198.18.23.30", "198.18.0.30", "lab-server"],
    ],
  );
});

test("networks of clusters lie inside 198.18.0.0/15 and no two labs share any", () => {
  const networksOf = (number: number): string[] => {
    const { cluster, dataNetwork, managementSubnet } = layLab("lab", number, "kubernetes");
    assert.ok(cluster);
    return [dataNetwork, managementSubnet, cluster.podNetwork, cluster.serviceNetwork];
  };
  assert.deepEqual(networksOf(2), [
    "198.18.34.0/24",
    "198.18.18.0/24",
    "198.19.32.0/22",
    "198.19.40.0/24",
  ]);
  const all = Array.from({ length: highestNetwork + 1 }, (_, number) => networksOf(number)).flat();
  all.push(layLab("lab", 0).dataNetwork);
  for (const [index, network] of all.entries()) {
    assert.ok(overlaps("198.18.0.0/15", network), network);
    const others = all.filter((other, place) => place !== index && overlaps(network, other));
    assert.deepEqual(others, [], network);
  }
});

test("hardware addresses are local unicast and machine ids are version 4", () => {
  for (const host of layLab("lab", 0).hosts) {
    assert.match(host.dataMac, /^02(:[0-9a-f]{2}){5}$/);
    assert.match(host.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

const refused: readonly (readonly [string, number, RegExp])[] = [
  ["laboratory", 0, /too long for an interface name, 10 characters in "laboratory", at most 7/],
  ["Lab", 0, /not usable, "Lab"/],
  ["", 0, /not usable, ""/],
  ["a-b", 0, /not usable, "a-b"/],
  ["lab", -1, /out of range, -1, allowed are whole numbers 0 to 15/],
  ["lab", 16, /out of range, 16/],
  ["lab", 1.5, /out of range, 1.5/],
];

test("names and networks that cannot work are refused with the value seen", () => {
  for (const [name, number, message] of refused) {
    assert.throws(
      () => layLab(name, number),
      (error: unknown) =>
        error instanceof Failure && error.code === "usage" && message.test(error.message),
      `${name} ${number}`,
    );
  }
});

test("the state directory comes from the caller, then the environment, then the default", () => {
  const environment = { ZTBENCH_LAB_STATE: "/srv/labs" };
  assert.equal(openLab({ stateDir: "/srv/own" }, environment).stateDir, "/srv/own");
  assert.equal(openLab({}, environment).stateDir, "/srv/labs");
  assert.equal(openLab({}, {}).stateDir, "/var/lib/ztbench-lab");
});

test("directories that nspawn would misread are refused", () => {
  for (const stateDir of ["relative", "/with space", "/with:colon", "/"]) {
    assert.throws(() => openLab({ stateDir }, {}), /state directory: not usable/, stateDir);
  }
});
