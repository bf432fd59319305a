/** Leases of hosts and payloads on them as resources, the same in every runtime. */
import type { remote } from "@pulumi/command";
import type * as pulumi from "@pulumi/pulumi";
import type { Deployment } from "../contracts/deployment.ts";
import { type Host, hostNamed, type Testbed } from "../contracts/testbed.ts";
import { withBootCheck } from "../hosts/boot.ts";
import { type LeaseRequest, renderLease } from "../hosts/lease.ts";
import {
  digestOf,
  type HostPayload,
  payloadIdOf,
  renderPayload,
  withSweep,
} from "../hosts/payload.ts";
import { bootParametersOf } from "../hosts/profiles/boot.ts";
import { programDirectory } from "../hosts/programs.ts";
import { hostCommand } from "../hosts/runner.ts";
import { probingHosts, readySeconds, renderReady } from "../topologies/ready.ts";

const leaseSeconds = 60;
/** Enough for the issuer's tokens, which take longest. */
const payloadSeconds = 90;

/**
 * The first host decides who gets all of them; the others can then be taken side by side. Given
 * back last, after a look that nothing is left in the topology's directory.
 */
export function takeLeases(
  testbed: Testbed,
  request: LeaseRequest,
  roots: readonly string[],
): pulumi.Resource[] {
  const boot = bootParametersOf(testbed);
  const take = (host: Host, dependsOn: pulumi.Resource[]) =>
    hostCommand(
      `${host.name}-lease`,
      {
        host,
        instance: testbed.instance,
        script: withBootCheck(withSweep(renderLease(host, request), host.name, ...roots), boot),
        timeoutSeconds: leaseSeconds,
      },
      { dependsOn },
    );
  return testbed.hosts.reduce<pulumi.Resource[]>(
    (taken, host) => [...taken, take(host, taken.slice(0, 1))],
    [],
  );
}

export type PayloadOptions = {
  /** What all payloads come after. */
  readonly dependsOn: readonly pulumi.Resource[];
  /** Values that come from elsewhere than another payload, by the id they are received from. */
  readonly given?: ReadonlyMap<string, pulumi.Input<string>>;
};

/** Each payload after those it needs, and done anew whenever one of them is. */
export function placePayloads(
  testbed: Testbed,
  payloads: readonly HostPayload[],
  { dependsOn, given }: PayloadOptions,
): remote.Command[] {
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
      receives.map(([variable, from]) => [
        variable,
        given?.get(from) ?? printedBy(resources, from),
      ]),
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
      { dependsOn: [...dependsOn, ...resources.values()] },
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

/** The hosts that send probes ask them until they hold; failures say what was seen last. */
export function awaitAnswers(
  testbed: Testbed,
  deployment: Deployment,
  dependsOn: readonly pulumi.Resource[],
): remote.Command[] {
  return probingHosts(deployment).map((name) =>
    hostCommand(
      `${name}-ready`,
      {
        host: hostNamed(testbed, name),
        instance: testbed.instance,
        script: renderReady(deployment, name, programDirectory),
        timeoutSeconds: 2 * readySeconds,
        after: [deployment.configurationDigest],
      },
      { dependsOn: [...dependsOn] },
    ),
  );
}
