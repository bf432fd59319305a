import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { suite, test } from "node:test";
import { parseEthtool } from "../../../hosts/ethtool.ts";
import { parseInterrupts, summariseHardware } from "../../../hosts/hardware.ts";
import { rackFixtures } from "./fake-machine.ts";

const fixture = (name: string) => readFileSync(path.join(rackFixtures, `${name}.txt`), "utf8");

suite("what ethtool prints of a rack NIC is read:", () => {
  test("rings, set and at most", () => {
    const { current, maximum } = parseEthtool(fixture("ethtool-rings"));
    assert.deepEqual([current["RX"], current["TX"]], ["2048", "512"]);
    assert.deepEqual([maximum["RX"], maximum["TX"]], ["8192", "8192"]);
    assert.equal("RX Mini" in current, false, "n/a is left out");
  });

  test("queues", () => {
    const { current, maximum } = parseEthtool(fixture("ethtool-channels"));
    assert.deepEqual([current, maximum], [{ Combined: "48" }, { Combined: "48" }]);
  });

  test("coalescing, also two settings on a line", () => {
    const { current } = parseEthtool(fixture("ethtool-coalescing").replace("TX: on", "TX: off"));
    assert.deepEqual(current, {
      "Adaptive RX": "on",
      "Adaptive TX": "off",
      "rx-usecs": "16",
      "rx-frames": "64",
      "tx-usecs": "24",
      "tx-frames": "96",
      "CQE mode RX": "on",
      "CQE mode TX": "off",
    });
  });

  test("pauses", () => {
    const { current } = parseEthtool(fixture("ethtool-pause"));
    assert.deepEqual(current, { Autonegotiate: "off", RX: "on", TX: "on" });
  });

  test("private flags, whatever their width", () => {
    const { current } = parseEthtool(fixture("ethtool-private"));
    assert.equal(current["rx_cqe_compress"], "on");
    assert.equal(current["rx_no_csum_complete"], "off");
    assert.equal(Object.keys(current).length, 6);
  });

  test("features, also those that cannot be changed", () => {
    const { current } = parseEthtool(fixture("ethtool-offloads"));
    assert.equal(current["tcp-segmentation-offload"], "off");
    assert.equal(current["rx-gro-hw"], "off");
    assert.equal(current["tx-tcp6-segmentation"], "off");
  });

  test("driver, firmware and place on the bus", () => {
    const { current } = parseEthtool(fixture("ethtool-driver"));
    assert.equal(current["driver"], "mlx5_core");
    assert.equal(current["firmware-version"], "16.99.1000 (EXA0000000001)");
    assert.equal(current["bus-info"], "0000:3b:00.0");
  });
});

suite("the hardware of a host", () => {
  const facts = {
    "nic-driver": fixture("ethtool-driver"),
    "nic-channels": fixture("ethtool-channels"),
    "nic-rings": fixture("ethtool-rings"),
    "nic-coalescing": fixture("ethtool-coalescing"),
    "nic-pause": fixture("ethtool-pause"),
    "nic-private": fixture("ethtool-private"),
    "irq-map": "78 0 mlx5_comp0@pci:0000:3b:00.0\n79 2 mlx5_comp1@pci:0000:3b:00.0",
    "cpu-summary": [
      "CPU(s):                  96",
      "Model name:              Example CPU 6248R @ 3.00GHz",
      "Thread(s) per core:      2",
      "Core(s) per socket:      24",
      "Socket(s):               2",
      "NUMA node(s):            2",
    ].join("\n"),
  };

  test("is told on a line each", () => {
    assert.deepEqual(summariseHardware(facts), {
      nic: "driver mlx5_core, firmware-version 16.99.1000 (EXA0000000001), bus-info 0000:3b:00.0",
      queues: "Combined 48",
      rings: "RX 2048, TX 512",
      coalescing: "Adaptive RX on, Adaptive TX on, rx-usecs 16, rx-frames 64",
      pause: "Autonegotiate off, RX on, TX on",
      "private-flags": "rx_cqe_compress on, rx_cqe_moder on, rx_striding_rq on",
      interrupts: "mlx5_comp0@pci:0000:3b:00.0 on 0, mlx5_comp1@pci:0000:3b:00.0 on 2",
      cpu: "Example CPU 6248R @ 3.00GHz, 2 × 24 cores, 2 threads each, 2 nodes",
    });
  });

  test("says what a host does not have", () => {
    const words = summariseHardware({
      "nic-rings": "not available: netlink error: Operation not supported",
      "irq-map": "not available: nothing printed, exit code 0",
    });
    assert.equal(words["rings"], "not available: netlink error: Operation not supported");
    assert.equal(words["interrupts"], "not available: nothing printed, exit code 0");
    assert.equal(words["queues"], "not available: no such fact");
    assert.equal(words["cpu"], "not available: lscpu does not tell");
  });

  test("names only interrupts that are understood", () => {
    const text = "78 0-3,9 a-0\nnot available: x\n79  b\n80 1 c d";
    assert.deepEqual(parseInterrupts(text), [{ irq: 78, cpus: "0-3,9", name: "a-0" }]);
  });
});
