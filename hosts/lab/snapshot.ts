/**
 * What a lab has on the machine, and what of the machine a lab could have changed: taken before
 * and after, the difference proves that nothing is left. Reads only.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { cgroupDirectories } from "./cgroups.ts";
import { attempt } from "./command.ts";
import { highestNetwork, layLab, namespacesOf, type LabLayout } from "./layout.ts";
import type { Lab } from "./options.ts";
import { isSupervisor, isWatcher, listProcesses, namespaceInode } from "./processes.ts";
import { ownLinks } from "./state.ts";

/** Lines of the machine's state by section, each section sorted. */
export type Snapshot = Readonly<Record<SnapshotSection, readonly string[]>>;

const sections = [
  "links",
  "addresses",
  "routes",
  "rules",
  "namespaces",
  "mounts",
  "nftTables",
  "sysctls",
  "cgroups",
  "processes",
  "files",
] as const;
export type SnapshotSection = (typeof sections)[number];

/** Sections in which every line counts, whoever it mentions; in the others only the lab's do. */
const machineWide: ReadonlySet<SnapshotSection> = new Set([
  "rules",
  "mounts",
  "sysctls",
  "files",
] as const);

const sysctlPattern = String.raw`^(net\.(ipv4|ipv6|core|bridge)[._]|kernel\.(sched|panic)|vm[._])`;
const perLink = /^net\.ipv[46]\.(?:conf|neigh)\.(?!all\.|default\.|lo\.)/;
const labPattern = /ztlab-([a-z0-9]+)|ztbench lab ([a-z0-9]+)|\/ztbench-lab\/([a-z0-9]+)/;
/** Mounts elsewhere belong to other people. */
const mountPattern = /\/run\/netns|\/run\/systemd|^\/tmp\/nspawn|^\/sys|^\/proc|ztbench|ztlab/;

/** Takes a snapshot of everything a lab could touch. */
export async function takeSnapshot(): Promise<Snapshot> {
  const lines = async (...argv: string[]): Promise<string[]> => {
    const { output } = await attempt(argv);
    return output.split("\n").filter((line) => line.trim() !== "");
  };
  const mountinfo = await readFile("/proc/self/mountinfo", "utf8");
  const sysctls = await lines("sysctl", "-a", "-r", sysctlPattern);
  const taken: Record<SnapshotSection, string[]> = {
    links: (await lines("ip", "-oneline", "link")).map(describeLink),
    addresses: (await lines("ip", "-oneline", "address")).map((line) =>
      line
        .replace(/^\d+: /, "")
        .replace(/\\.*/, "")
        .trim(),
    ),
    routes: await lines("ip", "-4", "route", "show", "table", "all"),
    rules: await lines("ip", "rule"),
    namespaces: await entries("/run/netns"),
    mounts: mountinfo
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => mountPattern.test(path)),
    nftTables: await lines("nft", "list", "tables"),
    sysctls: sysctls.filter((line) => line.includes(" = ") && !perLink.test(line)),
    cgroups: (await Promise.all((await cgroupDirectories("")).map(entries))).flat(),
    processes: (await listProcesses()).map((process) => process.argv.join(" ")),
    files: await readFiles(),
  };
  for (const section of sections) taken[section].sort();
  return taken;
}

/**
 * What differs between two snapshots and may be the lab's doing. Objects of other labs and of
 * other people come and go without notice.
 * @returns lines such as `+ links: labt-client`, `-` for what has vanished
 */
export function differences(before: Snapshot, after: Snapshot, layout: LabLayout): string[] {
  const othersUp = [...before.namespaces, ...after.namespaces].some((name) =>
    isOfAnotherLab(name, layout),
  );
  return sections.flatMap((section) => {
    const counts = (line: string): boolean => {
      if (isOfAnotherLab(line, layout)) return false;
      // The first lab on a machine makes this mount, the last one removes it.
      if (othersUp && line.startsWith("/run/netns")) return false;
      return machineWide.has(section) || mentions(line, layout);
    };
    const only = (from: readonly string[], other: readonly string[], sign: string): string[] =>
      from
        .filter((line) => !other.includes(line) && counts(line))
        .map((line) => `${sign} ${section}: ${line}`);
    return [
      ...only(after[section], before[section], "+"),
      ...only(before[section], after[section], "-"),
    ];
  });
}

/** What a lab has on the machine now, as lines for people; empty when it is down. */
export async function tracesOf(lab: Lab): Promise<string[]> {
  const { layout } = lab;
  const traces: string[] = [];
  const processes = await listProcesses();
  const namespaces = await entries("/run/netns");
  const inodes = new Set<string>();
  for (const name of namespacesOf(layout)) {
    const inode = await namespaceInode(name);
    if (inode !== undefined) inodes.add(inode);
    if (namespaces.includes(name)) traces.push(`namespace ${name}`);
  }
  for (const { machine } of layout.hosts) {
    const found = processes.filter((p) => isSupervisor(p, machine) || isWatcher(p, machine));
    traces.push(...found.map((process) => `process ${process.pid} of ${machine}`));
  }
  const inside = processes.filter((p) => inodes.has(p.networkNamespace ?? "")).length;
  if (inside > 0) traces.push(`${inside} processes in its namespaces`);
  traces.push(...(await ownLinks(lab)).map((link) => `link ${link.name}`));
  const table = await attempt(["nft", "list", "table", "netdev", layout.prefix]);
  if (table.exitCode === 0) traces.push(`nft table netdev ${layout.prefix}`);
  const paths = [...(await cgroupDirectories(layout.prefix)), lab.runDir, lab.paths.persistent];
  for (const path of paths) {
    if (await exists(path)) traces.push(`directory ${path}`);
  }
  return traces;
}

/** Name and alias; flags and counters change by themselves. */
function describeLink(line: string): string {
  const name = /^\d+: ([^:@]+)/.exec(line)?.[1] ?? line;
  const alias = /\balias ([^\\]+)/.exec(line)?.[1];
  return alias === undefined ? name : `${name} (${alias.trim()})`;
}

function isOfAnotherLab(line: string, layout: LabLayout): boolean {
  const found = labPattern.exec(line);
  const name = found?.[1] ?? found?.[2] ?? found?.[3];
  if (name !== undefined) return name !== layout.name;
  return otherSubnets(layout).some((subnet) => line.includes(subnet));
}

/** First three octets of the management subnets that this lab does not use. */
function otherSubnets(layout: LabLayout): string[] {
  return Array.from({ length: highestNetwork + 1 }, (_, network) => network)
    .filter((network) => network !== layout.network)
    .map((network) => layLab(layout.name, network).managementSubnet.replace(/0\/24$/, ""));
}

function mentions(line: string, layout: LabLayout): boolean {
  const names = layout.hosts.map((host) => host.link);
  const range = layout.managementSubnet.replace(/0\/24$/, "");
  const tokens = [layout.prefix, layout.linkAlias, range, "198.18.0.", ...names];
  return line.startsWith("default ") || tokens.some((token) => line.includes(token));
}

async function readFiles(): Promise<string[]> {
  const nspawn = await entries("/run/systemd/nspawn");
  const below = await Promise.all(
    nspawn.map(async (directory) => {
      const path = join("/run/systemd/nspawn", directory);
      return (await entries(path)).map((entry) => join(path, entry));
    }),
  );
  const temporary = (await entries("/tmp")).filter((entry) => entry.startsWith("nspawn"));
  const runs = await entries("/run/ztbench-lab");
  return [
    ...below.flat(),
    ...temporary.map((entry) => join("/tmp", entry)),
    ...runs.map((entry) => join("/run/ztbench-lab", entry)),
    ...((await exists("/run/netns")) ? ["/run/netns"] : []),
  ];
}

async function entries(path: string): Promise<string[]> {
  return readdir(path).catch(() => []);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
