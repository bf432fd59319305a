/** Everything that gates judge, of a run without fault; what hosts say is made as raw text. */
import { none, value } from "../../analysis/cell.ts";
import type { GateInput } from "../../analysis/gates/input.ts";
import { type HostEvidence, hostEvidenceOf } from "../../analysis/host-evidence.ts";
import type { RunLatency, SeriesSummary } from "../../analysis/latency.ts";
import type { ProxyFacts } from "../../analysis/proxy-facts.ts";
import type { RequestShape } from "../../analysis/request-shape.ts";
import type { RunResources, UnitUse } from "../../analysis/resources.ts";
import { parseSamples } from "../../analysis/samples.ts";
import type { LegFacts } from "../../analysis/wire.ts";
import type { RunRecord } from "../../contracts/record.ts";
import { planOf, recordOf, seeded, startNs } from "./bundle.ts";

const seconds = 120;
const rateQps = 100;
const requests = seconds * rateQps;

export function series(p99Ns: number, count = requests): SeriesSummary {
  const cell = value(p99Ns, "ns");
  const quantiles = { p50: cell, p95: cell, p99: cell, "p99.9": none("too few requests") };
  return { count, minNs: cell, maxNs: cell, meanNs: cell, quantiles };
}

export const echo: UnitUse = {
  unit: "ztbench-echo.service",
  host: "server",
  kind: "service",
  dataPlane: true,
  cpuPerRequest: value(100, "us"),
  cores: value(0.4, "cores"),
  memory: value(2e7, "bytes"),
  runQueueWait: value(0.01, "share"),
  restarts: value(0, "count"),
  openFiles: value(40, "count"),
  memoryGrowth: value(0.001, "share"),
  memoryKills: value(0, "count"),
  throttled: value(0, "count"),
};

/** What a host counted; each is a number that a fault changes. */
export type HostCounters = {
  /** Ticks of a second, by CPU: time of tasks and time stolen. */
  readonly cpus: Readonly<Record<number, { readonly task: number; readonly steal?: number }>>;
  readonly softnetDropped: number;
  readonly softnetSqueezed: number;
  readonly retransmits: number;
  readonly listenDrops: number;
  readonly tcpTimeouts: number;
  readonly socketsInUse: number;
  readonly conntrack: number;
  readonly samplerUs: number;
  readonly kilohertz: number;
  /** `UNIT ALLOWED` of threads. */
  readonly threads: readonly string[];
  /** Texts at the end that differ from those before. */
  readonly after: Readonly<Record<string, string>>;
};

const calm: HostCounters = {
  cpus: { 0: { task: 20 }, 1: { task: 40 } },
  softnetDropped: 0,
  softnetSqueezed: 0,
  retransmits: 0,
  listenDrops: 0,
  tcpTimeouts: 0,
  socketsInUse: 60,
  conntrack: 70,
  samplerUs: 60_000,
  kilohertz: 3_000_000,
  threads: [],
  after: {},
};

const edges: Readonly<Record<string, string>> = {
  "file /proc/sys/kernel/random/boot_id": "0a0a0a0a",
  "file /proc/sys/kernel/osrelease": "6.1.0",
  "file /sys/devices/system/cpu/cpu0/microcode/version": "0x5003",
  "file /sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
  "file /proc/sys/net/ipv4/ip_local_port_range": "10240\t65535",
  "file /proc/sys/net/netfilter/nf_conntrack_max": "1048576",
  "glob /sys/devices/system/cpu/cpu*/cpufreq/base_frequency": [0, 1]
    .map((cpu) => `/sys/devices/system/cpu/cpu${cpu}/cpufreq/base_frequency 3000000`)
    .join("\n"),
  "glob /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count":
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count 4",
  "glob /sys/class/thermal/thermal_zone*/temp": "/sys/class/thermal/thermal_zone0/temp 51000",
  "glob /sys/class/net/*/carrier_changes": "/sys/class/net/ens1/carrier_changes 2",
  "command services": "cron.service loaded active running x\nssh.service loaded active running x",
  "command processes": "systemd\nsshd\nztecho",
  "command kernel-log": "[1.0] ACPI: nothing to see",
  "command nic": "NIC statistics:\n     rx_packets: 10\n     rx_out_of_buffer: 7",
  "command chrony": "A,B,2,1790000000.1,0.000020,0.00001,0.00001,1,2,3,4,5,6,Normal",
};

/** Evidence of a host that counted so, by way of the text that its sampler would write. */
export function hostOf(change: Partial<HostCounters> = {}): HostEvidence {
  const counters = { ...calm, ...change };
  const last = { ...edges, ...counters.after };
  const blocks: string[] = [];
  const block = (second: number, source: string, content: string) =>
    blocks.push(`### ${startNs + BigInt(Math.round(second * 1e9))} ${source}\n${content}\n`);
  const edge = (second: number, texts: Readonly<Record<string, string>>) => {
    for (const [source, text] of Object.entries(texts)) {
      if (!source.startsWith("command ")) block(second, source, text);
    }
    counters.threads.forEach((thread, index) => {
      const [unit = "", allowed = ""] = thread.split(" ");
      block(second, `unit ${unit} pid ${100 + index} threads`, `${100 + index} 1 ${allowed} main`);
    });
  };
  edge(-1, edges);
  for (let second = 0; second <= seconds; second += 1) sampleAt(second, counters, block);
  edge(seconds + 1, last);
  block(seconds + 1, "sampler cost", `samples 122\ncpu_usec ${counters.samplerUs}\nwall_usec 9`);
  const commands = (texts: Readonly<Record<string, string>>) =>
    parse(
      Object.entries(texts)
        .filter(([source]) => source.startsWith("command "))
        .map(([source, text]) => `### ${startNs} ${source}\n${text}\n`),
    );
  return hostEvidenceOf(parse(blocks), seconds * 1e9, commands(edges), commands(last));
}

const parse = (blocks: readonly string[]) =>
  parseSamples(blocks.join(""), "samples/host.txt", String(startNs));

function sampleAt(
  second: number,
  counters: HostCounters,
  block: (second: number, source: string, content: string) => void,
): void {
  const share = second / seconds;
  const grown = (total: number) => Math.round(1000 + total * share);
  const cpus = Object.entries(counters.cpus).map(([cpu, { task, steal = 0 }]) => {
    const idle = (100 - task - steal) * second;
    return `cpu${cpu} ${task * second} 0 0 ${idle} 0 0 0 ${steal * second} 0 0`;
  });
  block(second, "file /proc/stat", ["cpu  1 2 3", ...cpus].join("\n"));
  const hex = (n: number) =>
    Math.round(n * share)
      .toString(16)
      .padStart(8, "0");
  const backlog = `0000ffff ${hex(counters.softnetDropped)} ${hex(counters.softnetSqueezed)} 0`;
  block(second, "file /proc/net/softnet_stat", backlog);
  block(
    second,
    "file /proc/net/snmp",
    `Tcp: ActiveOpens OutSegs RetransSegs\nTcp: 5 ${grown(100_000)} ${grown(counters.retransmits)}`,
  );
  block(
    second,
    "file /proc/net/netstat",
    "TcpExt: ListenOverflows ListenDrops TCPTimeouts\n" +
      `TcpExt: 0 ${grown(counters.listenDrops)} ${grown(counters.tcpTimeouts)}`,
  );
  const sockets = `TCP: inuse ${counters.socketsInUse} orphan 0 tw 3 alloc 70 mem 1`;
  block(second, "file /proc/net/sockstat", sockets);
  const tracked = "file /proc/sys/net/netfilter/nf_conntrack_count";
  block(second, tracked, String(counters.conntrack));
  const clock = "cpufreq/scaling_cur_freq";
  const paths = [0, 1].map(
    (cpu) => `/sys/devices/system/cpu/cpu${cpu}/${clock} ${counters.kilohertz}`,
  );
  block(second, `glob /sys/devices/system/cpu/cpu*/${clock}`, paths.join("\n"));
}

export const leg: LegFacts = {
  from: "load",
  to: "echo",
  expected: { http: "1.1" },
  observed: { http: "1.1" },
  counts: { open: 32, opened: 0, fullHandshakes: 0, resumedHandshakes: 0 },
};

export const proxy: ProxyFacts = {
  unit: "ztbench-envoy.service",
  errors: {},
  workers: [16, 16],
  cache: {},
  renewals: 0,
};

/** Steady seconds: medians and tails vary by some percent and go nowhere. */
export function steadyShape(): RequestShape {
  const random = seeded(5);
  return {
    seconds: Array.from({ length: seconds }, () => ({
      planned: rateQps,
      sent: rateQps,
      p50Ns: 300_000 * (1 + 0.02 * random()),
      p99Ns: 500_000 * (1 + 0.2 * random()),
    })),
    gapVariation: value(0.1, "ratio"),
    inFlightMost: 9,
  };
}

const hostNames = ["client", "server"] as const;

export type Hosts = Readonly<Partial<Record<(typeof hostNames)[number], Partial<HostCounters>>>>;

/** The hosts of a run, of which some counted otherwise. */
export function hostsOf(record: RunRecord, change: Hosts = {}): ReadonlyMap<string, HostEvidence> {
  const own = {
    client: { threads: [`${record.generator.unit} 0`] },
    server: { threads: [`${echo.unit} 1`] },
  };
  return new Map(
    hostNames.map((name) => [name, hostOf({ ...own[name], ...change[name] })] as const),
  );
}

/** A pod with a proxy beside its service, as a cluster that gives what it should describes it. */
export function clusterOf(): NonNullable<RunRecord["deployment"]["cluster"]> {
  const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
  const [service, envoy, pause] = ["1", "2", "3"].map((digit) => `local/it@${digest(digit)}`);
  const versions = { istiod: "1.20.2", "ztbench-proxy.container": "1.28.0" };
  return {
    kind: "k3s",
    cgroupRoot: "/sys/fs/cgroup",
    images: { service: String(service), envoy: String(envoy), pause: String(pause) },
    versions: { ...versions, "ztbench-proxy.container-configuration": "c".repeat(64) },
    pods: [
      {
        name: "echo",
        host: "server",
        qosClass: "Guaranteed",
        sysctls: { "net.ipv4.tcp_slow_start_after_idle": "0" },
        containers: [
          {
            name: "echo",
            unit: echo.unit,
            image: String(service),
            imageDigest: String(service),
            plannedImage: String(service),
            cpuset: "4-5",
            exclusiveCpus: 2,
            plannedCpus: 2,
          },
          {
            name: "istio-proxy",
            unit: "ztbench-proxy.container",
            image: String(envoy),
            imageDigest: String(envoy),
            cpuset: "0-3",
            exclusiveCpus: 0,
            plannedCpus: 0,
          },
        ],
      },
    ],
  };
}

export type Place = {
  readonly testbedClass?: "lab" | "metal";
  readonly runtime?: "native" | "k3s";
};

export function goodInput({ testbedClass = "lab", runtime = "native" }: Place = {}): GateInput {
  const plan = planOf({ rateQps, durationSeconds: seconds });
  const made = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
  const parameters = { bodyBytes: 256, certificateSeconds: 86_400, sessionResumption: 0 };
  const pods = runtime === "k3s" ? { cluster: clusterOf() } : {};
  const deployment = { ...made.deployment, testbedClass, runtime, parameters, ...pods };
  const record = { ...made, deployment };
  const latency: RunLatency = {
    planned: requests,
    sent: requests,
    ok: requests,
    failed: 0,
    seqMax: requests - 1,
    codes: { "200": requests },
    errors: {},
    overflow: 0,
    lagMinNs: 1000,
    startNs: String(startNs),
    startEstimated: false,
    response: series(500_000),
    service: series(450_000),
    lag: series(50_000),
  };
  const driver: UnitUse = {
    ...echo,
    unit: record.generator.unit,
    host: "client",
    kind: "generator",
    dataPlane: false,
    cores: value(0.2, "cores"),
  };
  const resources: RunResources = {
    units: [echo, driver],
    cpuPerRequest: echo.cpuPerRequest,
    cores: echo.cores,
    cpuPerRequestByKind: { service: echo.cpuPerRequest },
    generatorCpuPerRequest: value(200, "us"),
    generatorShare: value(0.2, "share"),
  };
  const hosts = hostsOf(record);
  return {
    plan,
    record,
    latency,
    shape: steadyShape(),
    resources,
    connections: { established: value(32, "count"), opened: value(0, "count") },
    reference: {
      tuning: record.tuning,
      configurationDigest: deployment.configurationDigest,
      ...pods,
      hosts,
    },
    wire: [leg],
    proxies: [proxy],
    hosts,
    pausesNs: [20_000, 30_000],
    connect: {
      asked: 20,
      connectNs: value(90_000, "ns"),
      firstByteNs: value(300_000, "ns"),
      bytes: { "256": 20 },
      bodies: 1,
      failures: [],
    },
    tuningAfter: record.tuning,
  };
}
