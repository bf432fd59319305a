import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { after, suite, test } from "node:test";
import { parseCpuList } from "../../../contracts/cpu-list.ts";
import { benchSlice, hardwareSchema } from "../../../contracts/testbed.ts";
import { cpuMask, type Knob, type KnobKind, type KnobScope } from "../../../hosts/knobs.ts";
import { knobsOf } from "../../../hosts/profiles.ts";
import { FakeMachine } from "./fake-machine.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const machines: FakeMachine[] = [];
after(() => {
  for (const { root } of machines) rmSync(root, { recursive: true });
});

function machine(files: Readonly<Record<string, string>> = {}): FakeMachine {
  const made = new FakeMachine(files);
  machines.push(made);
  return made;
}

const knob = (
  kind: KnobKind,
  target: string,
  want: string,
  scope: KnobScope = "device",
  id = target.replaceAll(/[^a-z0-9]+/gi, "-"),
): Knob => ({ id, scope, kind, target, want, why: "a test" });

const nic = "ens1f0np0";

suite("knobs of a NIC", () => {
  const cases: readonly (readonly [KnobKind, string, string, string, string])[] = [
    ["ring", "rx", "1024", "rings", "2048"],
    ["ring", "tx", "1024", "rings", "512"],
    ["channels", "combined", "4", "channels", "48"],
    ["coalesce", "adaptive-rx", "off", "coalescing", "on"],
    ["coalesce", "adaptive-tx", "off", "coalescing", "on"],
    ["coalesce", "rx-usecs", "8", "coalescing", "16"],
    ["coalesce", "rx-frames", "32", "coalescing", "64"],
    ["pause", "autoneg", "on", "pause", "off"],
    ["pause", "rx", "off", "pause", "on"],
    ["pause", "tx", "off", "pause", "on"],
    ["private", "rx_cqe_compress", "off", "private", "on"],
    ["offload", "tcp-segmentation-offload", "on", "offloads", "off"],
  ];
  for (const [kind, name, want, file, before] of cases) {
    test(`${kind} ${name} is set, read back and restored to the letter`, () => {
      const host = machine();
      const text = host.get(`ethtool-${file}.txt`);
      const one = [knob(kind, `${nic} ${name}`, want, "device", "k")];
      assert.deepEqual(host.create(one), { k: `applied ${want}` });
      assert.notEqual(host.get(`ethtool-${file}.txt`), text);
      assert.deepEqual(host.verify(one), [`k applied ${want}`]);
      assert.match(host.get("journal/tuning.tsv"), new RegExp(`\t${before}\t${want}\tapplied`));
      assert.equal(host.remove(), "");
      assert.equal(host.get(`ethtool-${file}.txt`), text);
    });
  }

  test("that the driver does not have are unsupported, in its own words", () => {
    const host = machine();
    rmSync(`${host.root}/ethtool-rings.txt`);
    const knobs = [
      knob("ring", `${nic} rx`, "1024", "device", "ring"),
      knob("private", `${nic} no_such_flag`, "on", "device", "flag"),
      knob("coalesce", `${nic} rx-usecs-irq`, "1", "device", "usecs"),
      knob("irq", `${nic} 0`, "2", "device", "irq"),
    ];
    assert.deepEqual(host.create(knobs), {
      ring: "unsupported, netlink error: Operation not supported",
      flag: `unsupported, ${nic} has no no_such_flag`,
      usecs: `unsupported, ${nic} has no rx-usecs-irq`,
      irq: `unsupported, ${nic} has no interrupts of its own`,
    });
  });

  test("ask ethtool once for all knobs of a kind, until something is changed", () => {
    const host = machine();
    const same = [
      knob("ring", `${nic} rx`, "2048"),
      knob("ring", `${nic} tx`, "512"),
      knob("pause", `${nic} rx`, "on", "device", "pause-rx"),
      knob("pause", `${nic} tx`, "on", "device", "pause-tx"),
    ];
    host.create(same);
    assert.equal(host.calls("ethtool"), 2);
  });

  test("are read anew after a change that also changes others", () => {
    const host = machine();
    host.extra = `write_ring() { ethtool -G ${nic} rx "$2"; ethtool -G ${nic} tx "$2"; }`;
    const knobs = [
      knob("ring", `${nic} rx`, "1024", "device", "rx"),
      knob("ring", `${nic} tx`, "1024", "device", "tx"),
    ];
    assert.deepEqual(host.create(knobs), { rx: "applied 1024", tx: "applied 1024" });
    assert.equal(host.calls("ethtool -G"), 2, "the second one is as wanted by then");
  });
});

suite("interrupts of a NIC", () => {
  const withInterrupts = (own: readonly number[]) => {
    const host = machine();
    host.set("proc/interrupts", host.get("interrupts.txt"));
    for (const irq of own) host.set(`sys/class/net/${nic}/device/msi_irqs/${irq}`, "msix");
    for (const irq of [77, 78, 79, 90, 91, 130, 131]) {
      host.set(`proc/irq/${irq}/smp_affinity_list`, "0-95");
    }
    return host;
  };

  test("are found by queue among the NIC's own, whatever the driver calls them", () => {
    const mellanox = withInterrupts([77, 78, 79]);
    const knobs = [knob("irq", `${nic} 0`, "4"), knob("irq", `${nic} 1`, "6")];
    assert.deepEqual(Object.values(mellanox.create(knobs)), ["applied 4", "applied 6"]);
    const seen = [77, 78, 79, 91].map((irq) => mellanox.get(`proc/irq/${irq}/smp_affinity_list`));
    assert.deepEqual(seen, ["0-95", "4", "6", "0-95"]);
    assert.equal(mellanox.remove(), "");
    assert.equal(mellanox.get("proc/irq/78/smp_affinity_list"), "0-95");
    const intel = withInterrupts([130, 131]);
    intel.create(knobs);
    assert.equal(intel.get("proc/irq/131/smp_affinity_list"), "6");
  });

  test("that appear only once there are more queues are journalled before they are moved", () => {
    const host = withInterrupts([77, 78]);
    host.extra = `write_channels() { ethtool -L ${nic} combined "$2"
        echo msix >$sys/class/net/${nic}/device/msi_irqs/79; }
      write_irq() { ! grep -q 'irq-1.*0-95.*6' "$journal" ||
        write_file "$proc/irq/$(irq_of ${nic} 1)/smp_affinity_list" "$2"; }`;
    const knobs = [
      knob("channels", `${nic} combined`, "2", "device", "queues"),
      knob("irq", `${nic} 1`, "6", "device", "irq-1"),
    ];
    const few = host.get("ethtool-channels.txt");
    for (const round of ["at first", "after a reboot"]) {
      rmSync(path.join(host.root, `sys/class/net/${nic}/device/msi_irqs/79`), { force: true });
      host.set("ethtool-channels.txt", few);
      host.set("proc/irq/79/smp_affinity_list", "0-95");
      assert.deepEqual(host.create(knobs), { queues: "applied 2", "irq-1": "applied 6" }, round);
    }
    assert.equal(host.get("journal/tuning.tsv").match(/irq-1\t/g)?.length, 1);
    host.remove();
    assert.equal(host.get("proc/irq/79/smp_affinity_list"), "0-95");
    assert.match(host.get("ethtool-channels.txt"), /Combined:\t48$/);
  });

  test("that the kernel manages itself are refused", () => {
    const host = withInterrupts([78]);
    host.extra = 'write_irq() { echo "Input/output error"; return 1; }';
    assert.deepEqual(Object.values(host.create([knob("irq", `${nic} 0`, "4")])), [
      "refused 0-95, Input/output error",
    ]);
  });
});

suite("values of many CPUs", () => {
  const glob = "ROOT/sys/cpu/cpu*/governor";

  test("that differ are journalled one by one and restored one by one", () => {
    const before = { 0: "powersave", 1: "performance", 10: "schedutil" };
    const files = Object.entries(before).map(([cpu, value]) => [
      `sys/cpu/cpu${cpu}/governor`,
      value,
    ]);
    const host = machine(Object.fromEntries(files) as Record<string, string>);
    const knobs = [knob("each", glob, "performance", "machine", "governor")];
    assert.deepEqual(host.create(knobs), { governor: "applied performance" });
    assert.equal(host.get("sys/cpu/cpu10/governor"), "performance");
    host.set("sys/cpu/cpu1/governor", "powersave");
    assert.deepEqual(host.verify(knobs), [
      "governor drifted 0=performance,1=powersave,10=performance",
    ]);
    host.set("sys/cpu/cpu1/governor", "performance");
    assert.equal(host.remove(), "");
    for (const [cpu, value] of Object.entries(before)) {
      assert.equal(host.get(`sys/cpu/cpu${cpu}/governor`), value);
    }
  });

  test("are unsupported where no CPU has them", () => {
    const host = machine();
    const knobs = [knob("each", glob, "performance", "machine", "governor")];
    assert.deepEqual(host.create(knobs), {
      governor: `unsupported, absent: ${host.root}/sys/cpu/cpu*/governor`,
    });
  });
});

test("values of many CPUs that are refused half-way are as before", () => {
  const files = { "sys/cpu/cpu0/governor": "powersave", "sys/cpu/cpu1/governor": "schedutil" };
  const host = machine(files);
  host.extra = `write_file() {
    [ "$2" != performance ] || [[ $1 != */cpu1/* ]] || { echo 'x: Invalid argument'; return 1; }
    echo "$2" >"$1"; }`;
  const knobs = [knob("each", "ROOT/sys/cpu/cpu*/governor", "performance", "machine", "governor")];
  assert.deepEqual(host.create(knobs), {
    governor: "refused 0=powersave,1=schedutil, Invalid argument",
  });
  assert.deepEqual(
    [host.get("sys/cpu/cpu0/governor"), host.get("sys/cpu/cpu1/governor")],
    ["powersave", "schedutil"],
  );
});

suite("CPU masks", () => {
  test("are those of the kernel, also beyond 64 CPUs", () => {
    assert.equal(cpuMask(""), "0");
    assert.equal(cpuMask("0-3,8"), "10f");
    assert.equal(cpuMask("1,95"), "800000000000000000000002");
  });

  test("are compared without commas, and written with them", () => {
    const file = "sys/workqueue/cpumask";
    const host = machine({ [file]: "ffffffff,ffffffff,ffffffff" });
    const knobs = [knob("mask", `ROOT/${file}`, cpuMask("1,95"), "machine", "mask")];
    assert.deepEqual(host.create(knobs), { mask: `applied ${cpuMask("1,95")}` });
    assert.equal(host.get(file), "80000000,00000000,00000002");
    host.set(file, "00000000,00000000,0000000f");
    assert.match(host.remove(), /^left mask: foreign change, found f, set was 8/);
    host.create(knobs);
    assert.equal(host.remove(), "");
    assert.equal(host.get(file), "f");
  });
});

suite("knobs of the machine", () => {
  const smt = knob("smt", "ROOT/sys/smt/control", "off", "machine", "smt");
  for (const [state, end] of [
    ["on", "applied off"],
    ["off", "already off"],
    ["forceoff", "already off"],
    ["notsupported", "unsupported, second threads cannot be turned: notsupported"],
  ] as const) {
    test(`second threads that are ${state} end ${end}`, () => {
      const host = machine({ "sys/smt/control": state });
      assert.deepEqual(host.create([smt]), { smt: end });
      host.remove();
      assert.equal(host.get("sys/smt/control"), state);
    });
  }

  test("wake-up latency is held by a unit, which is gone after removal", () => {
    const host = machine({ "run/system/other.service": "x" });
    const bytes = () => readFileSync(path.join(host.root, "dev/latency")).toString("hex");
    host.set("dev/latency", "");
    host.extra = `[ -s "$root/dev/latency" ] || printf '\\0\\224\\065\\167' >"$root/dev/latency"`;
    const knobs = [knob("latency", "ROOT/dev/latency 1", "1", "machine", "latency")];
    assert.deepEqual(host.create(knobs), { latency: "applied 1" });
    assert.equal(bytes(), "01000000");
    const unit = host.get("run/system/ztbench.latency.service");
    assert.match(
      unit,
      /^ExecStart=\/bin\/bash -c 'exec 3>\S+ && printf 0x%%08x 1 >&3 && exec sleep/m,
    );
    assert.deepEqual(host.verify(knobs), ["latency applied 1"]);
    assert.equal(host.remove(), "");
    assert.equal(host.has("run/system/ztbench.latency.service"), false);
    assert.equal(host.has("run/system/other.service"), true);
    assert.equal(bytes(), "00943577");
  });

  test("a unit that does not get what it asks for is stopped at once, and gone", () => {
    const host = machine({ "dev/latency": "\0\0\0" });
    host.extra = `od() { echo ' 0'; }; sleep() { :; }`;
    const knobs = [knob("latency", "ROOT/dev/latency 1", "1", "machine", "latency")];
    mkdirSync(path.join(host.root, "run/system"), { recursive: true });
    assert.deepEqual(host.create(knobs), {
      latency: "refused 0, set to 1, the kernel kept 0",
    });
    assert.equal(host.has("run/system/ztbench.latency.service"), false);
    assert.equal(host.calls("systemctl stop ztbench.latency.service"), 1);
  });

  test("swap areas come back by name", () => {
    const head = "Filename\tType\tSize\tUsed\tPriority";
    const host = machine({
      "proc/swaps": `${head}\n/dev/sda3\tpartition\t1\t0\t-2\n/swap\tfile\t1\t0\t-3`,
    });
    host.extra = `swapoff() { echo '${head}' >"$proc/swaps"; }
      swapon() { echo "$1 x" >>"$proc/swaps"; }`;
    const knobs = [knob("swap", "ROOT/proc/swaps", "none", "machine", "swap")];
    assert.deepEqual(host.create(knobs), { swap: "applied none" });
    assert.equal(host.remove(), "");
    assert.match(host.get("proc/swaps"), /\n\/dev\/sda3 x\n\/swap x$/);
  });

  test("nothing of the machine is turned in a container", () => {
    const host = machine({ "sys/smt/control": "on" });
    host.container = true;
    const reason = "reaches the whole machine, and this host is a container in it";
    assert.deepEqual(host.create([smt]), { smt: `refused on, ${reason}` });
  });
});

suite("knobs of the service manager", () => {
  const confine = knob("cpuset", "system.slice AllowedCPUs", "1,3", "manager", "system");
  const own = knob("cpuset", `${benchSlice} AllowedCPUs`, "8-10", "manager", "own");
  const partition = knob("partition", benchSlice, "root", "manager", "partition");

  test("give slices their CPUs, and leave nothing after removal", () => {
    const host = machine({ "cgroup/cgroup.controllers": "cpuset cpu io" });
    assert.deepEqual(host.create([confine, own, partition]), {
      system: "applied 1,3",
      own: "applied 8-10",
      partition: "applied root",
    });
    assert.equal(host.get("cgroup/system.slice/cpuset.cpus"), "1,3");
    assert.equal(host.remove(), "");
    assert.equal(host.get("cgroup/system.slice/cpuset.cpus"), "");
    assert.equal(host.has(`cgroup/${benchSlice}`), false);
    assert.equal(host.has("run/system.control/system.slice.d"), false);
  });

  test("say why the kernel does not take a partition", () => {
    const host = machine({ "cgroup/cgroup.controllers": "cpuset" });
    const invalid = "root invalid (Cpu list in cpuset.cpus not exclusive)";
    host.extra = `write_partition() {
      [ "$2" = member ] || set -- "$1" '${invalid}'
      echo "$2" >"$cgroup/$1/cpuset.cpus.partition"; }`;
    assert.equal(
      host.create([own, partition])["partition"],
      `refused member, set to root, the kernel kept ${invalid}`,
    );
  });

  test("are unsupported where control groups are not unified, or have no CPU sets", () => {
    const version1 = machine();
    assert.match(version1.create([confine])["system"] ?? "", /^unsupported, absent: .*not unified/);
    const bare = machine({ "cgroup/cgroup.controllers": "cpu io" });
    const words = "unsupported, control groups have no cpuset here";
    assert.deepEqual(bare.create([confine, partition]), { system: words, partition: words });
  });

  test("mask timers that are there, and start again those that ran", () => {
    const host = machine({ "timers/a.timer": "active", "timers/b.timer": "inactive" });
    const timers = [knob("timers", "a.timer b.timer c.timer", "none", "manager", "timers")];
    assert.deepEqual(host.create(timers), { timers: "applied none" });
    assert.deepEqual([host.has("masked/a.timer"), host.has("masked/c.timer")], [true, false]);
    assert.deepEqual(host.create(timers), { timers: "applied none" });
    assert.equal(host.remove(), "");
    assert.equal(host.has("masked/a.timer"), false);
    assert.deepEqual(
      [host.get("timers/a.timer"), host.get("timers/b.timer")],
      ["active", "inactive"],
    );
    assert.deepEqual(machine().create(timers), { timers: "already none" });
  });
});

suite("the profile `repro`", () => {
  const cpus = { system: "1,3", irq: "0,2", load: "8", proxy: "10", service: "12,14" };
  const at = (changes: Parameters<typeof exampleTestbed>[0] = {}) => {
    const testbed = exampleTestbed(changes);
    return knobsOf(testbed, { ...exampleHost(testbed), nic, cpus });
  };
  const wants = (knobs: readonly Knob[]) =>
    Object.fromEntries(knobs.map(({ id, want }) => [id, want]));

  test("gives each CPU for interrupts one queue, and each queue one CPU", () => {
    const want = wants(at());
    assert.equal(want["queues"], "2");
    assert.deepEqual([want["irq-0"], want["irq-1"], want["irq-2"]], ["0", "2", undefined]);
    assert.deepEqual([want["xps-0"], want["xps-1"]], ["1", "4"]);
  });

  test("gives measured CPUs to the slice of what is measured, and to nothing else", () => {
    const want = wants(at());
    const measured = parseCpuList(want[`cpus-${benchSlice}`] ?? "");
    assert.deepEqual(measured, [8, 10, 12, 14]);
    for (const unit of ["system.slice", "user.slice", "init.scope"]) {
      assert.equal(want[`cpus-${unit}`], "1,3");
    }
    assert.equal(want["workqueues"], "a");
  });

  test("leaves CPUs to kubelet in a cluster", () => {
    const testbed = { ...exampleTestbed(), clusterKind: "k3s" } as const;
    const ids = knobsOf(testbed, { ...exampleHost(), nic, cpus }).map(({ id }) => id);
    assert.ok(ids.includes("cpus-system.slice"));
    assert.ok(!ids.includes(`partition-${benchSlice}`));
  });

  test("turns queues before their interrupts, and second threads before all else", () => {
    const ids = at().map(({ id }) => id);
    assert.equal(ids[0], "smt");
    assert.ok(ids.indexOf("queues") < ids.indexOf("irq-0"));
    assert.ok(ids.indexOf(`cpus-${benchSlice}`) < ids.indexOf(`partition-${benchSlice}`));
    assert.ok(ids.indexOf("energy-preference") < ids.indexOf("governor"));
    assert.equal(new Set(ids).size, ids.length);
  });

  test("leaves second threads there where the testbed says so", () => {
    const hardware = hardwareSchema.parse({ smt: "on" });
    assert.ok(!at({ hardware }).some(({ id }) => id === "smt"));
  });
});
