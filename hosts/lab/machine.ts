/** Checks that this machine can hold the lab, before anything on it is changed. */
import { access, constants, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../../contracts/failure.ts";
import { overlaps } from "../../contracts/ipv4.ts";
import { commandEnvironment, demand } from "./command.ts";
import type { LabLayout } from "./layout.ts";
import { persistentArgument } from "./nspawn.ts";
import type { Lab } from "./options.ts";
import { isSupervisor, type FoundProcess } from "./processes.ts";

/** Program and the Debian package it comes from. */
const programs: Readonly<Record<string, string>> = {
  "dpkg-query": "dpkg",
  flock: "util-linux",
  ip: "iproute2",
  mmdebstrap: "mmdebstrap",
  nft: "nftables",
  setpriv: "util-linux",
  ssh: "openssh-client",
  "ssh-keygen": "openssh-client",
  sysctl: "procps",
  "systemd-nspawn": "systemd-container",
  unshare: "util-linux",
};

/** @throws Failure `testbed` unless run by root */
export function checkRoot(userId = process.getuid?.()): void {
  if (userId === 0) return;
  throw new Failure(
    "testbed",
    `lab: needs root, run by user id ${userId ?? "unknown"}, 0 expected`,
    {
      hint: "run the same command with sudo",
    },
  );
}

/**
 * Checks that every program the lab calls is there.
 * @param path directories to search, separated by colons
 * @throws Failure `testbed` naming all missing programs with their packages
 */
export async function checkPrograms(path = commandEnvironment()["PATH"] ?? ""): Promise<void> {
  const directories = path.split(":").filter((directory) => directory !== "");
  const missing: string[] = [];
  for (const [program, debianPackage] of Object.entries(programs)) {
    const places = await Promise.all(
      directories.map((directory) =>
        access(join(directory, program), constants.X_OK).then(
          () => true,
          () => false,
        ),
      ),
    );
    if (!places.includes(true)) missing.push(`${program} (package ${debianPackage})`);
  }
  if (missing.length === 0) return;
  throw new Failure("testbed", `lab: missing programs, ${missing.join(", ")}`, {
    hint: "make tools",
  });
}

/**
 * Refuses to touch a lab of the same name that was started from another state directory.
 * @throws Failure `testbed` naming the other directory
 */
export function checkOwner(lab: Lab, processes: readonly FoundProcess[]): void {
  for (const host of lab.layout.hosts) {
    const own = persistentArgument(lab.paths.persistentOf(host.role));
    const foreign = processes.find(
      (process) => isSupervisor(process, host.machine) && !process.argv.includes(own),
    );
    if (foreign === undefined) continue;
    const bind = foreign.argv.find((word) => word.startsWith("--bind=")) ?? "";
    const seen = bind.slice("--bind=".length).split(":")[0] ?? "";
    throw new Failure(
      "testbed",
      `lab ${lab.name}: already up from another state directory, host data in ${seen}, ` +
        `this one is ${lab.stateDir}`,
      { hint: "use another name and network, or take that lab down with its own settings" },
    );
  }
}

export type AddressEntry = {
  readonly ifname: string;
  readonly ifalias?: string;
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number }[];
};
export type RouteEntry = { readonly dst?: string; readonly dev?: string };

/** Refuses a management range that the machine already uses for something else. */
export async function checkRange(layout: LabLayout): Promise<void> {
  const [addresses, routes] = await Promise.all([
    demand(["ip", "-json", "-4", "address"]),
    demand(["ip", "-json", "-4", "route", "show", "table", "all"]),
  ]);
  const conflict = rangeConflict(
    JSON.parse(addresses) as AddressEntry[],
    JSON.parse(routes) as RouteEntry[],
    layout,
  );
  if (conflict === undefined) return;
  throw new Failure(
    "testbed",
    `lab ${layout.name}: address range ${layout.managementSubnet} is in use, ${conflict}`,
    { hint: "choose another network number for the lab" },
  );
}

/** What uses the lab's management range, other than the lab itself; undefined if nothing does. */
export function rangeConflict(
  addresses: readonly AddressEntry[],
  routes: readonly RouteEntry[],
  layout: LabLayout,
): string | undefined {
  const own = new Set(layout.hosts.map((host) => host.link));
  for (const { ifname, addr_info: entries } of addresses) {
    if (own.has(ifname)) continue;
    for (const { local, prefixlen } of entries ?? []) {
      if (local !== undefined && overlaps(`${local}/${prefixlen ?? 32}`, layout.managementSubnet)) {
        return `address ${local}/${prefixlen ?? 32} on ${ifname}`;
      }
    }
  }
  for (const { dst, dev } of routes) {
    if (dst === undefined || dst === "default" || (dev !== undefined && own.has(dev))) continue;
    if (overlaps(dst, layout.managementSubnet)) return `route ${dst} on ${dev ?? "no device"}`;
  }
  return undefined;
}

/** Whether systemd runs this machine, so that hosts become services. */
export async function isRunBySystemd(): Promise<boolean> {
  const name = await readFile("/proc/1/comm", "utf8");
  return name.trim() === "systemd";
}

/** Changes with every boot of the machine. */
export async function machineBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
