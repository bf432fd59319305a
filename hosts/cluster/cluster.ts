/**
 * What it takes to put a cluster on the hosts of a testbed, as data. Each kind of cluster renders
 * an installation; `stacks/cluster.ts` carries it out over the SSH door. Pure.
 */
import type { Artifacts } from "../../contracts/artifacts.ts";
import { addressOfNumber, numberOfAddress } from "../../contracts/ipv4.ts";
import type { ClusterKind, ClusterSettings, Host, Testbed } from "../../contracts/testbed.ts";
import { type Facts, parseFacts } from "../facts.ts";
import type { HostScript } from "../runner.ts";

/** A file of this machine that a cluster needs on a host. */
export type ClusterFile = {
  /** Its name on the host, without directories. */
  readonly name: string;
  /** Where it lies on this machine. */
  readonly source: string;
  /** SHA-256, hexadecimal; checked on the host after the copy. */
  readonly digest: string;
  /** Programs become executable there. */
  readonly executable: boolean;
};

/** What an installer is given. */
export type ClusterPlace = {
  readonly testbed: Testbed;
  readonly settings: ClusterSettings;
  /** Files of the cluster by name, present with a good digest; see `stacks/cluster-files.ts`. */
  readonly files: ReadonlyMap<string, ClusterFile>;
  /** What the files of k3s are for; absent for kinds that do not come from such a document. */
  readonly artifacts?: Artifacts;
  /** Short facts by host, as the hosts stack knows them. */
  readonly facts?: Readonly<Record<string, Facts>>;
};

/**
 * One step on one host. `script.create` must be idempotent, and `script.remove` must succeed when
 * there is nothing left, must not need the API server, and must leave the host as it was.
 */
export type ClusterTask = {
  /** Name of the Pulumi resource, unique in the stack, e.g. `gateway-server`. */
  readonly id: string;
  /** Name of the host. */
  readonly host: string;
  readonly script: HostScript;
  /** Bound of create and of remove, each. */
  readonly timeoutSeconds: number;
  /**
   * Ids of tasks that come first, and are undone last. When one of them changes, this one is
   * undone and done anew.
   */
  readonly after: readonly string[];
  /** Whether the files of the host must have come first. */
  readonly needsFiles: boolean;
  /**
   * Bash variables for the script, each with the id of the task whose standard output is the
   * value. What a `secret` task prints stays encrypted in the state, also as a variable.
   */
  readonly receives?: Readonly<Record<string, string>>;
  /** Standard output is secret: a token, or the kubeconfig. */
  readonly secret?: boolean;
};

/** What an installer returns. */
export type ClusterInstallation = {
  /** Files for each host, by its name; copied to `clusterFileDirectory`. */
  readonly files: Readonly<Record<string, readonly ClusterFile[]>>;
  readonly tasks: readonly ClusterTask[];
  /** Ids of the tasks whose standard output says what was made. */
  readonly outputs: {
    /** A whole kubeconfig with the address `apiServerOf`; the task must be `secret`. */
    readonly kubeconfig: string;
    /** Facts of the cluster, in the form of `parseFacts`, see `readClusterFacts`. */
    readonly facts: string;
    /** By host name: facts of the node, in the form of `parseFacts`. */
    readonly nodes: Readonly<Record<string, string>>;
  };
};

/** A kind of cluster. */
export type ClusterInstaller = {
  readonly kind: Exclude<ClusterKind, "none">;
  /** Names of the files it needs; `stacks/cluster-files.ts` looks for them. */
  readonly files: readonly string[];
  readonly install: (place: ClusterPlace) => ClusterInstallation;
};

/** Where the files of a cluster lie on every host; removed with the cluster. */
export const clusterFileDirectory = "/var/lib/ztbench/cluster-files";

/** Directory on the hosts that holds whatever else our own installers make. */
export const clusterDirectory = "/var/lib/ztbench/cluster";

/** The label that places pods: `ztbench/role=client`, `gateway` or `server`. */
export const roleLabel = "ztbench/role";

/** The second declared door: where the API server answers. */
export function apiServerOf(server: Host, settings: ClusterSettings): string {
  return `https://${settings.apiAddress ?? server.dataAddress}:${settings.apiPort}`;
}

/**
 * The /24 of the pod network that the pods of each host get their addresses from, by host name, in
 * the order of the testbed document.
 */
export function podNetworksOf(testbed: Testbed, settings: ClusterSettings): Map<string, string> {
  const base = numberOfAddress(settings.podNetwork.split("/")[0] ?? "");
  return new Map(
    testbed.hosts.map(({ name }, index) => [name, `${addressOfNumber(base + index * 256)}/24`]),
  );
}

/** The address that many places into a network, e.g. the first one is that of the API service. */
export function addressIn(network: string, offset: number): string {
  return addressOfNumber(numberOfAddress(network.split("/")[0] ?? "") + offset);
}

export type ClusterFacts = {
  /** Stays the same as long as it is the same cluster. */
  readonly clusterIdentifier: string;
  /** By component, as each says of itself. */
  readonly versions: Facts;
};

/**
 * Reads what the facts task printed: `cluster-identifier`, the uid of namespace kube-system, and
 * one `version-COMPONENT` for each component.
 */
export function readClusterFacts(text: string): ClusterFacts {
  const { "cluster-identifier": clusterIdentifier = "", ...rest } = parseFacts(text);
  const versions = Object.entries(rest)
    .filter(([name]) => name.startsWith("version-"))
    .map(([name, value]) => [name.slice("version-".length), value] as const);
  return { clusterIdentifier, versions: Object.fromEntries(versions) };
}

/** How the cluster is asked on the host of its API server, as root: words of a shell. */
export function kubectlOf(kind: Exclude<ClusterKind, "none">): string {
  return kind === "k3s"
    ? "k3s kubectl"
    : `"$(echo ${clusterFileDirectory}/*/kubectl)" ` +
        `--kubeconfig ${clusterDirectory}/authority/admin.kubeconfig`;
}
