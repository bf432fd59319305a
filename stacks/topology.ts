/** The program of every topology stack: lease, payload of each host, proof that it answers. */
import type { remote } from "@pulumi/command";
import * as pulumi from "@pulumi/pulumi";
import { z } from "zod";
import type { Deployment } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import { type LeaseRequest, renderLease } from "../hosts/lease.ts";
import {
  digestOf,
  type HostPayload,
  payloadIdOf,
  renderPayload,
  withSweep,
} from "../hosts/payload.ts";
import { programDirectory } from "../hosts/programs.ts";
import { hostCommand } from "../hosts/runner.ts";
import { topologyNamed } from "../topologies/catalogue.ts";
import { renderNative, rootsOf } from "../topologies/native.ts";
import { readParameters } from "../topologies/parameters.ts";
import { probingHosts, readySeconds, renderReady } from "../topologies/ready.ts";
import { type DeployedTestbed, deployedTestbed } from "./testbed.ts";

const leaseSeconds = 60;
/** Enough for the issuer's tokens, which take longest. */
const payloadSeconds = 90;

/**
 * Deploys the topology that the stack is named after.
 *
 * @returns output `deployment`, there once the path answers correctly
 * @throws Failure `usage` or `testbed`
 */
export async function topologyStack(name: string): Promise<Record<string, unknown>> {
  const topology = topologyNamed(name);
  const config = new pulumi.Config("ztbench");
  const parameters = readParameters(topology, givenParameters(config));
  const lease = leaseRequest(config, name);
  const deployed = await deployedTestbed();
  const { testbed } = deployed;
  const { hosts: payloads, deployment } = renderNative(topology, parameters, {
    testbed,
    scheduling: grantedScheduling(deployed),
    programs: programDirectory,
  });
  const leases = takeLeases(testbed, lease, rootsOf(topology));
  const placed = placePayloads(testbed, payloads, leases);
  const ready = probingHosts(deployment).map((name) =>
    hostCommand(
      `${name}-ready`,
      {
        host: hostNamed(testbed, name),
        instance: testbed.instance,
        script: renderReady(deployment, name, programDirectory),
        timeoutSeconds: 2 * readySeconds,
        after: [deployment.configurationDigest],
      },
      { dependsOn: placed },
    ),
  );
  const answered = pulumi.all(ready.map(({ id }) => id));
  return { deployment: answered.apply((): Deployment => deployment) };
}

function givenParameters(config: pulumi.Config): Record<string, unknown> {
  const given = z.record(z.string(), z.unknown()).safeParse(config.getObject("parameters") ?? {});
  if (given.success) return given.data;
  throw new Failure("usage", "config ztbench:parameters: not usable, an object is allowed", {
    hint: "pulumi config set --path 'ztbench:parameters.bodyBytes' 256",
  });
}

function leaseRequest(config: pulumi.Config, stack: string): LeaseRequest {
  const owner = config.get("owner");
  if (owner === undefined) {
    throw new Failure("usage", "config ztbench:owner: not set, the name of who takes the hosts", {
      hint: "./ztbench init TESTBED, or pulumi config set ztbench:owner NAME",
    });
  }
  const campaignToken = process.env["ZTBENCH_CAMPAIGN"];
  return { owner, stack, ...(campaignToken === undefined ? {} : { campaignToken }) };
}

/** Realtime only where the testbed asks for it and every host allows it. */
function grantedScheduling({ testbed, facts }: DeployedTestbed): "rr" | "other" {
  const allowed = testbed.hosts.every(({ name }) => facts[name]?.["sched-rr"] === "allowed");
  return testbed.scheduling === "rr" && allowed ? "rr" : "other";
}

/**
 * The first host decides who gets all of them; the others can then be taken side by side. Given
 * back last, after a look that nothing is left in the topology's directory.
 */
function takeLeases(testbed: Testbed, request: LeaseRequest, roots: string[]): pulumi.Resource[] {
  const take = (host: Host, dependsOn: pulumi.Resource[]) =>
    hostCommand(
      `${host.name}-lease`,
      {
        host,
        instance: testbed.instance,
        script: withSweep(renderLease(host, request), host.name, ...roots),
        timeoutSeconds: leaseSeconds,
      },
      { dependsOn },
    );
  return testbed.hosts.reduce<pulumi.Resource[]>(
    (taken, host) => [...taken, take(host, taken.slice(0, 1))],
    [],
  );
}

/** Each payload after those it needs, and done anew whenever one of them is. */
function placePayloads(
  testbed: Testbed,
  payloads: readonly HostPayload[],
  leases: readonly pulumi.Resource[],
): pulumi.Resource[] {
  const placed = new Map<string, remote.Command>();
  const place = (payload: HostPayload): remote.Command => {
    const id = payloadIdOf(payload);
    const found = placed.get(id);
    if (found !== undefined) return found;
    const receives = Object.entries(payload.receives ?? {});
    const wanted = [...payload.after, ...receives.map(([, from]) => from)];
    const needed = payloads.filter((other) => wanted.includes(payloadIdOf(other)));
    const resources = new Map(needed.map((other) => [payloadIdOf(other), place(other)]));
    const variables = Object.fromEntries(
      receives.map(([variable, from]) => [variable, printedBy(resources, from)]),
    );
    const resource = hostCommand(
      id,
      {
        host: hostNamed(testbed, payload.host),
        instance: testbed.instance,
        script: renderPayload(payload),
        timeoutSeconds: payloadSeconds,
        after: needed.map(digestOf),
        ...(receives.length === 0 ? {} : { variables }),
      },
      { dependsOn: [...leases, ...resources.values()] },
    );
    placed.set(id, resource);
    return resource;
  };
  return payloads.map(place);
}

function printedBy(resources: ReadonlyMap<string, remote.Command>, id: string) {
  const resource = resources.get(id);
  if (resource === undefined) throw new Error(`payload ${id}: received from, but not deployed`);
  return resource.stdout;
}

function hostNamed(testbed: Testbed, name: string): Host {
  const host = testbed.hosts.find((candidate) => candidate.name === name);
  if (host === undefined) throw new Error(`testbed ${testbed.name} has no host ${name}`);
  return host;
}
