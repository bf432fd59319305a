/** Gates of pods: what the cluster really gave them, and that all of it is as at first. */
import type { Deployment, Pod } from "../../contracts/deployment.ts";
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { absent, byRuntime, checked, type Finding, type Gate, invalid, missing } from "./gate.ts";
import type { GateInput } from "./input.ts";
import { differences } from "./run-facts.ts";

type Cluster = NonNullable<Deployment["cluster"]>;

const podsOnly = byRuntime(absent("systemd units are no pods"), invalid());

/** The suffix under which a proxy's digest of configuration stands among the versions. */
const configurationSuffix = "-configuration";

/** What was read back of the cluster, now and in the treatment's first run. */
function judgeCluster(
  { record, reference }: GateInput,
  judge: (cluster: Cluster, first: Cluster) => Finding,
): Finding {
  const { cluster } = record.deployment;
  if (cluster === undefined) return missing("nothing was read back of the cluster");
  return judge(cluster, reference.cluster ?? cluster);
}

const found = (problems: readonly string[], otherwise: string): Finding =>
  checked(problems.length === 0, problems.slice(0, 3).join(", ") || otherwise);

/** CPUs that a pod's containers have for themselves, against what the topology wants. */
function cpuProblems({ name, containers }: Pod): string[] {
  return containers.flatMap((container) => {
    const { exclusiveCpus, plannedCpus, cpuset } = container;
    const where = `${name} ${container.name}`;
    if (exclusiveCpus !== plannedCpus) {
      return [`${where} has ${exclusiveCpus} CPUs for itself, ${plannedCpus} planned`];
    }
    const may = parseCpuList(cpuset).length;
    return plannedCpus > 0 && may !== plannedCpus ? [`${where} may use ${may} CPUs`] : [];
  });
}

const quality: Gate = {
  id: "pod-quality",
  shows: "class of service of every pod, and the CPUs that its containers have for themselves",
  limits: podsOnly,
  wanted: () => "Guaranteed, with the CPUs that the topology wants",
  judge: (input) =>
    judgeCluster(input, ({ pods }) => {
      if (pods.length === 0) return missing("no pod was read back");
      const classes = pods
        .filter(({ qosClass }) => qosClass !== "Guaranteed")
        .map(({ name, qosClass }) => `${name} is ${qosClass}`);
      return found([...classes, ...pods.flatMap(cpuProblems)], `${pods.length} pods Guaranteed`);
    }),
};

const imagesOf = ({ pods }: Cluster): Record<string, string> =>
  Object.fromEntries(
    pods.flatMap((pod) =>
      pod.containers.map(({ name, imageDigest }) => [`${pod.name}/${name}`, imageDigest] as const),
    ),
  );

const digestIn = (text: string) => /@(sha256:[0-9a-f]{64})$/.exec(text)?.[1];

const images: Gate = {
  id: "images",
  shows: "digests of the images that run, against those rendered and the treatment's first run",
  limits: podsOnly,
  wanted: () => "as rendered, and as at first",
  judge: (input) =>
    judgeCluster(input, (cluster, first) => {
      const containers = cluster.pods.flatMap((pod) => pod.containers);
      if (containers.length === 0) return missing("no container was read back");
      const others = containers
        .filter(({ plannedImage, image, imageDigest }) => {
          const planned = plannedImage === undefined ? undefined : digestIn(plannedImage);
          return planned !== undefined && ![image, imageDigest].map(digestIn).includes(planned);
        })
        .map(({ unit, imageDigest }) => `${unit} runs ${imageDigest}`);
      const changed = differences(imagesOf(first), imagesOf(cluster), "image");
      return found([...others, ...changed], `${containers.length} containers`);
    }),
};

/** Some of what parts of the cluster said of themselves. */
const toldOf = ({ versions }: Cluster, isDigest: boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(versions).filter(([name]) => name.endsWith(configurationSuffix) === isDigest),
  );

const configuration: Gate = {
  id: "proxy-configuration",
  shows: "digest of what each proxy shows as its configuration, against the treatment's first run",
  limits: podsOnly,
  wanted: () => "as at first",
  judge: (input) =>
    judgeCluster(input, (cluster, first) => {
      const now = toldOf(cluster, true);
      const names = Object.keys(now);
      if (names.length === 0) return missing("no proxy in a pod on this path");
      const shown = names.map(
        (name) => `${name.slice(0, -configurationSuffix.length)} ` + (now[name] ?? "").slice(0, 12),
      );
      return found(differences(toldOf(first, true), now, "proxy"), shown.join(", "));
    }),
};

const versions: Gate = {
  id: "cluster-versions",
  shows: "what the cluster, its mesh and the proxies say of their versions, as at first",
  limits: podsOnly,
  wanted: () => "as at first",
  judge: (input) =>
    judgeCluster(input, (cluster, first) => {
      const now = toldOf(cluster, false);
      const names = Object.keys(now);
      if (names.length === 0) return missing("nothing told its version");
      return found(differences(toldOf(first, false), now, "version"), `${names.length} parts`);
    }),
};

const sysctls: Gate = {
  id: "pod-sysctls",
  shows: "kernel settings in the pods' networks, against the treatment's first run",
  limits: podsOnly,
  wanted: () => "as at first",
  judge: (input) =>
    judgeCluster(input, (cluster, first) => {
      const settled = cluster.pods.filter((pod) => Object.keys(pod.sysctls).length > 0);
      if (settled.length === 0) return missing("no pod has a network of its own");
      const changed = settled.flatMap((pod) => {
        const was = first.pods.find(({ name }) => name === pod.name);
        return differences(was?.sysctls ?? {}, pod.sysctls, pod.name);
      });
      return found(changed, `${settled.length} pods`);
    }),
};

export const clusterGates: readonly Gate[] = [quality, images, configuration, versions, sysctls];
