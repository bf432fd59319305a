/**
 * Puts the files, units and packet filter of a deployment on one host, and takes them off again.
 * Pure: renders the script that does it.
 */
import { createHash } from "node:crypto";
import type { HostScript } from "./runner.ts";
import { quote, shellPart } from "./shell.ts";

export type PayloadFile = {
  readonly path: string;
  /** Four octal digits. */
  readonly mode: string;
  readonly content: string;
};

export type PayloadUnit = {
  /** With its suffix, e.g. `ztbench-service.service`. */
  readonly name: string;
  readonly text: string;
  /** TCP ports it must listen on before it counts as started; they must be free before. */
  readonly listens: readonly number[];
};

/** Something done to a host that is neither file nor unit, as bodies of bash functions. */
export type PayloadStep = {
  /** Runs once the files are there, before any unit starts. */
  readonly make: string;
  /** Runs once all units have stopped, also after a `make` that never ran or broke off. */
  readonly undo: string;
  /** Prints a line for each thing that `undo` should have taken away; read-only. */
  readonly left: string;
};

export type HostPayload = {
  /** Name of the host. */
  readonly host: string;
  /** Tells payloads of one host apart; `payload` if absent. */
  readonly name?: string;
  /** Directory on the host that holds all files; removed whole. */
  readonly root: string;
  /** Further directories inside the root. */
  readonly directories: readonly { readonly path: string; readonly mode: string }[];
  readonly files: readonly PayloadFile[];
  /** In the order in which they are started. */
  readonly units: readonly PayloadUnit[];
  /** How long a started unit may take until it listens on all of its ports; 10 if absent. */
  readonly listenSeconds?: number;
  /** An nftables table of our own, e.g. `inet ztbench`, with the text that makes it. */
  readonly firewall?: { readonly table: string; readonly text: string };
  /** In the order in which they are made; undone in reverse. */
  readonly steps?: readonly PayloadStep[];
  /**
   * Bash variables for the steps, each with the id of the payload that gives its value: what that
   * one's steps have written to `$root/printed`. It travels in the open, so it is never secret.
   */
  readonly receives?: Readonly<Record<string, string>>;
  /** Ids of the payloads that must run before this one is put on. */
  readonly after: readonly string[];
};

/** Names a payload among all of a deployment. */
export function payloadIdOf({ host, name }: Pick<HostPayload, "host" | "name">): string {
  return `${host}-${name ?? "payload"}`;
}

/** Where the host's service manager looks for units that do not outlive a reboot. */
const unitDirectory = "/run/systemd/system";

const defaultListenSeconds = 10;

/** How long to wait for a script that an interrupted engine has left running, seconds. */
const lockSeconds = 30;

/**
 * The script that puts a payload on its host. `create` changes nothing if a port is taken, and
 * takes off whatever it made if a unit fails; a payload that runs already is left as it is.
 * `remove` fails if anything is left, and succeeds if nothing was there.
 */
export function renderPayload(payload: HostPayload): HostScript {
  return {
    prelude: renderPrelude(payload),
    create: renderCreate(payload),
    remove: "alone\nremove_all",
  };
}

/**
 * Adds to a script that is undone last: its `remove` first takes off whatever is still in these
 * roots, by the manifests there. That is what an interrupted engine left, which it knows nothing
 * of.
 */
export function withSweep(script: HostScript, host: string, ...roots: string[]): HostScript {
  const nothing = { host, root: "", directories: [], files: [], units: [], after: [] };
  const sweeps = roots.map((root) => `sweep_payload ${quote(root)}`);
  return {
    ...script,
    prelude: `${renderPrelude(nothing)}\n${script.prelude ?? ""}`,
    remove: ["alone", ...sweeps, script.remove ?? ""].join("\n"),
  };
}

/** sha256 over all that is put on a host, hexadecimal. */
export function digestOf(payload: unknown): string {
  return createHash("sha256").update(JSON.stringify(payload)).digest("hex");
}

function renderPrelude(payload: HostPayload): string {
  const ports = payload.units.flatMap((unit) => unit.listens.map(String));
  const steps = payload.steps ?? [];
  const words = (values: readonly string[]) => `(${values.map(quote).join(" ")})`;
  return [
    `host=${quote(payload.host)}`,
    `root=${quote(payload.root)}`,
    `digest=${digestOf(payload)}`,
    ...Object.keys(payload.receives ?? {}).map(addToDigest),
    `table=${quote(payload.firewall?.table ?? "")}`,
    `unit_directory=${unitDirectory}`,
    `listen_seconds=${payload.listenSeconds ?? defaultListenSeconds}`,
    `lock_seconds=${lockSeconds}`,
    `units=${words(payload.units.map((unit) => unit.name))}`,
    `ports=${words(ports)}`,
    shellPart("payload"),
    ...renderSteps(
      "undo_steps",
      [...steps].reverse().map(({ undo }) => undo),
    ),
    ...renderSteps(
      "steps_left",
      steps.map(({ left }) => left),
    ),
  ].join("\n");
}

function renderCreate(payload: HostPayload): string {
  const { directories, files, units, firewall } = payload;
  const filterFile = `${payload.root}/firewall.nft`;
  const made = [
    ...directories.map((directory) => directory.path),
    ...files.map((file) => file.path.slice(0, file.path.lastIndexOf("/"))),
  ];
  const inside = [...new Set(made)].filter((path) => path !== payload.root);
  const modes = new Map<string, string[]>();
  for (const { path, mode } of [...directories, ...files]) {
    modes.set(mode, [...(modes.get(mode) ?? []), quote(path)]);
  }
  return [
    "alone",
    "if already_running; then print_result; return 0; fi",
    '(sweep_payload "$root")',
    "check_free",
    "trap 'undo $?' EXIT",
    // Nothing is readable by others until its own mode says so.
    "umask 077",
    `mkdir -p "$root"${inside.map((path) => ` ${quote(path)}`).join("")}`,
    // First of all files, so that an interrupted attempt is known as ours.
    'manifest >"$root/payload"',
    ...files.map((file) => renderWrite(file.path, file.content)),
    ...[...modes].map(([mode, paths]) => `chmod ${mode} ${paths.join(" ")}`),
    ...(firewall === undefined
      ? []
      : [renderWrite(filterFile, firewall.text), `nft -f ${quote(filterFile)}`]),
    ...((payload.steps ?? []).length === 0 ? [] : [rememberSteps]),
    ...(payload.steps ?? []).map(({ make }) => make),
    ...renderUnits(units),
    "trap - EXIT",
    "print_result",
  ].join("\n");
}

/** For a sweep, which does not know the payload. */
const rememberSteps = 'declare -f undo_steps steps_left >"$root/steps"';

/** A bash function of these bodies; none where there are none, since the shell part has it. */
function renderSteps(name: string, bodies: readonly string[]): string[] {
  return bodies.length === 0 ? [] : [`${name}() {\n${bodies.join("\n")}\n}`];
}

/** A payload that was given something else is another one. */
function addToDigest(variable: string): string {
  return `digest+=-$(sha256sum <<<"$${variable}" | cut -c1-16)`;
}

function renderUnits(units: readonly PayloadUnit[]): string[] {
  if (units.length === 0) return [];
  return [
    // The service manager complains of units that others may not read.
    "umask 022",
    'mkdir -p "$unit_directory"',
    ...units.map((unit) => renderWrite(`${unitDirectory}/${unit.name}`, unit.text)),
    "load_units",
    ...units.map((unit) => `start ${[unit.name, ...unit.listens].join(" ")}`),
  ];
}

function renderWrite(path: string, content: string): string {
  return `printf %s ${quote(content)} >${quote(path)}`;
}
