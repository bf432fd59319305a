/** Component `Cluster`: carries out an installation on the hosts, and says what came of it. */
import type { remote } from "@pulumi/command";
import * as pulumi from "@pulumi/pulumi";
import type { ClusterSettings, Host, Testbed } from "../contracts/testbed.ts";
import { hostNamed, hostOf } from "../contracts/testbed.ts";
import {
  apiServerOf,
  type ClusterInstallation,
  type ClusterTask,
  readClusterFacts,
} from "../hosts/cluster/cluster.ts";
import { directoryOf, renderClusterFiles } from "../hosts/cluster/files.ts";
import { renderClusterGuard, renderClusterLease } from "../hosts/cluster/lease.ts";
import { type Facts, parseFacts } from "../hosts/facts.ts";
import { hostCommand, hostCopyFile, scriptDigest } from "../hosts/runner.ts";

const leaseSeconds = 60;
const filesSeconds = 120;

export type ClusterArgs = {
  readonly testbed: Testbed;
  readonly settings: ClusterSettings;
  /** Who takes the hosts, see `renderClusterLease`. */
  readonly owner: string;
  readonly installation: ClusterInstallation;
};

export type ClusterOutputs = {
  /** Secret; whoever has it may do everything on the cluster. */
  readonly kubeconfig: pulumi.Output<string>;
  /** The same over updates, another one for another cluster. */
  readonly clusterIdentifier: pulumi.Output<string>;
  readonly apiServer: string;
  /** As the components say of themselves. */
  readonly versions: pulumi.Output<Facts>;
  /** Facts of each node, by host name. */
  readonly nodes: Readonly<Record<string, pulumi.Output<Facts>>>;
};

/** Something done on a host; the digest of its script is for those that build on it. */
type Step = { readonly resource: remote.Command; readonly digest: string };

/**
 * A cluster on the hosts of a testbed. In order: the mark on each host that it has a cluster, the
 * files, the tasks of the installation, a guard that is removed first and refuses while a topology
 * or a campaign holds the hosts.
 */
export class Cluster extends pulumi.ComponentResource {
  readonly outputs: ClusterOutputs;
  readonly #args: ClusterArgs;
  readonly #leases = new Map<string, Step>();
  readonly #files = new Map<string, Step>();
  readonly #tasks = new Map<string, remote.Command>();

  constructor(name: string, args: ClusterArgs, options: pulumi.ComponentResourceOptions = {}) {
    super("ztbench:cluster:Cluster", name, {}, options);
    this.#args = args;
    const { hosts } = args.testbed;
    for (const host of hosts) this.#leases.set(host.name, this.#takeLease(host));
    for (const host of hosts) this.#placeFiles(host);
    for (const task of args.installation.tasks) this.#place(task);
    for (const host of hosts) this.#guard(host);
    this.outputs = this.#readOutputs();
    this.registerOutputs(this.outputs);
  }

  #takeLease(host: Host): Step {
    const script = renderClusterLease(host, this.#args.owner);
    const resource = hostCommand(
      `${host.name}-cluster-lease`,
      {
        host,
        instance: this.#args.testbed.instance,
        script,
        timeoutSeconds: leaseSeconds,
      },
      { parent: this },
    );
    return { resource, digest: scriptDigest(script) };
  }

  #leaseOf(host: Host): Step {
    const found = this.#leases.get(host.name);
    if (found === undefined) throw new Error(`host ${host.name}: no lease taken`);
    return found;
  }

  /** Removing the lease removes the files, so they follow it. */
  #placeFiles(host: Host): void {
    const { testbed, installation } = this.#args;
    const files = installation.files[host.name] ?? [];
    const script = renderClusterFiles(host, files);
    const lease = this.#leaseOf(host);
    const common = {
      host,
      instance: testbed.instance,
      after: [lease.digest, scriptDigest(script)],
    };
    const copies = files.map(({ name, source }) =>
      hostCopyFile(
        `${host.name}-file-${name}`,
        { ...common, source, target: `${directoryOf(files)}/${name}` },
        { parent: this, dependsOn: lease.resource },
      ),
    );
    const resource = hostCommand(
      `${host.name}-cluster-files`,
      { ...common, script, timeoutSeconds: filesSeconds },
      { parent: this, dependsOn: [lease.resource, ...copies] },
    );
    this.#files.set(host.name, { resource, digest: scriptDigest(script) });
  }

  #place(task: ClusterTask): remote.Command {
    const { testbed, installation } = this.#args;
    const placed = this.#tasks.get(task.id);
    if (placed !== undefined) return placed;
    const receives = Object.entries(task.receives ?? {});
    const ids = [...new Set([...task.after, ...receives.map(([, from]) => from)])];
    const needed = ids.map((id) => {
      const found = installation.tasks.find((other) => other.id === id);
      if (found === undefined) throw new Error(`task ${task.id}: needs ${id}, which is not there`);
      return { resource: this.#place(found), digest: scriptDigest(found.script) };
    });
    const host = hostNamed(testbed, task.host);
    const files = task.needsFiles ? this.#files.get(host.name) : undefined;
    const before = [this.#leaseOf(host), ...needed, ...(files === undefined ? [] : [files])];
    const variables = Object.fromEntries(
      receives.map(([variable, from]) => [variable, this.#printedBy(from)]),
    );
    const resource = hostCommand(
      task.id,
      {
        host,
        instance: testbed.instance,
        script: task.script,
        timeoutSeconds: task.timeoutSeconds,
        after: before.map(({ digest }) => digest),
        ...(receives.length === 0 ? {} : { variables }),
      },
      {
        parent: this,
        dependsOn: before.map((step) => step.resource),
        ...(task.secret === true ? { additionalSecretOutputs: ["stdout"] } : {}),
      },
    );
    this.#tasks.set(task.id, resource);
    return resource;
  }

  #printedBy(id: string): pulumi.Output<string> {
    const resource = this.#tasks.get(id);
    if (resource === undefined) throw new Error(`task ${id}: read from, but not placed`);
    return resource.stdout;
  }

  /** Removed first of all, on every host, before anything is undone on any. */
  #guard(host: Host): void {
    const everything = [...this.#tasks.values()];
    hostCommand(
      `${host.name}-cluster-guard`,
      {
        host,
        instance: this.#args.testbed.instance,
        script: renderClusterGuard(host),
        timeoutSeconds: leaseSeconds,
      },
      { parent: this, dependsOn: everything },
    );
  }

  #readOutputs(): ClusterOutputs {
    const { testbed, settings, installation } = this.#args;
    const { kubeconfig, facts, nodes } = installation.outputs;
    const cluster = this.#printedBy(facts).apply(readClusterFacts);
    return {
      kubeconfig: pulumi.secret(this.#printedBy(kubeconfig)),
      clusterIdentifier: cluster.clusterIdentifier,
      apiServer: apiServerOf(hostOf(testbed, "gateway"), settings),
      versions: cluster.versions,
      nodes: Object.fromEntries(
        Object.entries(nodes).map(([host, id]) => [host, this.#printedBy(id).apply(parseFacts)]),
      ),
    };
  }
}
