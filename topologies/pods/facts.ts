/** What is read back of pods on their hosts once they are ready, and its reader. Pure. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { Failure } from "../../contracts/failure.ts";
import { parseFacts } from "../../hosts/facts.ts";

/** What the cluster says of a pod that is ready. */
export type PodStatus = {
  readonly name: string;
  readonly uid: string;
  readonly qosClass: string;
  readonly containers: readonly {
    readonly name: string;
    readonly image: string;
    /** With its digest, as the kubelet reports it. */
    readonly imageId: string;
    /** Without the name of the container runtime before it. */
    readonly id: string;
  }[];
};

/** What its host says of a container. */
export type ContainerFacts = {
  readonly pod: string;
  readonly container: string;
  /** Path below the root of each cgroup hierarchy. */
  readonly cgroup: string;
  /** Kernel CPU list. */
  readonly cpuset: string;
  /** CPUs that nobody else may use. */
  readonly exclusiveCpus: number;
};

export type HostFacts = {
  readonly containers: readonly ContainerFacts[];
  /** By pod. */
  readonly sysctls: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** As programs say of themselves. */
  readonly versions: Readonly<Record<string, string>>;
};

/** Name by which the control plane's own container is among the facts. */
export const controlPod = "control";

/** The variable that the script of a host is given: a line for each container on it. */
export function podTable(pods: readonly PodStatus[]): string {
  return pods
    .flatMap(({ name, uid, containers }) =>
      containers.map((container) => [name, uid, container.name, container.id].join(" ")),
    )
    .join("\n");
}

/**
 * Reads what the scripts of all hosts have printed.
 *
 * @throws Failure `testbed` for a line that is not understood
 */
export function readHostFacts(printed: readonly string[]): HostFacts {
  const containers: ContainerFacts[] = [];
  const sysctls: Record<string, Record<string, string>> = {};
  const versions: Record<string, string> = {};
  const rows = (text: string | undefined) => (text ?? "").split("\n").filter((line) => line !== "");
  for (const text of printed) {
    const facts = parseFacts(text);
    for (const line of rows(facts["containers"])) containers.push(readContainer(line));
    for (const line of rows(facts["sysctls"])) {
      const [, pod = "", name = "", value = ""] = /^(\S+) (\S+) (.*)$/.exec(line) ?? refuse(line);
      (sysctls[pod] ??= {})[name] = value.replaceAll("\t", " ");
    }
    for (const line of rows(facts["versions"])) {
      const [, name = "", value = ""] = /^(\S+) (.+)$/.exec(line) ?? refuse(line);
      versions[name] = value;
    }
  }
  return { containers, sysctls, versions };
}

/** `POD CONTAINER CGROUP CPUS EXCLUSIVE`, the last one a CPU list or a dash. */
function readContainer(line: string): ContainerFacts {
  const [pod, container, cgroup, cpuset, exclusive, ...rest] = line.split(" ");
  if (
    pod === undefined ||
    container === undefined ||
    cgroup?.startsWith("/") !== true ||
    cpuset === undefined ||
    exclusive === undefined ||
    rest.length > 0
  ) {
    return refuse(line);
  }
  const exclusiveCpus = exclusive === "-" ? 0 : parseCpuList(exclusive).length;
  return { pod, container, cgroup, cpuset, exclusiveCpus };
}

function refuse(line: string): never {
  throw new Failure("testbed", `facts of pods: line is not understood, found ${line}`);
}
