/** The door of the lab: three systemd hosts inside one Linux machine, up, down and their status. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import type { Testbed } from "../../contracts/testbed.ts";
import { ensureBase, removeInterruptedBuilds, type Base } from "./base.ts";
import {
  answers,
  hasBanner,
  readFacts,
  startHost,
  waitForBanner,
  wireNetworks,
  type HostFacts,
} from "./boot.ts";
import { ensureKeys, type LabKeys } from "./keys.ts";
import { withLock } from "./lock.ts";
import { checkOwner, checkPrograms, checkRange, checkRoot, machineBootId } from "./machine.ts";
import {
  guardRules,
  hostBatch,
  machineAddressBatch,
  machineBatch,
  switchBatch,
} from "./network.ts";
import { nspawnArgv } from "./nspawn.ts";
import { openLab, type Lab, type LabOptions } from "./options.ts";
import type { LabProfile } from "./profile.ts";
import { isSupervisor, listProcesses } from "./processes.ts";
import { tracesOf } from "./snapshot.ts";
import { missingParts, readState, writeState, type LabState } from "./state.ts";
import { makeDirectories, noteNamespaceMount, tearDown } from "./teardown.ts";
import { allowedCpus, labCpus, labTestbed } from "./testbed.ts";

export type { LabOptions } from "./options.ts";

/** Something the machine cannot do; it travels with results. */
export type LabWarning = { readonly id: string; readonly message: string };

export type LabUp = {
  readonly testbed: Testbed;
  readonly warnings: readonly LabWarning[];
  /** False when the lab was up already and nothing was done. */
  readonly changed: boolean;
  readonly seconds: number;
  /** For `ssh -F`; knows the hosts by role. */
  readonly sshConfig: string;
};

export type LabHostStatus = {
  readonly role: string;
  /** Process id of the host's supervisor, if it runs. */
  readonly supervisor: number | undefined;
  readonly answers: boolean;
};

export type LabStatus = {
  /** `broken` is anything between; `labUp` mends it. */
  readonly state: "up" | "down" | "broken";
  /** Of the lab that is up; undefined if none is. */
  readonly profile: LabProfile | undefined;
  readonly testbed: Testbed | undefined;
  readonly warnings: readonly LabWarning[];
  readonly hosts: readonly LabHostStatus[];
  /** What a whole lab would have and this one has not. */
  readonly missing: readonly string[];
  /** What the lab has on the machine, in words. */
  readonly traces: readonly string[];
  readonly sshConfig: string;
};

/** Long enough for another command that is building the base. */
const lockSeconds = 900;

/**
 * Raises the lab, or finds it up. Whatever an earlier run left half made is removed first.
 * @throws Failure `testbed` when this machine cannot hold it; nothing of the lab is left then
 */
export async function labUp(given: Partial<LabOptions> = {}): Promise<LabUp> {
  const started = Date.now();
  const lab = await enter(given);
  return withLock(lab.paths.lock, lockSeconds, async () => {
    checkOwner(lab, await listProcesses());
    // Before the base is built, which takes a minute; a lab that is up has passed this check.
    if ((await readState(lab)) === undefined) await checkRange(lab.layout);
    const base = await ensureBase(lab.stateDir, lab.profile, lab.progress);
    const keys = await ensureKeys(lab.paths.keys, lab.layout);
    const stamp = stampOf(lab, base, keys);
    const seconds = (): number => (Date.now() - started) / 1000;
    const found = await findRunning(lab, stamp);
    if (found !== undefined) return result(lab, found, false, seconds());
    await tearDown(lab);
    try {
      const state = await raise(lab, base, keys, stamp);
      return result(lab, state, true, seconds());
    } catch (error) {
      await tearDown(lab).catch((second: unknown) => {
        lab.progress(`lab ${lab.name}: not all could be removed, ${String(second)}`);
      });
      throw error;
    }
  });
}

/**
 * Takes the lab down and leaves nothing but the base root and the keys in the state directory.
 * @throws Failure `testbed` naming what could not be removed
 */
export async function labDown(given: Partial<LabOptions> = {}): Promise<{ seconds: number }> {
  const started = Date.now();
  const lab = await enter(given);
  return withLock(lab.paths.lock, lockSeconds, async () => {
    checkOwner(lab, await listProcesses());
    lab.progress(`lab ${lab.name}: taking it down`);
    await tearDown(lab);
    await removeInterruptedBuilds(lab.stateDir);
    return { seconds: (Date.now() - started) / 1000 };
  });
}

/** Says what there is of the lab, without changing anything. */
export async function labStatus(given: Partial<LabOptions> = {}): Promise<LabStatus> {
  const lab = await enter(given);
  const [processes, state, traces] = await Promise.all([
    listProcesses(),
    readState(lab),
    tracesOf(lab),
  ]);
  checkOwner(lab, processes);
  const missing = state === undefined ? [] : await missingParts(lab, state, processes);
  const hosts = await Promise.all(
    lab.layout.hosts.map(async (host) => {
      const supervisor = processes.find((process) => isSupervisor(process, host.machine))?.pid;
      const reachable = supervisor !== undefined && (await answers(lab, host));
      return { role: host.role, supervisor, answers: reachable };
    }),
  );
  const whole = state !== undefined && missing.length === 0 && hosts.every((h) => h.answers);
  return {
    state: whole ? "up" : traces.length === 0 ? "down" : "broken",
    profile: state?.profile,
    testbed: state?.testbed,
    warnings: state?.warnings ?? [],
    hosts,
    missing,
    traces,
    sshConfig: lab.paths.sshConfig,
  };
}

async function enter(given: Partial<LabOptions>): Promise<Lab> {
  const lab = openLab(given);
  checkRoot();
  await checkPrograms();
  await mkdir(lab.stateDir, { recursive: true, mode: 0o700 });
  return lab;
}

/** The state of a lab that is whole, was started in just this way and answers. */
async function findRunning(lab: Lab, stamp: string): Promise<LabState | undefined> {
  const state = await readState(lab);
  if (state?.stamp !== stamp) return undefined;
  const missing = await missingParts(lab, state, await listProcesses());
  if (missing.length > 0) {
    lab.progress(`lab ${lab.name}: ${missing.join(", ")} missing, booting anew`);
    return undefined;
  }
  const answered = await Promise.all(
    lab.layout.hosts.map((host) => hasBanner(host.managementAddress)),
  );
  return answered.every(Boolean) ? state : undefined;
}

async function raise(lab: Lab, base: Base, keys: LabKeys, stamp: string): Promise<LabState> {
  const started = Date.now();
  const step = (text: string): void => {
    lab.progress(`lab ${lab.name}: ${text}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
  };
  await makeDirectories(lab);
  await noteNamespaceMount(lab);
  const guarded = await wireNetworks(lab);
  step("networks wired");
  await Promise.all(lab.layout.hosts.map((host) => startHost(lab, host, base.directory)));
  await Promise.all(lab.layout.hosts.map((host) => waitForBanner(lab, host)));
  step("all hosts answer");
  const facts = await Promise.all(lab.layout.hosts.map((host) => readFacts(lab, host)));
  step("all hosts have started");
  const cpus = await allowedCpus();
  const scheduling = facts.every((fact) => fact.realtime) ? "rr" : "other";
  const testbed = labTestbed({
    layout: lab.layout,
    keys,
    instance: randomBytes(8).toString("hex"),
    cpus: labCpus(cpus),
    scheduling,
  });
  const warnings = [...warningsOf(lab, facts, guarded, cpus.length)];
  const { profile } = lab;
  const state = { stamp, machineBoot: await machineBootId(), guarded, profile, testbed, warnings };
  await writeState(lab, state);
  return state;
}

function* warningsOf(
  lab: Lab,
  facts: readonly HostFacts[],
  guarded: boolean,
  cpuCount: number,
): Generator<LabWarning> {
  if (facts.some((fact) => !fact.realtime)) {
    const message = "SCHED_RR is refused inside the hosts: tail latency will be noisier";
    yield { id: "scheduling", message };
  }
  if (!guarded) {
    const message = "this kernel has no nft netdev hook: hosts can reach listeners of the machine";
    yield { id: "guard", message };
  }
  if (cpuCount < 2) {
    yield { id: "cpus", message: "one CPU only: load and the system under test share it" };
  }
  for (const [index, fact] of facts.entries()) {
    if (fact.systemState === "running") continue;
    const role = lab.layout.hosts[index]?.role ?? "";
    const units = fact.failedUnits.join(", ") || "none";
    const message = `host ${role} is ${fact.systemState}, failed units: ${units}`;
    yield { id: "host", message };
  }
}

/** Changes with everything a running lab depends on. */
function stampOf(lab: Lab, base: Base, keys: LabKeys): string {
  const hosts = lab.layout.hosts.map((host) => [
    hostBatch(lab.layout, host),
    nspawnArgv({
      profile: lab.profile,
      host,
      baseDirectory: base.directory,
      keysDirectory: lab.paths.keys,
      persistentDirectory: lab.paths.persistentOf(host.role),
    }),
  ]);
  const { layout } = lab;
  const networks = [switchBatch, machineBatch, machineAddressBatch, guardRules].map((render) =>
    render(layout),
  );
  const content = JSON.stringify([base.manifest, keys.hostKeys, hosts, networks]);
  return createHash("sha256").update(content).digest("hex");
}

function result(lab: Lab, state: LabState, changed: boolean, seconds: number): LabUp {
  const { testbed, warnings } = state;
  return { testbed, warnings, changed, seconds, sshConfig: lab.paths.sshConfig };
}
