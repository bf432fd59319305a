import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, suite, test } from "node:test";
import { benchSlice } from "../../../contracts/testbed.ts";
import type { Knob } from "../../../hosts/knobs.ts";
import { knobsOf } from "../../../hosts/profiles.ts";
import { FakeMachine } from "./fake-machine.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const nic = "ens1f0np0";
const machines: FakeMachine[] = [];
after(() => {
  for (const { root } of machines) rmSync(root, { recursive: true });
});

function machine(nodes: number, nicNode: string): FakeMachine {
  const lists = Array.from({ length: nodes }, (_, node) => [
    `sys/devices/system/node/node${node}/cpulist`,
    `${node}`,
  ]);
  const made = new FakeMachine({
    ...(Object.fromEntries(lists) as Record<string, string>),
    [`sys/class/net/${nic}/device/numa_node`]: nicNode,
    "cgroup/cgroup.controllers": "cpuset cpu",
  });
  machines.push(made);
  return made;
}

const mems = `cgroup/${benchSlice}/cpuset.mems`;
const testbed = exampleTestbed();
const cpus = { system: "0", irq: "1", load: "2", proxy: "3", service: "4" };
/** Those of the slice, as the profile has them, so that their order is part of the test. */
const all = knobsOf(testbed, { ...exampleHost(testbed), nic, cpus }).filter(({ id }) =>
  id.endsWith(`-${benchSlice}`),
);
const memory: readonly Knob[] = all.filter(({ kind }) => kind === "memory");
const id = `memory-${benchSlice}`;

suite("memory of what is measured", () => {
  test("is that of the NIC's node, next to its CPUs, and all of it goes again", () => {
    const host = machine(2, "1");
    const ends = host.create(all);
    assert.deepEqual(Object.values(ends), ["applied 2-4", "applied nic-node", "applied root"]);
    assert.equal(host.get(mems), "1");
    assert.ok(host.verify(all).includes(`${id} applied nic-node`));
    assert.equal(host.remove(), "");
    assert.equal(host.has(`cgroup/${benchSlice}`), false);
    assert.equal(host.has(`run/system.control/${benchSlice}.d`), false);
    assert.equal(host.calls(`systemctl stop ${benchSlice}`), 1, "only with its last property");
  });

  test("that is there already is left alone", () => {
    const host = machine(2, "0");
    host.set(mems, "0");
    assert.deepEqual(host.create(memory), { [id]: "already nic-node" });
    assert.equal(host.remove(), "");
    assert.equal(host.get(mems), "0");
  });

  test("that the service manager does not give is refused in its words", () => {
    const host = machine(2, "1");
    host.extra = `systemctl() { [ "$1" != set-property ] || { echo 'No such property'; return 1; }; }`;
    assert.deepEqual(host.create(memory), { [id]: "refused none, No such property" });
  });

  test("is restored only while it is as it was set", () => {
    const host = machine(2, "1");
    host.set(mems, "0-1");
    host.create(memory);
    host.set(mems, "0");
    assert.match(
      host.remove(),
      /^left memory-\S+: foreign change, found 0, set was nic-node, before that 0-1/,
    );
    assert.equal(host.get(mems), "0");
  });

  test("is unsupported on a host with one node, or with a NIC that tells none", () => {
    const one = "unsupported, this host has one memory node";
    assert.deepEqual(machine(1, "0").create(memory), { [id]: one });
    const untold = `unsupported, ${nic} tells no memory node: -1`;
    assert.deepEqual(machine(2, "-1").create(memory), { [id]: untold });
  });
});
