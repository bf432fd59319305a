import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeResults } from "../../../contracts/deployment.ts";
import { none, value } from "../../../analysis/cell.ts";
import { type GateId, gateNumbers, settings, verdictOf } from "../../../analysis/gates/gate.ts";
import type { GateInput } from "../../../analysis/gates/input.ts";
import { judgeBrokenRun, judgeRun } from "../../../analysis/gates/judge.ts";
import { gateIds, gates } from "../../../analysis/gates/table.ts";
import type { LegFacts } from "../../../analysis/wire.ts";
import type { RunLatency } from "../../../analysis/latency.ts";
import type { RequestShape, SecondShape } from "../../../analysis/request-shape.ts";
import type { RunResources } from "../../../analysis/resources.ts";
import { planOf, recordOf } from "../../support/bundle.ts";
import { clusterFaults } from "../../support/cluster-faults.ts";
import {
  echo,
  goodInput,
  type HostCounters,
  hostsOf,
  leg,
  proxy,
  series,
} from "../../support/gate-input.ts";
import { rotationFaults } from "../../support/rotation-faults.ts";

const withRecord = (input: GateInput, change: Partial<GateInput["record"]>): GateInput => ({
  ...input,
  record: { ...input.record, ...change },
});
const withLatency = (input: GateInput, change: Partial<RunLatency>): GateInput => ({
  ...input,
  latency: { ...input.latency, ...change },
});
const withResources = (input: GateInput, change: Partial<RunResources>): GateInput => ({
  ...input,
  resources: { ...input.resources, ...change },
});

function withProbes(input: GateInput, after: ProbeResults["results"]): GateInput {
  const { probes } = input.record;
  return withRecord(input, { probes: { ...probes, after: { ...probes.after, results: after } } });
}

const withShape = (input: GateInput, change: Partial<RequestShape>): GateInput => ({
  ...input,
  shape: { ...input.shape, ...change },
});
const withHost = (
  input: GateInput,
  host: "client" | "server",
  change: Partial<HostCounters>,
): GateInput => ({ ...input, hosts: hostsOf(input.record, { [host]: change }) });
const withUnit = (input: GateInput, change: Partial<typeof echo>): GateInput => {
  const [, ...others] = input.resources.units;
  return withResources(input, { units: [{ ...echo, ...change }, ...others] });
};
const withDriver = (input: GateInput, change: Partial<typeof echo>): GateInput => {
  const units = input.resources.units.map((unit) =>
    unit.kind === "generator" ? { ...unit, ...change } : unit,
  );
  return withResources(input, { units });
};

/** Seconds that a function of their number changes. */
function withSeconds(input: GateInput, change: (at: number) => Partial<SecondShape>): GateInput {
  const seconds = input.shape.seconds.map((second, at) => ({ ...second, ...change(at) }));
  return withShape(input, { seconds });
}

function withConnections(input: GateInput, established: number): GateInput {
  return {
    ...input,
    connections: { ...input.connections, established: value(established, "count") },
  };
}

function overHttp2(input: GateInput): GateInput {
  const { deployment } = input.record;
  const entry = { ...deployment.entry, http: "2" as const };
  return withRecord(input, { deployment: { ...deployment, entry } });
}

/** The same run as a cold start: nothing before it, and none of the driver's connections. */
function coldInput(): GateInput {
  const plan = planOf({
    rateQps: 100,
    durationSeconds: 120,
    editPlan: (steady) => ({
      ...steady,
      treatments: steady.treatments.map((t) => ({ ...t, condition: "cold-start" as const })),
    }),
  });
  const made = recordOf(plan, { block: 1, label: "gateway", arm: "a" }, 2, 2);
  const record = { ...made, deployment: lab.record.deployment };
  return withConnections({ ...lab, plan, record, hosts: hostsOf(record) }, 0);
}

/** Requests that were never sent, one in each of so many seconds. */
function short(input: GateInput, missing: number): GateInput {
  const sent = input.latency.planned - missing;
  const fewer = withSeconds(input, (at) => (at < missing ? { sent: 99 } : {}));
  return withLatency(fewer, {
    ...{ sent, ok: sent, seqMax: sent - 1 },
    lag: series(50_000, sent),
    response: series(500_000, sent),
  });
}

function failing(input: GateInput, failed: number): GateInput {
  const ok = input.latency.sent - failed;
  return withLatency(input, { ok, failed, response: series(500_000, ok) });
}

/** The same readback before and after the block. */
function tuned(input: GateInput, tuning: GateInput["record"]["tuning"]): GateInput {
  return { ...withRecord(input, { tuning }), tuningAfter: tuning };
}

type Fault = {
  readonly what: string;
  readonly gate: GateId;
  readonly outcome: "warn" | "invalid" | "unavailable";
  readonly input: GateInput;
};

const lab = goodInput();
const metal = goodInput({ testbedClass: "metal" });
const pods = goodInput({ testbedClass: "metal", runtime: "k3s" });
function connectOf({ connect }: GateInput) {
  assert.ok(connect);
  return connect;
}

const faults: readonly Fault[] = [
  ...clusterFaults(pods),
  ...rotationFaults(lab),
  {
    what: "more connections than declared",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(lab, 33),
  },
  {
    what: "no connection of the driver",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(lab, 0),
  },
  {
    what: "fewer HTTP/2 connections than declared",
    gate: "connections",
    outcome: "invalid",
    input: withConnections(overHttp2(lab), 31),
  },
  {
    what: "connections that nobody counted",
    gate: "connections",
    outcome: "unavailable",
    input: { ...lab, connections: { ...lab.connections, established: none("not asked") } },
  },
  {
    what: "a run that broke off",
    gate: "completed",
    outcome: "invalid",
    input: withRecord(lab, { failure: "interrupted" }),
  },
  {
    what: "another rate than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, { load: { ...lab.record.load, rateQps: 999 } }),
  },
  {
    what: "another driver than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, {
      loadPlan: { ...lab.record.loadPlan, driver: "vegeta" },
    }),
  },
  {
    what: "another parameter than planned",
    gate: "plan",
    outcome: "invalid",
    input: withRecord(lab, { treatment: { ...lab.record.treatment, parameters: { hops: 2 } } }),
  },
  {
    what: "less than 99.5 % sent",
    gate: "sent",
    outcome: "invalid",
    input: short(lab, 61),
  },
  {
    what: "less than 99.9 % answered",
    gate: "goodput",
    outcome: "invalid",
    input: failing(lab, 13),
  },
  {
    what: "a row that is missing between others",
    gate: "rows",
    outcome: "invalid",
    input: withLatency(lab, { seqMax: 12_000 }),
  },
  {
    what: "a response beyond the histogram",
    gate: "overflow",
    outcome: "invalid",
    input: withLatency(lab, {
      overflow: 1,
      lag: series(50_000, 11_999),
      response: series(500_000, 11_999),
    }),
  },
  {
    what: "a late generator in the lab",
    gate: "lag",
    outcome: "warn",
    input: withLatency(lab, { lag: series(250_001) }),
  },
  {
    what: "a late generator on metal",
    gate: "lag",
    outcome: "invalid",
    input: withLatency(metal, { lag: series(100_001) }),
  },
  {
    what: "too few requests for a lag p99",
    gate: "lag",
    outcome: "unavailable",
    input: withLatency(lab, {
      lag: {
        ...lab.latency.lag,
        quantiles: { ...lab.latency.lag.quantiles, p99: none("too few requests for p99") },
      },
    }),
  },
  {
    what: "a clock that stepped back",
    gate: "clock",
    outcome: "invalid",
    input: withLatency(lab, { lagMinNs: -1_000_001 }),
  },
  {
    what: "a probe that failed after the run",
    gate: "probes",
    outcome: "invalid",
    input: withProbes(
      lab,
      lab.record.probes.after.results.map((result) => ({ ...result, passed: false })),
    ),
  },
  {
    what: "a probe that was not asked",
    gate: "probes",
    outcome: "invalid",
    input: withProbes(lab, []),
  },
  {
    what: "a sysctl that changed",
    gate: "tuning",
    outcome: "invalid",
    input: tuned(lab, { server: { somaxconn: "applied 4096" } }),
  },
  {
    what: "a host without readback",
    gate: "tuning",
    outcome: "invalid",
    input: tuned(lab, {}),
  },
  {
    what: "a busy generator in the lab",
    gate: "generator",
    outcome: "warn",
    input: withResources(lab, { generatorShare: value(0.7, "share") }),
  },
  {
    what: "a busy generator on metal",
    gate: "generator",
    outcome: "invalid",
    input: withResources(metal, { generatorShare: value(0.7, "share") }),
  },
  {
    what: "a generator that was not sampled",
    gate: "generator",
    outcome: "unavailable",
    input: withResources(lab, { generatorShare: none("not sampled") }),
  },
  {
    what: "a unit that started anew",
    gate: "restarts",
    outcome: "invalid",
    input: withUnit(lab, { restarts: value(1, "count") }),
  },
  {
    what: "a unit whose processes were not sampled",
    gate: "restarts",
    outcome: "unavailable",
    input: withUnit(lab, { restarts: none("not sampled") }),
  },
  {
    what: "a leg that is not as the topology says",
    gate: "wire",
    outcome: "invalid",
    input: { ...lab, wire: [{ ...leg, observed: { http: "1.1 and 2" } }] },
  },
  {
    what: "a fact that nothing has seen",
    gate: "wire",
    outcome: "invalid",
    input: { ...lab, wire: [{ ...leg, observed: {} }] },
  },
  {
    what: "another configuration than the treatment's first run",
    gate: "digest",
    outcome: "invalid",
    input: { ...lab, reference: { ...lab.reference, configurationDigest: "f".repeat(64) } },
  },
  {
    what: "a second with too few requests",
    gate: "windows",
    outcome: "warn",
    input: (() => {
      const sent = 11_997;
      const fewer = withSeconds(lab, (at) => (at === 60 ? { sent: 97 } : {}));
      const counts = { sent, ok: sent, seqMax: sent - 1 };
      const [lag, response] = [series(50_000, sent), series(500_000, sent)];
      return withLatency(fewer, { ...counts, lag, response });
    })(),
  },
  {
    what: "requests sent in bursts",
    gate: "arrivals",
    outcome: "warn",
    input: withShape(lab, { gapVariation: value(5.2, "ratio") }),
  },
  {
    what: "as many requests in flight as there are workers",
    gate: "workers",
    outcome: "invalid",
    input: withShape(lab, { inFlightMost: 4000 }),
  },
  {
    what: "one CPU of the driver that is busy",
    gate: "generator-core",
    outcome: "invalid",
    input: withHost(metal, "client", { cpus: { 0: { task: 70 }, 1: { task: 40 } } }),
  },
  {
    what: "a hypervisor that takes time",
    gate: "generator-steal",
    outcome: "warn",
    input: withHost(lab, "client", { cpus: { 0: { task: 20, steal: 2 }, 1: { task: 40 } } }),
  },
  {
    what: "a driver without a CPU for half of the time",
    gate: "generator-wait",
    outcome: "warn",
    input: withDriver(lab, { runQueueWait: value(0.6, "share") }),
  },
  {
    what: "collections that stop the driver for as long as a response",
    gate: "generator-pauses",
    outcome: "warn",
    input: { ...lab, pausesNs: [20_000, 400_000] },
  },
  {
    what: "connections that are opened all the time",
    gate: "new-connections",
    outcome: "warn",
    input: { ...lab, connections: { ...lab.connections, opened: value(600, "count") } },
  },
  {
    what: "handshakes all the time",
    gate: "handshakes",
    outcome: "warn",
    input: { ...lab, wire: [{ ...leg, counts: { fullHandshakes: 600, resumedHandshakes: 0 } }] },
  },
  {
    what: "handshakes all the time on metal",
    gate: "handshakes",
    outcome: "invalid",
    input: { ...metal, wire: [{ ...leg, counts: { fullHandshakes: 120, resumedHandshakes: 0 } }] },
  },
  {
    what: "a session taken up again where each handshake is to be a full one",
    gate: "sessions",
    outcome: "invalid",
    input: { ...lab, wire: [{ ...leg, counts: { fullHandshakes: 1, resumedHandshakes: 1 } }] },
  },
  {
    what: "a proxy that gave up requests",
    gate: "proxy-errors",
    outcome: "invalid",
    input: {
      ...lab,
      proxies: [{ ...proxy, errors: { "cluster.echo.upstream_rq_pending_overflow": 3 } }],
    },
  },
  {
    what: "a worker with nearly all connections",
    gate: "proxy-workers",
    outcome: "invalid",
    input: { ...metal, proxies: [{ ...proxy, workers: [28, 4] }] },
  },
  {
    what: "a worker with some more connections",
    gate: "proxy-workers",
    outcome: "warn",
    input: { ...metal, proxies: [{ ...proxy, workers: [21, 11] }] },
  },
  {
    what: "a pod that its quota held back",
    gate: "throttling",
    outcome: "invalid",
    input: withUnit(pods, { throttled: value(1, "count") }),
  },
  {
    what: "a process killed for want of memory",
    gate: "out-of-memory",
    outcome: "invalid",
    input: withUnit(lab, { memoryKills: value(1, "count") }),
  },
  {
    what: "memory that grows",
    gate: "memory-growth",
    outcome: "invalid",
    input: withUnit(lab, { memoryGrowth: value(0.06, "share") }),
  },
  {
    what: "a network card that dropped packets",
    gate: "nic",
    outcome: "invalid",
    input: withHost(metal, "server", {
      after: { "command nic": "NIC statistics:\n     rx_packets: 99\n     rx_out_of_buffer: 8" },
    }),
  },
  {
    what: "a link that went and came back",
    gate: "nic",
    outcome: "invalid",
    input: withHost(metal, "server", {
      after: {
        "glob /sys/class/net/*/carrier_changes": "/sys/class/net/ens1/carrier_changes 4",
      },
    }),
  },
  {
    what: "packets dropped for a full backlog",
    gate: "softnet-drops",
    outcome: "invalid",
    input: withHost(metal, "server", { softnetDropped: 17 }),
  },
  {
    what: "packets left for later",
    gate: "softnet-squeezes",
    outcome: "warn",
    input: withHost(metal, "server", { softnetSqueezed: 17 }),
  },
  {
    what: "segments sent again",
    gate: "retransmits",
    outcome: "invalid",
    input: withHost(metal, "server", { retransmits: 11 }),
  },
  {
    what: "connections lost by a full queue",
    gate: "listen-drops",
    outcome: "invalid",
    input: withHost(lab, "server", { listenDrops: 1 }),
  },
  {
    what: "a time-out of TCP",
    gate: "tcp-timeouts",
    outcome: "invalid",
    input: withHost(metal, "client", { tcpTimeouts: 1 }),
  },
  {
    what: "most local ports in use",
    gate: "ports",
    outcome: "invalid",
    input: withHost(lab, "client", { socketsInUse: 34_000 }),
  },
  {
    what: "more connections tracked than half of what can be",
    gate: "conntrack",
    outcome: "invalid",
    input: withHost(lab, "client", { conntrack: 600_000 }),
  },
  {
    what: "a start-up beyond the middle of the run",
    gate: "settled",
    outcome: "invalid",
    input: withSeconds(lab, (at) => ({ p50Ns: at < 75 ? 900_000 - 8000 * at : 300_000 })),
  },
  {
    what: "a tail that grows",
    gate: "trend",
    outcome: "invalid",
    input: withSeconds(lab, (at) => ({ p99Ns: 500_000 * (1 + 0.003 * at) })),
  },
  {
    what: "a run of seconds only",
    gate: "settled",
    outcome: "unavailable",
    input: withShape(lab, {
      seconds: lab.shape.seconds.slice(0, 59).map((s, i) => ({ ...s, sent: i < 23 ? 204 : 203 })),
    }),
  },
  {
    what: "a CPU that runs below its frequency",
    gate: "frequency",
    outcome: "invalid",
    input: withHost(metal, "server", { kilohertz: 2_900_000 }),
  },
  {
    what: "a CPU slowed down for heat",
    gate: "thermal-throttling",
    outcome: "invalid",
    input: withHost(metal, "client", {
      after: {
        "glob /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count":
          "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count 5",
      },
    }),
  },
  {
    what: "a host warmer than at first",
    gate: "temperature",
    outcome: "invalid",
    input: (() => {
      const cool = [...metal.hosts].map(([name, host]) => {
        const zone = "/sys/class/thermal/thermal_zone0/temp 47000";
        const before = new Map(host.before);
        before.set("glob /sys/class/thermal/thermal_zone*/temp", zone);
        return [name, { ...host, before }] as const;
      });
      return { ...metal, reference: { ...metal.reference, hosts: new Map(cool) } };
    })(),
  },
  {
    what: "a complaint of the kernel",
    gate: "kernel-log",
    outcome: "invalid",
    input: withHost(metal, "server", {
      after: { "command kernel-log": "[1.0] ACPI: nothing to see\n[9.0] mlx5: link error" },
    }),
  },
  {
    what: "a service that began meanwhile",
    gate: "services",
    outcome: "warn",
    input: withHost(lab, "server", {
      after: { "command services": "cron.service a b c\nssh.service a b c\nfstrim.service a b c" },
    }),
  },
  {
    what: "another kernel",
    gate: "machine",
    outcome: "invalid",
    input: withHost(lab, "server", { after: { "file /proc/sys/kernel/osrelease": "6.1.1" } }),
  },
  {
    what: "a sysctl edited within the block",
    gate: "tuning-after",
    outcome: "invalid",
    input: { ...lab, tuningAfter: { server: { somaxconn: "applied 128" } } },
  },
  {
    what: "a block that is not over",
    gate: "tuning-after",
    outcome: "unavailable",
    input: { ...lab, tuningAfter: undefined },
  },
  ...["drifted", "untuned", "leftover"].map((status) => {
    const tuning = { server: { somaxconn: `${status} 128` } };
    const reference = { ...lab.reference, tuning };
    return {
      what: `a knob that is ${status} before the block`,
      gate: "tuning",
      outcome: "invalid",
      input: { ...tuned(lab, tuning), reference },
    } as const;
  }),
  {
    what: "a thread beside its CPU",
    gate: "placement",
    outcome: "invalid",
    input: withHost(lab, "server", { threads: [`${echo.unit} 0-1`] }),
  },
  {
    what: "a second tenant on the service's CPU",
    gate: "foreign-load",
    outcome: "invalid",
    input: withHost(metal, "server", { cpus: { 0: { task: 20 }, 1: { task: 42 } } }),
  },
  {
    what: "another clock source",
    gate: "clock-source",
    outcome: "warn",
    input: withHost(metal, "server", {
      after: {
        "file /sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
      },
    }),
  },
  {
    what: "a clock that is off",
    gate: "clock-offset",
    outcome: "warn",
    input: withHost(metal, "server", {
      after: { "command chrony": "A,B,2,1790000000.1,-0.0013,0.00001,0.00001" },
    }),
  },
  {
    what: "a second that the histograms lack",
    gate: "intervals",
    outcome: "invalid",
    input: withLatency(lab, { lag: series(50_000, 11_900) }),
  },
  {
    what: "answers of another size",
    gate: "bodies",
    outcome: "invalid",
    input: { ...lab, connect: { ...connectOf(lab), bytes: { "255": 20 } } },
  },
  {
    what: "answers that are not alike",
    gate: "bodies",
    outcome: "invalid",
    input: { ...lab, connect: { ...connectOf(lab), bodies: 2 } },
  },
  {
    what: "a profiler beside the run",
    gate: "profilers",
    outcome: "invalid",
    input: withHost(lab, "server", { after: { "command processes": "systemd\nperf\nztecho" } }),
  },
  {
    what: "a sampler that costs",
    gate: "observer",
    outcome: "invalid",
    input: withHost(metal, "client", { samplerUs: 3_000_000 }),
  },
];

/** Gates that have no source where the run took place. */
const silent = (input: GateInput) =>
  judgeRun(input)
    .filter(({ outcome }) => outcome === "unavailable")
    .map(({ id }) => id);

test("a run without fault passes every gate that its place has", () => {
  for (const input of [lab, metal, pods]) {
    const results = judgeRun(input);
    const { testbedClass, runtime } = input.record.deployment;
    const absent = gates.filter((g) => "absent" in g.limits[`${testbedClass} ${runtime}`]);
    assert.deepEqual(
      results.filter(({ outcome }) => outcome !== "pass").map(({ id }) => id),
      absent.map(({ id }) => id),
    );
    assert.equal(verdictOf(results), "VALID");
  }
});

test("a gate without a source says so, and never that it passed", () => {
  const unavailable = judgeRun(lab).filter(({ id }) => silent(lab).includes(id));
  assert.ok(unavailable.length > 0);
  for (const { measured } of unavailable) assert.match(measured, /^not available here: ./);
  const unseen = { ...lab, wire: [], proxies: [], hosts: new Map(), connect: undefined };
  const said = silent(unseen);
  for (const id of ["wire", "proxy-errors", "machine", "bodies", "profilers", "placement"]) {
    assert.ok(said.includes(id as GateId), id);
  }
});

for (const { what, gate, outcome, input } of faults) {
  test(`${what} trips just the gate "${gate}"`, () => {
    const results = judgeRun(input);
    const { testbedClass } = input.record.deployment;
    const { runtime } = input.record.deployment;
    const usual = silent(goodInput({ testbedClass, runtime }));
    assert.deepEqual(
      results
        .filter(
          (r) => r.outcome !== "pass" && !(r.outcome === "unavailable" && usual.includes(r.id)),
        )
        .map((r) => `${r.id} ${r.outcome}`),
      [`${gate} ${outcome}`],
    );
    const verdict = { warn: "WARN", invalid: "INVALID", unavailable: "VALID" } as const;
    assert.equal(verdictOf(results), verdict[outcome]);
  });
}

test("every number of the method has a gate, of a run or of a campaign", () => {
  const numbers = new Set<string>(Object.values(gateNumbers));
  const ofCampaigns = ["G7", "G24"];
  for (let n = 1; n <= 25; n += 1) {
    assert.ok(numbers.has(`G${n}`) || ofCampaigns.includes(`G${n}`), `G${n}`);
  }
});

test("every gate declares a limit, or why there is none, for every setting", () => {
  for (const { id, limits } of gates) {
    for (const setting of settings) {
      const limit = limits[setting];
      assert.ok("absent" in limit ? limit.absent !== "" : Number.isFinite(limit.value), id);
    }
  }
});

test("every gate has a fault that trips it", () => {
  const tripped = new Set(
    faults.filter(({ outcome }) => outcome !== "unavailable").map((f) => f.gate),
  );
  assert.deepEqual([...tripped].sort(), [...gateIds].sort());
});

test("each gate tells what it measured and what it wanted", () => {
  const results = judgeRun(withLatency(lab, { lag: series(300_000) }));
  const lag = results.find(({ id }) => id === "lag");
  assert.equal(lag?.measured, "p99 0.300 ms");
  assert.equal(lag.threshold, "p99 <= 0.250 ms with vegeta-paced");
});

test("a run that sent nothing shows a share of nothing", () => {
  const results = judgeRun(withLatency(lab, { sent: 0, ok: 0, seqMax: -1 }));
  const goodput = results.find(({ id }) => id === "goodput");
  assert.deepEqual([goodput?.outcome, goodput?.measured], ["invalid", "0 of 0 (0.0 %)"]);
});

test("on metal a slow path allows a lag of a tenth of its p99", () => {
  const input = withLatency(metal, { lag: series(400_000), response: series(5_000_000) });
  assert.equal(verdictOf(judgeRun(input)), "VALID");
});

test("the CLI may be late by its timer's millisecond", () => {
  const paced = withRecord(lab, { loadPlan: { ...lab.record.loadPlan, driver: "vegeta" } });
  const results = judgeRun(withLatency(paced, { lag: series(1_100_000) }));
  assert.equal(results.find(({ id }) => id === "lag")?.outcome, "pass");
});

test("a run without measurement is invalid for the reason in its record", () => {
  const results = judgeBrokenRun({ ...lab.record, failure: "unit did not start" });
  assert.equal(verdictOf(results), "INVALID");
  assert.equal(results[0]?.measured, "unit did not start");
});

test("an HTTP/2 run of the paced driver has exactly its connections, and one over 1.1 at most", () => {
  const outcomeOf = (input: GateInput) =>
    judgeRun(input).find(({ id }) => id === "connections")?.outcome;
  assert.equal(outcomeOf(withConnections(overHttp2(lab), 32)), "pass");
  assert.equal(outcomeOf(withConnections(lab, 3)), "pass");
});

test("a cold start that storms is warned about, and never left out of the count of storms", () => {
  const cold = coldInput();
  assert.equal(verdictOf(judgeRun(cold)), "VALID");
  const stormy = failing(cold, 6000);
  assert.equal(verdictOf(judgeRun(stormy)), "WARN");
  assert.equal(verdictOf(judgeRun(failing(lab, 6000))), "INVALID");
});

test("a cold start that is warm is invalid", () => {
  const warm = withConnections(coldInput(), 1);
  assert.equal(verdictOf(judgeRun(warm)), "INVALID");
  const { load } = coldInput().record;
  const warmed = withRecord(coldInput(), { load: { ...load, warmupSeconds: 1 } });
  assert.equal(verdictOf(judgeRun(warmed)), "INVALID");
});

test("before a cold start, probes that must be refused need not have been asked", () => {
  const refuse = (input: GateInput): GateInput => {
    const { deployment } = input.record;
    const [answers] = deployment.probes;
    assert.ok(answers);
    const probes = [answers, { ...answers, id: "refuses", kind: "negative" as const }];
    const [result] = input.record.probes.after.results;
    assert.ok(result);
    const results = [result, { ...result, id: "refuses" }];
    return withProbes(withRecord(input, { deployment: { ...deployment, probes } }), results);
  };
  const outcomeOf = (input: GateInput) =>
    judgeRun(input).find(({ id }) => id === "probes")?.outcome;
  assert.equal(outcomeOf(refuse(coldInput())), "pass");
  assert.equal(outcomeOf(refuse(lab)), "invalid");
});

test("a session that is taken up again voids a run whose handshakes are all to be full", () => {
  const { deployment } = lab.record;
  const judged = (parameters: Record<string, number>, counts: LegFacts["counts"]) =>
    judgeRun({
      ...withRecord(lab, { deployment: { ...deployment, parameters } }),
      wire: [{ ...leg, counts }],
    }).find(({ id }) => id === "sessions");
  const one = { fullHandshakes: 1, resumedHandshakes: 1 };
  const never = { sessionResumption: 0 };
  assert.equal(judged(never, one)?.outcome, "invalid");
  assert.equal(judged(never, one)?.measured, "1 taken up again, 1 full");
  assert.equal(judged(never, { fullHandshakes: 2, resumedHandshakes: 0 })?.outcome, "pass");
  assert.equal(judged(never, {})?.outcome, "invalid");
  assert.equal(judged({ sessionResumption: 1 }, one)?.outcome, "unavailable");
  assert.equal(judged({}, one)?.outcome, "unavailable");
});

test("connections that a treatment closes on purpose void nothing, and others still do", () => {
  const opening: GateInput = {
    ...lab,
    connections: { ...lab.connections, opened: value(6000, "count") },
    wire: [{ ...leg, counts: { opened: 6000, fullHandshakes: 6000, resumedHandshakes: 0 } }],
  };
  const { deployment } = lab.record;
  const closing = (requestsPerConnection: number) =>
    withRecord(opening, { deployment: { ...deployment, parameters: { requestsPerConnection } } });
  const tripped = (input: GateInput) =>
    judgeRun(input)
      .filter(({ outcome }) => outcome === "warn" || outcome === "invalid")
      .map(({ id }) => id);
  assert.deepEqual(tripped(closing(0)), ["new-connections", "handshakes"]);
  assert.deepEqual(tripped(closing(10)), []);
});
