/** The hosts stack: brings every host of a testbed into a known state, and back. */
import path from "node:path";
import type { remote } from "@pulumi/command";
import * as pulumi from "@pulumi/pulumi";
import type { Host, Testbed } from "../contracts/testbed.ts";
import { parseBoot, renderBoot } from "../hosts/boot.ts";
import { layoutWarnings } from "../hosts/cpus.ts";
import { type Facts, parseFacts, renderFactsScript, shortFacts } from "../hosts/facts.ts";
import { summariseHardware } from "../hosts/hardware.ts";
import { parsePreflight, summarisePreflight } from "../hosts/preflight.ts";
import { bootParametersOf } from "../hosts/profiles/boot.ts";
import { type ProgramSet, readPrograms, renderPrograms } from "../hosts/programs.ts";
import { renderGuard, renderReadiness } from "../hosts/readiness.ts";
import { hostCommand, hostCopy, scriptDigest } from "../hosts/runner.ts";
import { parseTuning, renderTuning, summariseTuning } from "../hosts/tuning.ts";
import { toolPaths } from "../tools/paths.ts";
import { requireReachable } from "./reachable.ts";
import { configuredTestbed } from "./testbed.ts";

/** Long enough to install packages over a slow line. */
const readinessSeconds = 600;
const commandSeconds = 60;
/** Long enough for GRUB to look at every disk. */
const bootSeconds = 120;

type PreparedHost = {
  readonly resources: readonly pulumi.Resource[];
  readonly preflight: pulumi.Output<Record<string, string>>;
  readonly boot: pulumi.Output<Record<string, string>>;
  readonly hardware: pulumi.Output<Record<string, string>>;
  readonly facts: pulumi.Output<Facts>;
  readonly tuning: pulumi.Output<Record<string, string>>;
};

/**
 * Prepares all hosts at the same time, each step by step.
 *
 * @returns outputs: the testbed, and by host the preflight, boot parameters, hardware, short
 *   facts and how each knob ended
 * @throws Failure `document` or `testbed`
 */
export async function hostsStack(): Promise<Record<string, unknown>> {
  const testbed = configuredTestbed();
  const programs = readPrograms(programSource());
  const warnings = testbed.hosts.flatMap(layoutWarnings).map(({ message }) => message);
  await requireReachable(testbed.hosts);
  for (const warning of warnings) await pulumi.log.warn(warning);
  const prepared = testbed.hosts.map((host) => prepareHost(testbed, host, programs));
  guardHosts(testbed, prepared);
  const byHost = <T>(valueOf: (host: PreparedHost) => T) =>
    Object.fromEntries(
      testbed.hosts.flatMap(({ name }, index) => {
        const host = prepared[index];
        return host === undefined ? [] : [[name, valueOf(host)]];
      }),
    );
  return {
    testbed,
    preflight: byHost((host) => host.preflight),
    boot: byHost((host) => host.boot),
    hardware: byHost((host) => host.hardware),
    facts: byHost((host) => host.facts),
    tuning: byHost((host) => host.tuning),
    programs: programs.digests,
    warnings,
  };
}

/** Programs of the installer, unless the configuration names another directory. */
function programSource(): string {
  const root = path.resolve(import.meta.dirname, "..");
  const named = new pulumi.Config("ztbench").get("programs");
  return named === undefined ? toolPaths(root).hostBin : path.resolve(root, named);
}

function prepareHost(testbed: Testbed, host: Host, programs: ProgramSet): PreparedHost {
  const common = { host, instance: testbed.instance, timeoutSeconds: commandSeconds };
  const readiness = renderReadiness(testbed, host);
  const ready = hostCommand(`${host.name}-ready`, {
    ...common,
    script: readiness,
    timeoutSeconds: readinessSeconds,
  });
  // What undoes readiness sweeps up everything, so all else is then done anew.
  const after = [scriptDigest(readiness)];
  const copy = hostCopy(
    `${host.name}-copy`,
    { ...common, source: programs.source, target: programs.target, after },
    { dependsOn: ready },
  );
  const installed = hostCommand(
    `${host.name}-programs`,
    { ...common, script: renderPrograms(host, programs), after },
    { dependsOn: copy },
  );
  const boot = setBootParameters(testbed, host, ready, after);
  const tuned = hostCommand(
    `${host.name}-tuning`,
    { ...common, script: renderTuning(testbed, host), after, reports: true },
    { dependsOn: [ready, ...boot] },
  );
  const facts = hostCommand(
    `${host.name}-facts`,
    { ...common, script: renderFactsScript(host), after },
    { dependsOn: [installed, tuned] },
  );
  return {
    resources: [ready, copy, installed, ...boot, tuned, facts],
    preflight: ready.stdout.apply((text) => summarisePreflight(parsePreflight(text))),
    boot: pulumi
      .all(boot.map(({ stdout }) => stdout))
      .apply((texts) => parseBoot(texts.join("\n"))),
    hardware: facts.stdout.apply((text) => summariseHardware(parseFacts(text))),
    facts: facts.stdout.apply((text) => shortFacts(parseFacts(text))),
    tuning: tuned.stdout.apply((text) => summariseTuning(parseTuning(text))),
  };
}

/** Fails until the host has been rebooted, so that nothing is tuned that a reboot would lose. */
function setBootParameters(
  testbed: Testbed,
  host: Host,
  ready: pulumi.Resource,
  after: readonly string[],
): remote.Command[] {
  const parameters = bootParametersOf(testbed);
  if (parameters.length === 0) return [];
  const args = {
    host,
    instance: testbed.instance,
    script: renderBoot(host, parameters),
    timeoutSeconds: bootSeconds,
    after,
    reports: true,
  };
  return [hostCommand(`${host.name}-boot`, args, { dependsOn: ready })];
}

/** Removed first of all, on every host, before anything is undone on any. */
function guardHosts(testbed: Testbed, prepared: readonly PreparedHost[]): void {
  const everything = prepared.flatMap(({ resources }) => resources);
  for (const host of testbed.hosts) {
    hostCommand(
      `${host.name}-guard`,
      {
        host,
        instance: testbed.instance,
        script: renderGuard(host),
        timeoutSeconds: commandSeconds,
      },
      { dependsOn: everything },
    );
  }
}
