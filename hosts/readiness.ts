/**
 * Renders the first script of a host: see that it is what the testbed document says, install what
 * is missing, and at the end of everything sweep up. Pure.
 */
import { Failure } from "../contracts/failure.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import { parseCpuList } from "../contracts/cpu-list.ts";
import { requiredPackages } from "./packages.ts";
import { preflightPrelude } from "./preflight.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderTable, shellPart } from "./shell.ts";
import { tuningParts } from "./tuning.ts";

const ownParts = ["packages", "boot", "readiness"] as const;

/**
 * Checks user, service manager, the preflight and CPUs, then packages, address and paths. `create`
 * prints what `parsePreflight` reads, and changes nothing on a host that is refused before packages
 * come. `remove` takes away the packages that `create` installed, restores what an interrupted run
 * left, and refuses while a lease is held or a cluster is there.
 *
 * @param packages Debian packages that must be there
 */
export function renderReadiness(
  testbed: Testbed,
  host: Host,
  packages: readonly string[] = requiredPackages,
): HostScript {
  const cpus = [...new Set(Object.values(host.cpus).flatMap(parseCpuList))];
  return {
    prelude: [
      `host=${quote(host.name)}`,
      renderTable(
        "packages",
        packages.map((name) => [packageName(name)]),
      ),
      ...[...tuningParts, ...ownParts].map(shellPart),
      ...preflightPrelude(testbed, host),
    ].join("\n"),
    create: [
      "require_root",
      "require_systemd",
      "preflight host",
      `require_cpus ${cpus.join(" ")}`.trimEnd(),
      "packages_create",
      `require_address ${quote(host.nic)} ${quote(host.dataAddress)}`,
      "preflight path",
    ].join("\n"),
    remove: ["refuse_while_leased", "refuse_while_clustered", "packages_remove", "sweep"].join(
      "\n",
    ),
  };
}

function packageName(name: string): string {
  if (/^[a-z0-9][a-z0-9+.-]+$/.test(name)) return name;
  throw new Failure("document", `package: not a Debian package name, found "${name}"`);
}

/**
 * Refuses to let go of a host while a topology, a campaign or a cluster holds it. As a resource
 * that depends on all others it is removed first, so that nothing is undone before it has agreed.
 */
export function renderGuard(host: Host): HostScript {
  return {
    prelude: [`host=${quote(host.name)}`, shellPart("lease")].join("\n"),
    create: ":",
    remove: "refuse_while_leased\nrefuse_while_clustered",
  };
}
