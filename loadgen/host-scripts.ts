/** The scripts that a run executes on the hosts: start, scrape, load, collect, clear; pure text. */
import type { Deployment } from "../contracts/deployment.ts";
import { benchSlice, type Host } from "../contracts/testbed.ts";
import { inNamespace } from "./namespace.ts";
import { type RemoteScript, shellWord } from "./ssh.ts";
import { stateLines } from "./state-script.ts";
import {
  loadUnitName,
  prewarmUnitName,
  sampleUnitName,
  startCommand,
  type TransientUnit,
  unitPrefixes,
} from "./unit.ts";
import {
  type Attack,
  attackCommand,
  binaryDirectory,
  connectCommand,
  prewarmCommand,
  splitCommand,
  targetsCommand,
} from "./vegeta.ts";

/** Everything that runs leave on a host while they last; on a file system that lives in memory. */
const runsDirectory = "/run/ztbench/run";

/** One run on one campaign's hosts. */
export type RunKey = {
  /** Drawn once by each campaign process, so that no name of an earlier one comes again. */
  readonly token: string;
  readonly run: number;
};

/** Directory of a run on every host: `out` is fetched, `private` never leaves the host. */
export function runDirectoryOn(key: RunKey): string {
  return `${runsDirectory}/${key.token}-${key.run}`;
}

const line = (words: readonly string[]): string => words.map(shellWord).join(" ");

/** How often a host is sampled, and whether the counters of its proxies are among the samples. */
export type Sampling = { readonly intervalSeconds: number; readonly proxies: boolean };

/** Makes the directories, notes the state of the units and starts the sampler. */
export function startScript(
  key: RunKey,
  host: Host,
  deployment: Deployment,
  { intervalSeconds, proxies }: Sampling,
): RemoteScript {
  const directory = runDirectoryOn(key);
  const generator = deployment.entry.host === host.name ? [loadUnitName(key.token, key.run)] : [];
  const units = [...unitsOn(host, deployment), ...generator];
  const interval = `${Math.round(intervalSeconds * 1000)}ms`;
  const sampler = startCommand({
    name: sampleUnitName(key.token, key.run),
    command: [
      `${binaryDirectory}/ztsample`,
      ...["-interval", interval],
      ...["-out", `${directory}/out/samples/${host.name}.txt`],
      ...units.flatMap((unit) => ["-unit", unit]),
      ...containerFlags(host, deployment),
      ...(proxies ? timelineFlags(host, deployment, interval) : []),
    ],
    cpus: host.cpus.system,
    scheduling: "other",
    environment: {},
    errorFile: `${directory}/sampler.log`,
    type: "notify",
  });
  return {
    title: "start of the sampler",
    text: [
      `install -d -m 0755 ${directory}/out/{samples,units,proxies,connections,state}`,
      `install -d -m 0700 ${directory}/private`,
      ...unitLines(key, host, deployment, "before"),
      // What one run learned of its peers is no start for the next; the state tells what stayed.
      "ip tcp_metrics flush 2>/dev/null || true",
      ...stateLines(host, `${directory}/out/state/${host.name}-before.txt`),
      `${line(sampler)} || { cat ${directory}/sampler.log >&2; exit 1; }`,
    ].join("\n"),
    timeoutSeconds: 20,
  };
}

/** Only what tells connections and handshakes: all counters four times a second would be load. */
const timelineCounters = "cx_total|cx_active|ssl.handshake|ssl.session_reused";

function timelineFlags(host: Host, deployment: Deployment, interval: string): string[] {
  const admins = deployment.admin.filter((admin) => admin.host === host.name);
  if (admins.length === 0) return [];
  const query = `usedonly&filter=${encodeURIComponent(timelineCounters)}`;
  return [
    ...["-scrape-every", interval],
    ...admins.flatMap(({ unit, url, networkNamespace }) => [
      "-scrape",
      `${unit}=${url.replace(/\/$/, "")}/stats?${query}${fromNamespace(networkNamespace)}`,
    ]),
  ];
}

/**
 * Asks the proxies of a host for their counters, and the kernel of the host that sends for its
 * connections to the entry, both as raw text; undefined where there is nothing to ask.
 */
export function scrapeScript(
  key: RunKey,
  host: Host,
  deployment: Deployment,
): RemoteScript | undefined {
  const lines = [
    ...connectionLines(key, host, deployment),
    ...scrapeLines(key, host, deployment, "before"),
  ];
  if (lines.length === 0) return undefined;
  return { title: "connections and counters", text: lines.join("\n"), timeoutSeconds: 15 };
}

function connectionLines(key: RunKey, host: Host, { entry }: Deployment): string[] {
  if (entry.host !== host.name) return [];
  const { hostname, port, protocol } = new URL(entry.url);
  const implied = protocol === "https:" ? "443" : "80";
  const peer = `${hostname}:${port === "" ? implied : port}`;
  const file = `${runDirectoryOn(key)}/out/connections/${host.name}-before.txt`;
  const ask = ["ss", "-Htn", "state", "established", "dst", peer];
  return [`${line(inNamespace(entry.networkNamespace, ask))} >${file}`];
}

/** Writes the targets, sends the load, splits warm-up from measured rows; prints what it found. */
export function loadScript(key: RunKey, host: Host, attack: Attack, rr: boolean): RemoteScript {
  const directory = runDirectoryOn(key);
  const log = `${directory}/out/load.log`;
  const common: Omit<TransientUnit, "name" | "command"> = {
    cpus: host.cpus.load,
    ...(host.cpus.load === "" ? {} : { slice: benchSlice }),
    scheduling: rr ? "rr" : "other",
    environment: attack.cpuCount === undefined ? {} : { GOMAXPROCS: String(attack.cpuCount) },
    errorFile: log,
    type: "wait",
    ...(attack.entry.networkNamespace === undefined
      ? {}
      : { networkNamespace: attack.entry.networkNamespace }),
  };
  const start = (name: string, command: readonly string[], traced = {}): string => {
    const environment = { ...common.environment, ...traced };
    const unit = startCommand({ ...common, name, command, environment });
    // A log without other lines is no failure of grep's: the code to tell is the driver's.
    const tell = `{ grep -v '^gc ' ${log} || true; } | tail -n 5 >&2`;
    return `${line(unit)} || { code=$?; ${tell}; exit "$code"; }`;
  };
  const prewarm = prewarmCommand(attack);
  const { load } = attack;
  const seconds =
    load.prewarm.seconds + load.warmupSeconds + load.durationSeconds + 2 * load.timeoutSeconds;
  return {
    title: "load",
    text: [
      // Tokens are in the targets: they go as soon as they are not needed.
      `trap 'rm -rf ${directory}/private' EXIT`,
      line(targetsCommand(attack.entry, attack.files.targets)),
      ...(prewarm === undefined ? [] : [start(prewarmUnitName(key.token, key.run), prewarm)]),
      // Go then tells the pauses of each garbage collection in a line of the log.
      start(loadUnitName(key.token, key.run), attackCommand(attack), { GODEBUG: "gctrace=1" }),
      `rm -f ${attack.files.targets}`,
      line(splitCommand(attack, `${directory}/out`)),
    ].join("\n"),
    timeoutSeconds: Math.ceil(seconds) + 60,
  };
}

/** Where the files of an attack lie on the host that sends. */
export function loadFiles(key: RunKey): Attack["files"] {
  const directory = `${runDirectoryOn(key)}/private`;
  return {
    targets: `${directory}/targets`,
    records: `${directory}/records`,
    plan: `${directory}/plan.json`,
    prewarm: `${directory}/prewarm`,
  };
}

/** Stops the sampler, notes counters and units once more, and prints all files as a tar stream. */
export function collectScript(key: RunKey, host: Host, deployment: Deployment): RemoteScript {
  const directory = runDirectoryOn(key);
  const sampler = sampleUnitName(key.token, key.run);
  return {
    title: "collection of results",
    text: [
      `systemctl is-active --quiet ${sampler} || {`,
      `  echo "the sampler ended early: $(tail -n 3 ${directory}/sampler.log)" >&2`,
      "  exit 1",
      "}",
      ...scrapeLines(key, host, deployment, "after"),
      `systemctl stop ${sampler}`,
      ...unitLines(key, host, deployment, "after"),
      ...stateLines(host, `${directory}/out/state/${host.name}-after.txt`),
      ...connectLines(key, host, deployment),
      `tar -C ${directory}/out -cf - .`,
    ].join("\n"),
    timeoutSeconds: 60,
  };
}

/**
 * A few requests on connections of their own, after everything else was read: what a connection
 * costs, apart from what requests do, and whether answers are what the plan wants.
 */
function connectLines(key: RunKey, host: Host, { entry }: Deployment): string[] {
  if (entry.host !== host.name) return [];
  const directory = runDirectoryOn(key);
  const { targets } = loadFiles(key);
  const file = `${directory}/out/connect.json`;
  const connect = inNamespace(entry.networkNamespace, connectCommand(entry, targets, file));
  const commands = [targetsCommand(entry, targets), connect];
  return [
    `install -d -m 0700 ${directory}/private`,
    // Of a path that is gone there is nothing to learn, and the run says so by itself.
    `{ ${commands.map(line).join(" && ")}; } 2>>${directory}/out/connect.log || true`,
    `rm -f ${targets}`,
  ];
}

/** Stops what a run may have left running, and removes its files; done when nothing is there. */
export function clearScript(key: RunKey): RemoteScript {
  const names = [loadUnitName, prewarmUnitName, sampleUnitName];
  const units = names.map((name) => name(key.token, key.run));
  return {
    title: "clearing of a run",
    text: [...units.map(stopLine), `rm -rf ${runDirectoryOn(key)}`].join("\n"),
    timeoutSeconds: 20,
  };
}

/** Clears what campaigns that were killed left on a host, and prints the names of their units. */
export function sweepScript(): RemoteScript {
  const patterns = unitPrefixes.map((prefix) => `'${prefix}*'`).join(" ");
  return {
    title: "clearing of earlier campaigns",
    text: [
      `units=$(systemctl list-units --all --plain --no-legend ${patterns} | cut -d' ' -f1)`,
      "for unit in $units; do",
      `  ${stopLine('"$unit"')}`,
      '  systemctl reset-failed "$unit" 2>/dev/null || true',
      '  echo "$unit"',
      "done",
      `rm -rf ${runsDirectory}`,
    ].join("\n"),
    timeoutSeconds: 30,
  };
}

/** Stopping what is not there is an error to systemctl and none to us; what stays is one. */
function stopLine(unit: string): string {
  const stopped = `systemctl stop ${unit} 2>/dev/null || ! systemctl is-active --quiet ${unit}`;
  return `${stopped} || { echo ${unit} does not stop >&2; exit 1; }`;
}

/** Units of systemd; those of a cluster are no business of the host's service manager. */
function unitsOn(host: Host, deployment: Deployment): string[] {
  return deployment.units
    .filter((unit) => unit.host === host.name && unit.cgroup === undefined)
    .map((unit) => unit.name);
}

function containersOn(host: Host, deployment: Deployment) {
  const { cluster, units } = deployment;
  if (cluster === undefined) return [];
  return units.flatMap(({ name, host: place, cgroup }) =>
    place === host.name && cgroup !== undefined ? [{ name, cgroup }] : [],
  );
}

function containerFlags(host: Host, deployment: Deployment): string[] {
  const containers = containersOn(host, deployment);
  if (containers.length === 0) return [];
  return [
    ...["-group-root", deployment.cluster?.cgroupRoot ?? ""],
    ...containers.flatMap(({ name, cgroup }) => ["-unit", `${name}=${cgroup}`]),
  ];
}

/** For a scrape by the sampler. */
function fromNamespace(networkNamespace: string | undefined): string {
  return networkNamespace === undefined ? "" : `@${networkNamespace}`;
}

/** What systemd knows of the units; a unit that is another process afterwards has died. */
function unitLines(
  key: RunKey,
  host: Host,
  deployment: Deployment,
  when: "before" | "after",
): string[] {
  const units = unitsOn(host, deployment);
  const containers = containersOn(host, deployment);
  if (units.length + containers.length === 0) return [];
  const properties = "Id,ActiveState,SubState,MainPID,NRestarts,InvocationID";
  const file = `${runDirectoryOn(key)}/out/units/${host.name}-${when}.txt`;
  return [
    units.length === 0
      ? `: >${file}`
      : `systemctl show -p ${properties} -- ${line(units)} >${file}`,
    ...containers.map(({ name, cgroup }) => containerState(name, cgroup, file)),
  ];
}

/**
 * The same of a container, which the kernel knows by its group: it is never restarted, so it is
 * alive as long as its first process is.
 */
function containerState(name: string, cgroup: string, file: string): string {
  // None found is a result, and a process that ends under grep's eyes is no failure either.
  const found = `{ grep -ls ${shellWord(cgroup)} /proc/[0-9]*/cgroup || true; }`;
  const oldest = `${found} | sort -V | sed -n 1p`;
  return [
    `process=$(${oldest} | cut -d/ -f3)`,
    `printf '\\nId=%s\\nActiveState=%s\\nMainPID=%s\\n' ${shellWord(name)} ` +
      `"\${process:+active}" "$process" >>${file}`,
  ].join("\n");
}

function scrapeLines(
  key: RunKey,
  host: Host,
  deployment: Deployment,
  when: "before" | "after",
): string[] {
  const once = (unit: string, scrapes: readonly string[]): string => {
    const file = `${runDirectoryOn(key)}/out/proxies/${unit}-${when}.txt`;
    const flags = scrapes.flatMap((scrape) => ["-scrape", scrape]);
    const asked = line([`${binaryDirectory}/ztsample`, "-once", ...flags, "-out", file]);
    // One that has died cannot answer. That is in the file then, and its unit's state says so.
    return when === "before" ? asked : `${asked} || true`;
  };
  const here = (endpoint: { readonly host: string }) => endpoint.host === host.name;
  const services = deployment.statistics ?? [];
  return [
    ...deployment.admin.filter(here).map(({ unit, url, networkNamespace }) => {
      const base = url.replace(/\/$/, "");
      const from = fromNamespace(networkNamespace);
      const pages = ["stats", "server_info", "certs"];
      return once(
        unit,
        pages.map((name) => `${name}=${base}/${name}${from}`),
      );
    }),
    ...services
      .filter(here)
      .map(({ unit, url, networkNamespace }) =>
        once(unit, [`service=${url}${fromNamespace(networkNamespace)}`]),
      ),
  ];
}
