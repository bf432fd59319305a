/**
 * How Kubernetes' programs are made: what an API server needs to check manifests, what nodes need
 * to run pods, and Pulumi's provider for both. All optional, since they take long to build.
 */
import { goProgram } from "./go-program.ts";
import { pluginFiles } from "./paths.ts";
import { forClusters, identity, inBin, type ProgramGroup, type Recipe } from "./programs.ts";
import type { GoToolchain } from "./toolchain.ts";
import { versions } from "./versions.ts";

const always: readonly ProgramGroup[] = ["tests", "cluster"];

type Upstream = {
  readonly entry: {
    readonly name: string;
    readonly version: string;
    readonly origin: { readonly module: string; readonly directory: string };
  };
  /** Name of the program. */
  readonly name: string;
  readonly package: string;
  readonly stamps: Readonly<Record<string, string>>;
  readonly groups: readonly ProgramGroup[];
  readonly files: readonly string[];
  /** What to say of the time it takes, if it is long. */
  readonly duration?: string;
};

/** Everything for Kubernetes, the quick ones first. */
export async function kubernetesRecipes(root: string, go: GoToolchain): Promise<readonly Recipe[]> {
  const programs = [etcd(), ...kubernetes(), kwok(), kubeRouter()];
  const recipes = programs.map((program) => upstreamRecipe(root, go, program));
  return Promise.all([...recipes, providerRecipe(root, go)]);
}

async function upstreamRecipe(root: string, go: GoToolchain, program: Upstream): Promise<Recipe> {
  const { entry, name, stamps, groups, files, duration } = program;
  const { version, origin } = entry;
  return {
    ...identity({ name, version }, "upstream"),
    provenance: `${origin.module} v${version}, built here with ${go.version}`,
    files,
    groups,
    task: `building ${name} ${version}${duration === undefined ? "" : ` (${duration})`}`,
    ...(await goProgram(root, go, {
      directory: origin.directory,
      package: program.package,
      stamps,
      from: "lock files",
    })),
  };
}

/** In place of a commit: the module says its version, not the commit it was made of. */
const noCommit = "built-from-module";

function etcd(): Upstream {
  const entry = versions.etcd;
  return {
    entry,
    name: entry.name,
    package: entry.origin.module,
    stamps: { "go.etcd.io/etcd/api/v3/version.GitSHA": noCommit },
    groups: always,
    files: [forClusters(entry.name)],
  };
}

/** The first one compiles nearly all that the others share. */
function kubernetes(): Upstream[] {
  const first = "about 4 min on 2 idle cores, once";
  return [
    kubernetesProgram("kube-apiserver", always, first),
    kubernetesProgram("kubectl", always, "about 1 min, once"),
    kubernetesProgram("kube-controller-manager", always, "about 1 min, once"),
    kubernetesProgram("kube-scheduler", always),
    kubernetesProgram("kubelet", ["cluster"], "about 1 min, once"),
    kubernetesProgram("kube-proxy", ["cluster"]),
  ];
}

function kubernetesProgram(
  name: string,
  groups: readonly ProgramGroup[],
  duration?: string,
): Upstream {
  const entry = versions.kubernetes;
  const command = forClusters(name);
  return {
    entry,
    name,
    package: `${entry.origin.module}/cmd/${name}`,
    stamps: kubernetesStamps(entry.version),
    groups,
    files: name === "kubectl" ? [inBin(name), command] : [command],
    ...(duration === undefined ? {} : { duration }),
  };
}

/** Without these the server calls itself v0.0.0, and clients take that for very old. */
function kubernetesStamps(version: string): Record<string, string> {
  const [major = "", minor = ""] = version.split(".");
  const values = {
    gitVersion: `v${version}`,
    gitMajor: major,
    gitMinor: minor,
    gitCommit: noCommit,
    gitTreeState: "archive",
    buildDate: "1970-01-01T00:00:00Z",
  };
  const packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
  return Object.fromEntries(
    packages.flatMap((name) =>
      Object.entries(values).map(([variable, value]) => [`${name}.${variable}`, value]),
    ),
  );
}

function kwok(): Upstream {
  const entry = versions.kwok;
  return {
    entry,
    name: entry.name,
    package: `${entry.origin.module}/cmd/kwok`,
    stamps: {},
    groups: ["tests"],
    files: [inBin(entry.name)],
    duration: "about 2 min on 2 idle cores, once",
  };
}

function kubeRouter(): Upstream {
  const entry = versions["kube-router"];
  const variables = "github.com/cloudnativelabs/kube-router/v2/pkg/version";
  return {
    entry,
    name: entry.name,
    package: `${entry.origin.module}/cmd/kube-router`,
    stamps: { [`${variables}.Version`]: `v${entry.version}`, [`${variables}.BuildDate`]: noCommit },
    groups: ["cluster"],
    files: [forClusters(entry.name)],
    duration: "about 2 min on 2 idle cores, once",
  };
}

/** The provider is upstream's; only its few lines of start are ours, see there. */
async function providerRecipe(root: string, go: GoToolchain): Promise<Recipe> {
  const { name, version, origin } = versions["pulumi-resource-kubernetes"];
  const source = `${origin.module} v${origin.moduleVersion}`;
  return {
    ...identity({ name, version }, "upstream"),
    provenance: `${source}, own start, built here with ${go.version}`,
    files: [pluginFiles.kubernetes],
    groups: always,
    task: `building ${name} ${version} (about 9 min on 2 idle cores, once)`,
    ...(await goProgram(root, go, {
      directory: origin.directory,
      package: ".",
      stamps: { "main.version": version },
      from: "module",
    })),
  };
}
