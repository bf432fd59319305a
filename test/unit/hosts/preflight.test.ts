import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import {
  hardwareSchema,
  type Host,
  type Testbed,
  testbedSchema,
} from "../../../contracts/testbed.ts";
import { checksOf } from "../../../hosts/checks.ts";
import {
  parsePreflight,
  preflightPrelude,
  type PreflightRow,
  summarisePreflight,
} from "../../../hosts/preflight.ts";
import { renderProgram, shellPart } from "../../../hosts/shell.ts";
import { runBash } from "../../support/bash.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-preflight-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

const nic = "ens1f0np0";
const cpus = { system: "1,3", irq: "0,2", load: "4", proxy: "6", service: "8,10" };
const testbed: Testbed = {
  ...exampleTestbed({ hardware: hardwareSchema.parse({}) }),
  clusterKind: "k3s",
};
const host: Host = { ...exampleHost(testbed), nic, cpus };

type Machine = Record<string, string | undefined>;

/** Two nodes with twelve CPUs in all, the even ones on node 0; second threads are 12 and above. */
function fit(): Machine {
  const net = `sys/class/net/${nic}`;
  const siblings = Array.from({ length: 12 }, (_, cpu) => [
    `sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`,
    `${cpu},${cpu + 12}`,
  ]);
  return {
    ...(Object.fromEntries(siblings) as Machine),
    [`${net}/operstate`]: "up",
    [`${net}/speed`]: "25000",
    [`${net}/duplex`]: "full",
    [`${net}/mtu`]: "1500",
    [`${net}/device/uevent`]: "DRIVER=mlx5_core",
    [`${net}/device/numa_node`]: "0",
    [`${net}/device/current_link_speed`]: "8.0 GT/s PCIe",
    [`${net}/device/current_link_width`]: "8",
    "sys/devices/system/node/node0/cpulist": "0,2,4,6,8,10,12,14,16,18,20,22",
    "sys/devices/system/node/node1/cpulist": "1,3,5,7,9,11,13,15,17,19,21,23",
    "proc/sys/net/netfilter/nf_conntrack_max": "262144",
    "proc/sys/net/netfilter/nf_conntrack_count": "12",
  };
}

/** Stand-ins for the commands that look at a machine; each may be replaced. */
const commands = `
in_container() { false; }
timedatectl() { echo yes; }
timeout() { shift; "$@"; }
modprobe() { true; }
zcat() { false; }
df() { printf 'Avail\\n 51200MiB\\n'; }
systemctl() { shift; for name in "$@"; do echo inactive; done; return 3; }
ping() { true; }`;

type Run = { readonly exitCode: number; readonly stderr: string; readonly rows: PreflightRow[] };

function preflight(
  changes: Machine = {},
  extra = "",
  at: Testbed = testbed,
  on: Host = host,
  phase = "host",
): Run {
  const root = mkdtempSync(path.join(scratch, "host-"));
  for (const [name, value] of Object.entries({ ...fit(), ...changes })) {
    if (value === undefined) continue;
    const file = path.join(root, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `${value}\n`);
  }
  const parts = [
    `host=${on.name}`,
    "tab=$'\\t'",
    shellPart("knobs"),
    ...preflightPrelude(at, on),
    `sys=${root}/sys proc=${root}/proc modules=${root}/modules`,
    commands,
    extra,
  ];
  const { exitCode, stdout, stderr } = runBash(renderProgram(parts, `preflight ${phase}`));
  return { exitCode, stderr, rows: parsePreflight(stdout) };
}

const refusedOf = ({ rows }: Run) =>
  rows.filter(({ verdict }) => verdict === "refused").map(({ id }) => id);

test("a host of the rack that is as the testbed says passes, every check told", () => {
  const done = preflight();
  assert.equal(done.exitCode, 0, done.stderr);
  assert.deepEqual(refusedOf(done), []);
  const path = preflight({}, "", testbed, host, "path");
  assert.deepEqual(
    [...done.rows, ...path.rows].map(({ id }) => id),
    checksOf(testbed, host).map(({ id }) => id),
  );
  assert.equal(done.stderr, "");
});

suite("a host is refused by exactly one check", () => {
  const net = `sys/class/net/${nic}`;
  const gates: readonly (readonly [string, string, Machine, string, RegExp])[] = [
    [
      "for a link that is down",
      "link",
      { [`${net}/operstate`]: "down" },
      "",
      /link down, wanted up/,
    ],
    [
      "for a slower link",
      "link-speed",
      { [`${net}/speed`]: "10000" },
      "",
      /link-speed 10000 full, wanted 25000 full\n {2}next: .*ethtool ens1f0np0/,
    ],
    ["for half duplex", "link-speed", { [`${net}/duplex`]: "half" }, "", /25000 half/],
    [
      "for another MTU",
      "mtu",
      { [`${net}/mtu`]: "9000" },
      "",
      /mtu 9000, wanted 1500\n {2}next: .*ip link set ens1f0np0 mtu 1500/,
    ],
    [
      "for an older PCIe generation",
      "pcie-speed",
      { [`${net}/device/current_link_speed`]: "5.0 GT/s PCIe" },
      "",
      /5\.0 GT\/s PCIe, wanted 8 GT\/s/,
    ],
    [
      "for a PCIe generation that nobody knows",
      "pcie-speed",
      { [`${net}/device/current_link_speed`]: "Unknown" },
      "",
      /pcie-speed Unknown, wanted 8 GT\/s/,
    ],
    [
      "for too few PCIe lanes",
      "pcie-lanes",
      { [`${net}/device/current_link_width`]: "4" },
      "",
      /pcie-lanes 4, wanted 8/,
    ],
    [
      "for CPUs on the node without the NIC",
      "cpus-off-nic-node",
      { [`${net}/device/numa_node`]: "1" },
      "",
      /cpus-off-nic-node irq 0, irq 2, load 4, .*\n {2}next: move these cpus of client/,
    ],
    [
      "for second threads among the CPUs",
      "second-threads",
      { "sys/devices/system/cpu/cpu8/topology/thread_siblings_list": "4,8" },
      "",
      /second-threads 8, wanted none/,
    ],
    [
      "for a clock that nothing keeps",
      "clock-synchronised",
      {},
      "timedatectl() { echo no; }",
      /clock-synchronised no, wanted yes\n {2}next: on client: apt-get install --yes chrony/,
    ],
    [
      "for a kernel without a module that pods need",
      "missing-modules",
      {},
      'modprobe() { [ "${@: -1}" != br_netfilter ] && [ "${@: -1}" != xt_set ]; }',
      /missing-modules br_netfilter,xt_set, wanted none/,
    ],
    [
      "for a full table of connections",
      "conntrack-free",
      { "proc/sys/net/netfilter/nf_conntrack_count": "262100" },
      "",
      /conntrack-free 44, wanted 65536/,
    ],
    [
      "for a full disk",
      "disk-free-mib",
      {},
      "df() { printf 'Avail\\n 900MiB\\n'; }",
      /disk-free-mib 900, wanted 20480/,
    ],
    [
      "for somebody else who tunes it",
      "foreign-owners",
      {},
      `systemctl() { shift; for name in "$@"; do
         case $name in irqbalance | tuned) echo active ;; *) echo inactive ;; esac; done; }`,
      /foreign-owners tuned,irqbalance, wanted none\n {2}next: on client: systemctl disable --now/,
    ],
  ];
  for (const [name, id, changes, extra, message] of gates) {
    test(name, () => {
      const done = preflight(changes, extra);
      assert.equal(done.exitCode, 1);
      assert.deepEqual(refusedOf(done), [id]);
      assert.match(done.stderr, /^host client: /);
      assert.match(done.stderr, message);
      assert.match(
        done.stderr,
        /host client, wanted and seen:\n {2}nic +ens1f0np0 +ens1f0np0 +ok\n/,
      );
    });
  }

  test("for CPU sets that are not stated", () => {
    const bare = { ...host, cpus: { ...cpus, system: "" } };
    assert.deepEqual(refusedOf(preflight({}, "", testbed, bare)), ["cpu-sets-unset"]);
  });

  test("for a peer beyond a smaller MTU", () => {
    const extra = `ping() {
      [[ " $* " == *' -M do '* && " $* " == *' -s 1472 '* && " $* " == *' -I 198.18.0.10 '* ]] ||
        return 0
      [[ " $* " != *' 198.18.0.30 '* ]]; }`;
    const done = preflight({}, extra, testbed, host, "path");
    assert.deepEqual(refusedOf(done), ["peers-beyond-mtu"]);
    assert.match(done.stderr, /peers-beyond-mtu server \(198\.18\.0\.30\), wanted none/);
  });

  test("for a NIC that is not there, which is named with those that are", () => {
    const done = preflight({}, "", testbed, { ...host, nic: "nope0" });
    assert.equal(done.exitCode, 1);
    assert.match(
      done.stderr,
      /^host client: nic nope0 is not there \(found ens1f0np0\), wanted nope0\n {2}next: correct nic/,
    );
  });
});

suite("modules of the kernel", () => {
  const without = "modprobe() { return 1; }";

  test("count whether they are loaded, built in by the list or by the configuration", () => {
    const symbols = checksOf(testbed, host)
      .find(({ id }) => id === "missing-modules")
      ?.argument.split(" ")
      .map((word) => word.split(":") as [string, string]);
    assert.ok(symbols !== undefined && symbols.length > 10);
    const loaded = Object.fromEntries(symbols.map(([name]) => [`sys/module/${name}/refcnt`, "1"]));
    assert.deepEqual(refusedOf(preflight(loaded, without)), []);
    const built = symbols.map(([name]) => `kernel/net/${name}.ko`).join("\n");
    const release = "uname() { echo 6.1.0; }";
    const listed = { "modules/6.1.0/modules.builtin": built };
    assert.deepEqual(refusedOf(preflight(listed, `${without}\n${release}`)), []);
    const config = symbols.map(([, symbol]) => `CONFIG_${symbol}=y`).join("\\n");
    const configured = `zcat() { printf '${config}\\n'; }`;
    assert.deepEqual(refusedOf(preflight({}, `${without}\n${configured}`)), []);
    assert.deepEqual(refusedOf(preflight({}, without)), ["missing-modules"]);
  });

  test("are asked for in a cluster only", () => {
    const ids = checksOf({ ...testbed, clusterKind: "none" }, host).map(({ id }) => id);
    assert.ok(!ids.includes("missing-modules"));
  });
});

suite("a lab", () => {
  const lab: Testbed = { ...exampleTestbed({ class: "lab" }), clusterKind: "none" };
  const bare = { ...host, cpus: { system: "", irq: "", load: "0", proxy: "1", service: "1" } };
  const noHardware: Machine = Object.fromEntries(
    Object.keys(fit())
      .filter((name) => name.includes("/device/"))
      .map((name) => [name, undefined]),
  );
  const contained = "in_container() { true; }";

  test("passes, and says of hardware that it is not available here", () => {
    const done = preflight(noHardware, contained, lab, bare);
    assert.equal(done.exitCode, 0, done.stderr);
    const words = summarisePreflight(done.rows);
    assert.equal(words["link-speed"], `not available here: ${nic} is no hardware`);
    for (const id of ["pcie-speed", "pcie-lanes", "cpus-off-nic-node", "clock-synchronised"]) {
      assert.match(words[id] ?? "", /^not available here: /, id);
    }
    assert.equal(words["mtu"], "ok: 1500, wanted 1500");
  });

  test("is refused for what does not take hardware", () => {
    const done = preflight(
      { ...noHardware, [`sys/class/net/${nic}/mtu`]: "1400" },
      contained,
      lab,
      bare,
    );
    assert.deepEqual(refusedOf(done), ["mtu"]);
  });

  test("would be refused as metal", () => {
    const done = preflight(noHardware, contained);
    assert.deepEqual(refusedOf(done), [
      "link-speed",
      "pcie-speed",
      "pcie-lanes",
      "cpus-off-nic-node",
      "clock-synchronised",
    ]);
    assert.match(
      done.stderr,
      /link-speed not available: ens1f0np0 is no hardware, wanted 25000 full/,
    );
  });
});

test("a table that is not understood is refused", () => {
  for (const text of ["a\tb\tc\n", "a\tb\tc\tfine\n", "a\tb\tc\tok\td\n"]) {
    assert.throws(() => parsePreflight(text), Failure, JSON.stringify(text));
  }
});

suite("a testbed document", () => {
  const document = { ...exampleTestbed(), hardware: { mtu: 1500 } };
  const cluster = { podNetwork: "198.19.0.0/17", serviceNetwork: "198.19.128.0/20" };
  const problems = (changes: Record<string, unknown>) =>
    (testbedSchema.safeParse({ ...document, ...changes }).error?.issues ?? []).map(
      ({ path, message }) => `${path.join(".")} ${message}`,
    );

  test("that states no hardware is held to what the articles had", () => {
    const speed = checksOf(exampleTestbed(), host).find(({ id }) => id === "link-speed");
    assert.equal(speed?.want, "25000 full");
  });

  test("of a lab must not state hardware", () => {
    assert.deepEqual(problems({ class: "lab" }), [
      "hardware must be absent with class lab, which has no hardware of its own",
    ]);
  });

  test("must not give pods larger packets than the link carries", () => {
    const of = (mtu: number) =>
      problems({ clusterKind: "k3s", cluster: { ...cluster, mtu } }).filter((problem) =>
        problem.includes("hardware.mtu"),
      );
    assert.deepEqual(of(1501), ["cluster.mtu must be at most hardware.mtu 1500"]);
    assert.deepEqual(of(1500), []);
  });
});
