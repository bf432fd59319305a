/**
 * The rest of the published metric matrix, run by run: what a connection costs, what a request
 * takes of memory, files and network, and how well sessions are used.
 */
import { parseCpuList } from "../contracts/cpu-list.ts";
import type { Manifest } from "../contracts/manifest.ts";
import { type Cell, none, numberOf, sumOf, value } from "./cell.ts";
import type { GateInput } from "./gates/input.ts";
import { softirqAccounting } from "./resources.ts";
import { handshakesOf } from "./wire.ts";

export const matrixIds = [
  "connectNs",
  "firstByteNs",
  "inFlightMost",
  "memory",
  "openFiles",
  "networkBytesPerRequest",
  "interruptCores",
  "handshakes",
  "handshakeShare",
  "reuseShare",
  "cacheHitShare",
] as const;
export type MatrixId = (typeof matrixIds)[number];
export type RunMatrix = Readonly<Record<MatrixId, Cell>>;

type Source = Pick<
  GateInput,
  | "record"
  | "latency"
  | "shape"
  | "resources"
  | "connections"
  | "wire"
  | "proxies"
  | "hosts"
  | "connect"
>;

/** Every cell that has no source says why. */
export function matrixOf(source: Source, facts: Manifest["facts"]): RunMatrix {
  const { connect, shape, resources } = source;
  const counted = resources.units.filter(({ dataPlane }) => dataPlane);
  const unasked = none("no series of connections was sent");
  return {
    connectNs: connect?.connectNs ?? unasked,
    firstByteNs: connect?.firstByteNs ?? unasked,
    inFlightMost: value(shape.inFlightMost, "count"),
    memory: sumOf(counted.map(({ memory }) => memory)),
    openFiles: sumOf(counted.map(({ openFiles }) => openFiles)),
    networkBytesPerRequest: networkBytes(source),
    interruptCores: interruptCores(source, facts),
    ...sessions(source),
    cacheHitShare: cacheHits(source),
  };
}

/** All links of all hosts, both directions: a byte between two hosts counts at either end. */
function networkBytes({ hosts, latency }: Source): Cell {
  const bytes = sumOf([...hosts.values()].map((host) => host.networkBytes));
  if (bytes.kind === "none") return bytes;
  return latency.sent > 0 ? value(bytes.value / latency.sent, "bytes") : none("no requests");
}

/** Time of interrupts on the CPUs of the data plane, which is no unit's own where it is apart. */
function interruptCores({ record, hosts }: Source, facts: Manifest["facts"]): Cell {
  const accounting = softirqAccounting(facts);
  if (accounting !== "apart") {
    return none(
      accounting === "tasks"
        ? "interrupt time is charged to tasks, so it is in their CPU time"
        : "the kernel does not tell where interrupt time is charged",
    );
  }
  const units = record.deployment.units.filter(({ dataPlane }) => dataPlane);
  let cores = 0;
  for (const host of new Set(units.map((unit) => unit.host))) {
    const own = units.filter((unit) => unit.host === host);
    for (const cpu of new Set(own.flatMap(({ cpus }) => parseCpuList(cpus)))) {
      const use = hosts.get(host)?.cores.get(cpu);
      if (use === undefined) return none("CPUs were not sampled");
      cores += use.interrupt;
    }
  }
  return value(cores, "cores");
}

/** Handshakes while measured, those that succeeded, and requests on connections that stood. */
function sessions({ wire, latency, connections, proxies }: Source) {
  const shaken = handshakesOf(wire);
  const unseen = none("no proxy counts handshakes on this path");
  const tls = proxies.flatMap(({ tls: counts }) => counts ?? []);
  const tried = tls.reduce((sum, { handshakes, errors }) => sum + handshakes + errors, 0);
  const failed = tls.reduce((sum, { errors }) => sum + errors, 0);
  const opened = wire.flatMap(({ counts }) => counts.opened ?? []);
  const own = numberOf(connections.opened);
  const most = Math.max(...opened, ...(own === undefined ? [] : [own]));
  return {
    handshakes: shaken.length === 0 ? unseen : value(Math.max(...shaken), "count"),
    handshakeShare: tried === 0 ? unseen : value(1 - failed / tried, "share"),
    reuseShare:
      latency.sent === 0 || !Number.isFinite(most)
        ? none("connections were not counted")
        : value(Math.max(0, 1 - most / latency.sent), "share"),
  };
}

function cacheHits({ proxies }: Source): Cell {
  const hits = proxies.flatMap(({ cache }) => cache.hits ?? []);
  const misses = proxies.flatMap(({ cache }) => cache.misses ?? []);
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, n) => all + n, 0);
  const asked = sum(hits) + sum(misses);
  if (hits.length + misses.length === 0) return none("no cache on this path counts its hits");
  return asked === 0 ? none("no cache was asked") : value(sum(hits) / asked, "share");
}
