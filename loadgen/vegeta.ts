/** Treatment, load and entry to the exact command lines of both load drivers; pure. */
import type { Deployment } from "../contracts/deployment.ts";
import type { LoadSettings, Treatment } from "../contracts/plan.ts";

/** Where the installer puts our programs on every host. */
export const binaryDirectory = "/var/lib/ztbench/bin";

/** Files of a run on the host that sends; targets may hold tokens, so root alone reads them. */
export type LoadFiles = {
  readonly targets: string;
  /** vegeta's records of warm-up and measured load together. */
  readonly records: string;
  /** What the paced driver planned. */
  readonly plan: string;
  /** Records of the command line's pre-warming, which nobody reads. */
  readonly prewarm: string;
};

export type Attack = {
  readonly treatment: Treatment;
  readonly load: LoadSettings;
  readonly entry: Deployment["entry"];
  readonly files: LoadFiles;
  /** CPUs of the load set, for GOMAXPROCS; undefined leaves it to Go. */
  readonly cpuCount: number | undefined;
  readonly seed: number;
};

type ConnectionMode = "http1" | "http2" | "h2c";

/** Cleartext HTTP/2 is by prior knowledge: what the entry speaks is no guess. */
function connectionMode(entry: Deployment["entry"]): ConnectionMode {
  if (entry.http === "1.1") return "http1";
  return entry.url.startsWith("https:") ? "http2" : "h2c";
}

/** Seconds as Go writes them, without an exponent. */
function goSeconds(seconds: number): string {
  return `${Math.round(seconds * 1e9)}ns`;
}

/**
 * Warm-up and measured load are one attack, since the connections of another would be cold; what
 * pre-warms comes on top.
 */
export function attackSeconds(load: LoadSettings): number {
  return load.warmupSeconds + load.durationSeconds;
}

/** `ztload targets`: the file of requests, one a token. */
export function targetsCommand(entry: Deployment["entry"], out: string): string[] {
  const headers = { "Accept-Encoding": "identity", ...entry.headers };
  return [
    `${binaryDirectory}/ztload`,
    "targets",
    "-url",
    entry.url,
    ...(entry.tokensFile === undefined ? [] : ["-tokens", entry.tokensFile]),
    ...Object.entries(headers).flatMap(([name, value]) => ["-header", `${name}: ${value}`]),
    "-out",
    out,
  ];
}

/** Enough for a median; each takes about a millisecond, outside of the measured part. */
const connectCount = 20;

/** `ztload connect`: a series of requests on connections of their own. */
export function connectCommand(entry: Deployment["entry"], targets: string, out: string): string[] {
  const mode = connectionMode(entry);
  return [
    `${binaryDirectory}/ztload`,
    "connect",
    ...["-targets", targets, "-out", out, "-count", String(connectCount)],
    ...(mode === "http1" ? [] : [`-${mode}`]),
  ];
}

/** The attack itself. Every flag that changes results is given, whatever its default. */
export function attackCommand(attack: Attack): string[] {
  return attack.treatment.driver === "vegeta" ? cliCommand(attack) : pacedCommand(attack);
}

/**
 * The command line knows one rate an attack, so its pre-warming is an attack before: connections
 * of its own are lost, those that proxies opened behind the entry stay. Undefined where the driver
 * pre-warms by itself, or nothing is to be pre-warmed.
 */
export function prewarmCommand(attack: Attack): string[] | undefined {
  const { rateQps, seconds } = attack.load.prewarm;
  if (attack.treatment.driver !== "vegeta" || seconds === 0) return undefined;
  return cliCommand(attack, { output: attack.files.prewarm, rateQps, seconds });
}

/** The same flags tell the paced driver what to send, and the splitting what was sent. */
function prewarmFlags({ treatment, load }: Attack): string[] {
  const { rateQps, seconds } = load.prewarm;
  if (treatment.driver === "vegeta" || seconds === 0) return [];
  return ["-prewarm-rate", String(rateQps), "-prewarm", goSeconds(seconds)];
}

function pacedCommand(attack: Attack): string[] {
  const { treatment, load, entry, files, cpuCount, seed } = attack;
  const mode = connectionMode(entry);
  return [
    `${binaryDirectory}/ztload`,
    "attack",
    ...["-targets", files.targets, "-output", files.records, "-plan", files.plan],
    ...["-rate", String(load.rateQps), "-duration", goSeconds(attackSeconds(load))],
    ...prewarmFlags(attack),
    ...["-arrival", treatment.arrival, "-seed", String(seed)],
    ...["-timeout", goSeconds(load.timeoutSeconds), "-max-body", "0"],
    ...["-workers", String(load.workers), "-max-workers", String(load.maxWorkers)],
    ...["-connections", String(load.connections), "-max-connections", String(load.connections)],
    ...["-cpus", String(cpuCount ?? 0)],
    ...(mode === "http1" ? [] : [`-${mode}`]),
  ];
}

/** vegeta's own defaults: so many idle connections are kept, and 0 means any number is opened. */
const driverDefault = { idle: 10_000, most: 0 } as const;

type Part = { readonly output: string; readonly rateQps: number; readonly seconds: number };

function cliCommand({ treatment, load, entry, files, cpuCount }: Attack, part?: Part): string[] {
  const mode = connectionMode(entry);
  const bounded = { idle: load.connections, most: load.connections };
  const { idle, most } = treatment.connectionLimit === "bounded" ? bounded : driverDefault;
  const rateQps = part?.rateQps ?? load.rateQps;
  const seconds = part?.seconds ?? attackSeconds(load);
  return [
    `${binaryDirectory}/vegeta`,
    ...(cpuCount === undefined ? [] : ["-cpus", String(cpuCount)]),
    "attack",
    ...["-targets", files.targets, "-format", "http", "-output", part?.output ?? files.records],
    ...["-rate", `${rateQps}/1s`, "-duration", goSeconds(seconds)],
    ...["-timeout", goSeconds(load.timeoutSeconds), "-max-body", "0"],
    // -1: a redirect is an answer and not followed; no cache of names, since entries are addresses.
    ...["-redirects", "-1", "-dns-ttl", "-1s"],
    ...["-workers", String(load.workers), "-max-workers", String(load.maxWorkers)],
    ...["-connections", String(idle), "-max-connections", String(most)],
    ...["-keepalive=true", "-session-tickets=false", `-http2=${mode === "http2"}`],
    ...(mode === "h2c" ? ["-h2c"] : []),
  ];
}

/** `ztload split`: records to the rows of warm-up and measured load, and the plan of the latter. */
export function splitCommand(attack: Attack, directory: string): string[] {
  const { treatment, load, files, seed } = attack;
  return [
    `${binaryDirectory}/ztload`,
    "split",
    ...["-in", files.records, "-out", directory],
    ...(treatment.driver === "vegeta" ? [] : ["-plan", files.plan]),
    ...["-rate", String(load.rateQps), "-duration", goSeconds(attackSeconds(load))],
    ...prewarmFlags(attack),
    ...["-arrival", treatment.arrival, "-seed", String(seed)],
    ...["-warmup", goSeconds(load.warmupSeconds)],
  ];
}
