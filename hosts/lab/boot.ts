/** Wires the lab's networks, starts its hosts and waits until each has answered over SSH. */
import { spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "../../contracts/failure.ts";
import { makeCgroup } from "./cgroups.ts";
import { attempt, commandEnvironment, demand, lastLines } from "./command.ts";
import { namespacesOf, type HostLayout } from "./layout.ts";
import { isRunBySystemd } from "./machine.ts";
import {
  guardRules,
  hostBatch,
  hostSysctls,
  linkSysctls,
  machineAddressBatch,
  machineBatch,
  switchBatch,
  switchSysctls,
} from "./network.ts";
import { nspawnArgv, systemdRunArgv, watchArgv, watchEnvironment } from "./nspawn.ts";
import type { Lab } from "./options.ts";
import { isSupervisor, listProcesses } from "./processes.ts";

const answerSeconds = 60;
const probeMs = 25;
const aliveMs = 500;

/** Makes namespaces, links, addresses and the guard. @returns whether the guard is in force */
export async function wireNetworks(lab: Lab): Promise<boolean> {
  const { layout } = lab;
  const batch = (prefix: readonly string[], input: string): Promise<string> =>
    demand(["ip", ...prefix, "-batch", "-"], { input });
  const set = (namespace: string, values: readonly string[]): Promise<string> =>
    // -e: a kernel without the feature behind a key has nothing to switch off.
    demand(["ip", "netns", "exec", namespace, "sysctl", "-e", "-q", "-w", ...values]);
  const namespaces = namespacesOf(layout);
  await batch([], namespaces.map((name) => `netns add ${name}\n`).join(""));
  await Promise.all([
    set(layout.switchNamespace, switchSysctls),
    ...layout.hosts.map((host) => set(host.machine, hostSysctls)),
  ]);
  await batch(["-n", layout.switchNamespace], switchBatch(layout));
  await batch([], machineBatch(layout));
  await demand(["sysctl", "-e", "-q", "-w", ...linkSysctls(layout)]);
  // Before the links are up, so that there is no unguarded moment.
  const guard = await attempt(["nft", "-f", "-"], { input: guardRules(layout) });
  await Promise.all(layout.hosts.map((h) => batch(["-n", h.machine], hostBatch(layout, h))));
  await batch([], machineAddressBatch(layout));
  return guard.exitCode === 0;
}

/** Starts one host; returns when its supervisor is on its way, not when it answers. */
export async function startHost(lab: Lab, host: HostLayout, baseDirectory: string): Promise<void> {
  const nspawn = nspawnArgv({
    profile: lab.profile,
    host,
    baseDirectory,
    keysDirectory: lab.paths.keys,
    persistentDirectory: lab.paths.persistentOf(host.role),
  });
  if (await isRunBySystemd()) {
    await demand(systemdRunArgv(host.machine, lab.paths.logOf(host.role), nspawn));
    return;
  }
  const { prefix } = lab.layout;
  const watch = await makeCgroup(`${prefix}/watch`, "native");
  const own = await makeCgroup(`${prefix}/${host.role}`, lab.profile);
  const log = await open(lab.paths.logOf(host.role), "a");
  try {
    const [program = "sh", ...argv] = watchArgv(host.machine, nspawn);
    // Detached and not waited for: it outlives this process and is found again by its marks.
    const watcher = spawn(program, argv, {
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
      cwd: "/",
      env: { ...commandEnvironment(), ...watchEnvironment(watch, own) },
    });
    await new Promise<void>((resolve, reject) => {
      watcher.once("spawn", resolve);
      watcher.once("error", reject);
    });
    watcher.unref();
  } finally {
    await log.close();
  }
}

/** Waits for the SSH banner of a host. @throws Failure `testbed` with the host's last log lines */
export async function waitForBanner(lab: Lab, host: HostLayout): Promise<void> {
  const deadline = Date.now() + answerSeconds * 1000;
  let lookAgain = Date.now() + aliveMs;
  while (!(await hasBanner(host.managementAddress))) {
    if (Date.now() > deadline) {
      throw await silentHost(lab, host, `no SSH answer within ${answerSeconds} s`);
    }
    if (Date.now() > lookAgain) {
      const processes = await listProcesses();
      if (!processes.some((process) => isSupervisor(process, host.machine))) {
        throw await silentHost(lab, host, "its supervisor has ended");
      }
      lookAgain = Date.now() + aliveMs;
    }
    await delay(probeMs);
  }
}

export type HostFacts = {
  /** What `systemctl is-system-running` says. */
  readonly systemState: string;
  readonly failedUnits: readonly string[];
  /** Whether SCHED_RR is allowed inside. */
  readonly realtime: boolean;
};

const factScript = [
  "echo state $(systemctl is-system-running --wait)",
  "echo failed $(systemctl --failed --plain --no-legend | cut -d' ' -f1)",
  "chrt -r 10 true 2>/dev/null && echo realtime",
].join("; ");

/** Logs in, waits until the host has started all its units and reads what it is able to do. */
export async function readFacts(lab: Lab, host: HostLayout): Promise<HostFacts> {
  const login = await attempt(sshArgv(lab, host, `${factScript}; true`), {
    timeoutSeconds: answerSeconds,
  });
  if (login.exitCode !== 0) {
    const problem = `SSH login failed, exit code ${login.exitCode}: ${lastLines(login.output, 2)}`;
    throw await silentHost(lab, host, problem);
  }
  return parseFacts(login.output);
}

/** Reads what `factScript` prints. */
export function parseFacts(output: string): HostFacts {
  const lines = output.split("\n").map((line) => line.split(" ").filter((word) => word !== ""));
  const after = (key: string): string[] => lines.find((words) => words[0] === key)?.slice(1) ?? [];
  return {
    systemState: after("state")[0] ?? "unknown",
    failedUnits: after("failed"),
    realtime: lines.some((words) => words[0] === "realtime"),
  };
}

/** Whether a login on a host works now. */
export async function answers(lab: Lab, host: HostLayout): Promise<boolean> {
  const login = await attempt(sshArgv(lab, host, "true"), { timeoutSeconds: 10 });
  return login.exitCode === 0;
}

function sshArgv(lab: Lab, host: HostLayout, command: string): string[] {
  return ["ssh", "-F", lab.paths.sshConfig, host.role, command];
}

/** Whether SSH answers at an address; much cheaper than a login. */
export async function hasBanner(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: 22 });
    const settle = (found: boolean) => (): void => {
      socket.destroy();
      resolve(found);
    };
    socket.setTimeout(aliveMs, settle(false));
    socket.once("data", settle(true));
    socket.once("error", settle(false));
    socket.once("close", settle(false));
  });
}

async function silentHost(lab: Lab, host: HostLayout, problem: string): Promise<Failure> {
  const log = await readFile(lab.paths.logOf(host.role), "utf8").catch(() => "");
  const said = log === "" ? "it logged nothing" : `its last lines: ${lastLines(log, 8)}`;
  return new Failure("testbed", `lab host ${host.role}: ${problem}; ${said}`);
}
