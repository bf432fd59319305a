/** What a caller may choose about a lab, with its defaults, and the paths that follow from it. */
import { isAbsolute, join } from "node:path";
import { Failure } from "../../contracts/failure.ts";
import type { Role } from "../../contracts/testbed.ts";
import { layLab, type LabLayout } from "./layout.ts";
import type { LabProfile } from "./profile.ts";

export type LabOptions = {
  /** Prefix of everything the lab makes; lower case letters and digits, at most 7. */
  readonly name: string;
  /** Management subnet 198.18.(16 + network).0/24; 0 to 15. */
  readonly network: number;
  /** What the hosts can be used for. */
  readonly profile: LabProfile;
  /** Holds the base root, keys and the hosts' persistent directories; outside any clone. */
  readonly stateDir: string;
  /** Holds logs and the state of a running lab; gone after `labDown`. */
  readonly runDir: string;
  /** Called with one line for each step, without a line break. */
  readonly progress: (line: string) => void;
};

export type Lab = LabOptions & { readonly layout: LabLayout; readonly paths: LabPaths };

export type LabPaths = {
  readonly lock: string;
  readonly keys: string;
  readonly sshConfig: string;
  readonly state: string;
  /** Parent of the hosts' persistent directories. */
  readonly persistent: string;
  readonly persistentOf: (role: Role) => string;
  readonly logOf: (role: Role) => string;
};

/**
 * Fills in defaults and derives layout and paths.
 * @throws Failure `usage` for a name or network that cannot be used, `testbed` for a directory
 */
export function openLab(given: Partial<LabOptions>, environment = process.env): Lab {
  const name = given.name ?? "lab";
  const network = given.network ?? 0;
  const profile = given.profile ?? "native";
  const layout = layLab(name, network, profile);
  const stateDir = given.stateDir ?? environment["ZTBENCH_LAB_STATE"] ?? "/var/lib/ztbench-lab";
  const runDir = given.runDir ?? `/run/ztbench-lab/${name}`;
  checkDirectory("state directory", stateDir);
  checkDirectory("run directory", runDir);
  const progress = given.progress ?? (() => undefined);
  return {
    name,
    network,
    profile,
    stateDir,
    runDir,
    progress,
    layout,
    paths: pathsOf(name, stateDir, runDir),
  };
}

function pathsOf(name: string, stateDir: string, runDir: string): LabPaths {
  const keys = join(stateDir, name, "keys");
  // Not below the run directory: /run is mounted noexec on stock Debian, and programs of the
  // hosts live here.
  const persistent = join(stateDir, name, "hosts");
  return {
    lock: join(stateDir, `${name}.lock`),
    keys,
    sshConfig: join(keys, "ssh_config"),
    state: join(runDir, "state.json"),
    persistent,
    persistentOf: (role) => join(persistent, role),
    logOf: (role) => join(runDir, `${role}.log`),
  };
}

/** nspawn splits bind arguments at colons, and a relative path would follow the caller about. */
function checkDirectory(subject: string, path: string): void {
  if (!isAbsolute(path) || /[:\s]/.test(path) || path === "/") {
    throw new Failure(
      "testbed",
      `lab ${subject}: not usable, "${path}", allowed is an absolute path without spaces or colons`,
    );
  }
}
