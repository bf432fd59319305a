/** What the host side does for a campaign: deploy and destroy, tuning readback, facts, lease. */
import path from "node:path";
import type { Deployment } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import { isAmiss } from "../contracts/record.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import { checkAbsence, type ClusterTraces, renderAbsence } from "../hosts/absence.ts";
import { kubectlOf } from "../hosts/cluster/cluster.ts";
import { parseFacts, renderFacts } from "../hosts/facts.ts";
import { renderCampaignLease } from "../hosts/lease.ts";
import type { HostPayload } from "../hosts/payload.ts";
import { programDirectory } from "../hosts/programs.ts";
import { parseReadback, renderVerify } from "../hosts/tuning.ts";
import type { CampaignHooks, Deployer, Tuning } from "../loadgen/options.ts";
import { type RemoteScript, runChecked, type Transport } from "../loadgen/ssh.ts";
import { topologyNamed } from "../topologies/catalogue.ts";
import { renderNative } from "../topologies/native.ts";
import { type KubernetesObject, podNamespace } from "../topologies/pods/objects.ts";
import { renderPods } from "../topologies/pods/pods.ts";
import { readParameters } from "../topologies/parameters.ts";
import { deployTopology, destroyTopology } from "./deployer.ts";
import type { Workspace } from "./workspace.ts";

const timeoutSeconds = 60;

/** Deploys by the Pulumi engine, under the campaign's lease. */
export function deployerFor(
  transport: Transport,
  workspace: Workspace,
  testbed: Testbed,
  token: string,
): Deployer {
  // A cluster is asked only once something was put into it: others may not even be up.
  let pods = false;
  return {
    deploy(treatment, load, signal) {
      pods ||= treatment.runtime === "k3s";
      const { parameters } = topologyNamed(treatment.topology);
      // The size of the body is the load's business and the service's doing.
      const given = parameters.includes("bodyBytes") ? { bodyBytes: load.bodyBytes } : {};
      const all = { ...given, ...treatment.parameters };
      const settings = { parameters: all, runtime: treatment.runtime };
      return deployTopology(workspace, treatment.topology, settings, { campaign: token, signal });
    },
    configuration: (deployment) => renderedConfiguration(deployment, testbed),
    destroy: (topology) => destroyTopology(workspace, topology),
    async proveAbsent(_topology, signal) {
      const script = (host: Host) => ({
        title: "proof of absence",
        text: renderAbsence(host, tracesOn(host, testbed, pods)),
      });
      const printed = await onAllHosts(transport, testbed, script, signal);
      for (const [host, text] of printed) checkAbsence(host, text);
    },
  };
}

/** What pods would leave in the cluster, as seen from the host of its API server. */
function tracesOn(
  { role }: Host,
  { clusterKind }: Testbed,
  pods: boolean,
): ClusterTraces | undefined {
  if (!pods || clusterKind === "none" || role !== "gateway") return undefined;
  return { kubectl: kubectlOf(clusterKind), namespace: podNamespace };
}

type Placed = {
  readonly digest: string;
  readonly hosts: readonly HostPayload[];
  /** Of a cluster; none in runtime `native`. */
  readonly objects: readonly KubernetesObject[];
};

/** The same rendering again, which the digest of what was deployed proves to be the same. */
function renderedConfiguration(deployment: Deployment, testbed: Testbed): Record<string, string> {
  const { digest, hosts, objects } = renderAgain(deployment, testbed);
  if (digest !== deployment.configurationDigest) {
    const { topology } = deployment;
    throw new Failure(
      "testbed",
      `topology ${topology}: deployed from another version of ztbench, digests differ`,
      { hint: `pulumi destroy -s ${topology}, then start again` },
    );
  }
  const ofHosts = hosts.flatMap(({ host, files, units, firewall }) => [
    ...files.map((file) => [path.posix.join(host, file.path), file.content] as const),
    ...units.map((unit) => [path.posix.join(host, "units", unit.name), unit.text] as const),
    ...(firewall === undefined
      ? []
      : [[path.posix.join(host, "firewall.nft"), firewall.text] as const]),
  ]);
  const ofCluster = objects.map((object) => {
    const file = `${object.kind.toLowerCase()}-${object.metadata.name}.json`;
    return [path.posix.join("cluster", file), `${JSON.stringify(object, null, 1)}\n`] as const;
  });
  return Object.fromEntries([...ofHosts, ...ofCluster]);
}

function renderAgain(deployment: Deployment, testbed: Testbed): Placed {
  const { runtime, scheduling, cluster } = deployment;
  const topology = topologyNamed(deployment.topology);
  const parameters = readParameters(topology, deployment.parameters, runtime);
  const programs = programDirectory;
  if (cluster === undefined) {
    const rendered = renderNative(topology, parameters, { testbed, scheduling, programs });
    const { configurationDigest: digest } = rendered.deployment;
    return { digest, hosts: rendered.hosts, objects: [] };
  }
  const { images, controlAddress } = cluster;
  const { before, after, ...rendered } = renderPods(topology, parameters, {
    testbed,
    programs,
    images,
    ...(controlAddress === undefined ? {} : { controlAddress }),
  });
  return {
    digest: rendered.deployment.configurationDigest,
    hosts: [...before, ...after],
    objects: [...rendered.objects, ...rendered.workloads.map(({ object }) => object)],
  };
}

/** Readings and the lease, each by one script on every host. */
export function hooksFor(transport: Transport, testbed: Testbed, token: string): CampaignHooks {
  const lease = (action: "take" | "release") => async (signal: AbortSignal) => {
    const text = (host: Host) => renderCampaignLease(host, token, action);
    const script = (host: Host) => ({ title: `${action} the lease`, text: text(host) });
    // Given back in the reverse order, so that whoever waits for the first host finds all free.
    const hosts = action === "take" ? testbed.hosts : testbed.hosts.toReversed();
    await onAllHosts(transport, { ...testbed, hosts }, script, signal);
  };
  return {
    async readback(signal) {
      const script = (host: Host) => ({
        title: "tuning readback",
        text: renderVerify(testbed, host),
      });
      const printed = await onAllHosts(transport, testbed, script, signal);
      return byName(printed, (text) =>
        Object.fromEntries(parseReadback(text).map((knob) => [knob.id, spell(knob)])),
      );
    },
    async facts(signal) {
      const script = (host: Host) => ({ title: "facts", text: renderFacts(host) });
      const printed = await onAllHosts(transport, testbed, script, signal);
      return byName(printed, (text) => ({ ...parseFacts(text) }));
    },
    lease: { take: lease("take"), release: lease("release") },
  };
}

/**
 * Hosts keep what an earlier profile turned until their stack is brought up to date, and lose what
 * theirs turned when they are rebooted.
 *
 * @throws Failure `testbed` if hosts are not as the profile of the document has them
 */
export function requireTuned(testbed: Testbed, readback: Tuning): void {
  const amiss = Object.entries(readback).flatMap(([host, knobs]) =>
    Object.entries(knobs)
      .filter(([, outcome]) => isAmiss(outcome))
      .map(([knob, outcome]) => `${knob} is ${outcome} on host ${host}`),
  );
  const [first, ...more] = amiss;
  if (first === undefined) return;
  const others = more.length === 0 ? "" : `, and ${more.length} more like it`;
  throw new Failure(
    "testbed",
    `testbed ${testbed.name}: hosts are not tuned by profile ${testbed.tuningProfile}, ` +
      `${first}${others}, none allowed`,
    {
      hint:
        'eval "$(./ztbench env)" && pulumi up -s hosts; where that finds nothing to do, ' +
        "pulumi destroy -s hosts before it",
    },
  );
}

function spell(knob: { readonly status: string; readonly value: string }): string {
  return `${knob.status} ${knob.value}`;
}

function byName<T>(printed: readonly (readonly [Host, string])[], read: (text: string) => T) {
  return Object.fromEntries(printed.map(([host, text]) => [host.name, read(text)]));
}

/** In the testbed's order, for what must be taken in order; it takes a few milliseconds a host. */
async function onAllHosts(
  transport: Transport,
  testbed: Testbed,
  script: (host: Host) => Pick<RemoteScript, "title" | "text">,
  signal: AbortSignal,
): Promise<(readonly [Host, string])[]> {
  const printed: (readonly [Host, string])[] = [];
  for (const host of testbed.hosts) {
    const full = { ...script(host), timeoutSeconds };
    printed.push([host, await runChecked(transport, host.name, full, signal)]);
  }
  return printed;
}
