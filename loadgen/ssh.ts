/** The door to the hosts for the load side: scripts and files over OpenSSH, driven by zx. */
import { constants } from "node:fs";
import { access, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { type Host, hostNamed, type Testbed } from "../contracts/testbed.ts";
import { renderKnownHosts, renderSshConfig } from "./ssh-config.ts";
import { sshFailure } from "./ssh-failure.ts";

export type RemoteScript = {
  /** What it does, for messages: "start of the sampler". */
  readonly title: string;
  /** Bash program; it arrives on standard input, so its commands must not read that. */
  readonly text: string;
  /** Its `$1`, `$2`, ...; visible to every user of the host, so never secrets. */
  readonly arguments?: readonly string[];
  /** Time after which the host ends it, and shortly after that the connection is given up. */
  readonly timeoutSeconds: number;
};

export type Output = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs things on the hosts of one testbed, by host name. */
export type Transport = {
  /**
   * @returns what the script printed and its exit code, whatever that is
   * @throws Failure `testbed` if the host is not reached or the time is up, `interrupted` on abort
   */
  run(host: string, script: RemoteScript, signal: AbortSignal): Promise<Output>;
  /**
   * Unpacks the tar stream that the script prints into a local directory, made if needed.
   *
   * @throws Failure as `run`, and `testbed` if the script fails
   */
  fetch(host: string, script: RemoteScript, directory: string, signal: AbortSignal): Promise<void>;
  /** Closes the connections; running scripts lose their reader. */
  close(): Promise<void>;
};

const busyHint = "check the load of the host and its journal";

/** Over its own deadline the host has this long to say so. */
const graceSeconds = 5;

/**
 * Opens nothing yet: the first use of a host logs in, later ones share that connection.
 *
 * @throws Failure `testbed` if a private key cannot be read
 */
export async function openTransport(testbed: Testbed): Promise<Transport> {
  await checkIdentities(testbed.hosts);
  const directory = await mkdtemp(join(tmpdir(), "ztb-"));
  const config = join(directory, "config");
  await writeFile(join(directory, "known_hosts"), renderKnownHosts(testbed));
  await writeFile(config, renderSshConfig(testbed, directory));
  const used = new Set<string>();
  return {
    async run(name, script, signal) {
      used.add(name);
      const output = await spawn(hostNamed(testbed, name), config, script, signal);
      return output;
    },
    async fetch(name, script, target, signal) {
      used.add(name);
      await mkdir(target, { recursive: true });
      const output = await spawn(hostNamed(testbed, name), config, script, signal, target);
      if (output.code !== 0) throw scriptFailure(name, script, output);
    },
    async close() {
      const quit = [...used].map(
        (name) =>
          $({ nothrow: true, quiet: true, timeout: "5s" })`ssh -F ${config} -O exit ${name}`,
      );
      await Promise.all(quit);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Runs a script that must succeed and returns what it printed. */
export async function runChecked(
  transport: Transport,
  host: string,
  script: RemoteScript,
  signal: AbortSignal,
): Promise<string> {
  const output = await transport.run(host, script, signal);
  if (output.code !== 0) throw scriptFailure(host, script, output);
  return output.stdout;
}

/** A script that ended with another code than 0, with the last lines it printed. */
export function scriptFailure(host: string, script: RemoteScript, output: Output): Failure {
  const lines = output.stderr.trim().split("\n").slice(-4).join("; ");
  const shown = lines === "" ? "no message" : lines.slice(-600);
  return new Failure(
    "testbed",
    `host ${host}: ${script.title} failed, exit code ${output.code}, ${shown}`,
    { hint: "the message is the host's own; its journal may say more" },
  );
}

async function spawn(
  host: Host,
  config: string,
  script: RemoteScript,
  signal: AbortSignal,
  unpackInto?: string,
): Promise<Output> {
  if (isAborted(signal)) throw ended(host, script, signal);
  const words = (script.arguments ?? []).map(shellWord).join(" ");
  const command = `timeout ${script.timeoutSeconds} bash -s -- ${words}`;
  const deadline = AbortSignal.timeout((script.timeoutSeconds + graceSeconds) * 1000);
  const shell = $({
    input: `set -euo pipefail\n${script.text}\n`,
    signal: AbortSignal.any([signal, deadline]),
    nothrow: true,
    quiet: true,
    // Ctrl-C reaches ztbench alone, which then ends things on the hosts in order.
    detached: true,
  });
  // Without its first part's exit code a pipe would blame tar for a host that is gone.
  const output =
    unpackInto === undefined
      ? await shell`ssh -F ${config} ${host.name} ${command}`
      : await shell`ssh -F ${config} ${host.name} ${command} |
          tar -x --no-same-owner -C ${unpackInto} || {
            codes=("\${PIPESTATUS[@]}")
            exit "$((codes[0] ? codes[0] : codes[1]))"
          }`;
  if (isAborted(signal)) throw ended(host, script, signal);
  // 124 is `timeout`'s word for a script that was ended by the host.
  if (deadline.aborted || output.exitCode === 124) throw late(host, script);
  if (output.exitCode === 255) throw sshFailure(host, output.stderr);
  return { code: output.exitCode ?? 1, stdout: output.stdout, stderr: output.stderr };
}

/** A call, since the compiler takes a property for constant while nothing is seen to change it. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** By the user, or by a bound on all that its caller does. */
function ended(host: Host, script: RemoteScript, signal: AbortSignal): Failure {
  const { reason } = signal as { readonly reason: unknown };
  if (!(reason instanceof Error && reason.name === "TimeoutError")) {
    return new Failure("interrupted", `host ${host.name}: interrupted`);
  }
  return new Failure(
    "testbed",
    `host ${host.name}: ${script.title} was not done in the time for all of its step`,
    { hint: busyHint },
  );
}

function late(host: Host, script: RemoteScript): Failure {
  return new Failure(
    "testbed",
    `host ${host.name}: ${script.title} was not done in ${script.timeoutSeconds} s`,
    { hint: busyHint },
  );
}

/** One word of the remote shell's command line, whatever it holds. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

async function checkIdentities(hosts: readonly Host[]): Promise<void> {
  for (const host of hosts) {
    await access(host.identityFile, constants.R_OK).catch((cause: unknown) => {
      throw new Failure(
        "testbed",
        `host ${host.name}: identityFile cannot be read, found ${host.identityFile}`,
        { cause, hint: "name a readable private key in the testbed document" },
      );
    });
  }
}
