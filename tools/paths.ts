/**
 * The door to the installed programs: where they lie in a checkout, and the environment that
 * makes `pulumi` use them and nothing else. Pure; nothing here looks at the disk.
 */
import path from "node:path";
import { versions } from "./versions.ts";

export type ToolPaths = {
  /** Everything the installer makes in this checkout. */
  readonly tools: string;
  /** For PATH: pulumi, pulumi-language-nodejs, vegeta, envoy, kubectl where it is installed. */
  readonly bin: string;
  /** What is copied to hosts: vegeta, envoy, the mesh and the programs of service/. */
  readonly hostBin: string;
  /** Kubernetes: what an API server needs, and with `--with-cluster` what its nodes need. */
  readonly clusterBin: string;
  /** Images as files, and `index.json`, which names them; only with `--with-cluster`. */
  readonly images: string;
  /** PULUMI_HOME: the plugins, and what Pulumi writes beside them. */
  readonly pulumiHome: string;
  readonly commandPlugin: string;
  readonly kubernetesPlugin: string;
  /** Name, version, digest and provenance of every program. */
  readonly manifest: string;
  readonly pulumi: string;
  readonly vegeta: string;
  readonly envoy: string;
};

/** Paths below `root`, the directory of a checkout. */
export function toolPaths(root: string): ToolPaths {
  const tools = path.join(root, ".ztbench", "tools");
  const bin = path.join(tools, "bin");
  const pulumiHome = path.join(tools, "pulumi-home");
  return {
    tools,
    bin,
    hostBin: path.join(tools, "host-bin"),
    clusterBin: path.join(tools, "cluster-bin"),
    images: path.join(tools, "images"),
    pulumiHome,
    commandPlugin: path.join(tools, pluginFiles.command),
    kubernetesPlugin: path.join(tools, pluginFiles.kubernetes),
    manifest: path.join(tools, "manifest.json"),
    pulumi: path.join(bin, "pulumi"),
    vegeta: path.join(bin, "vegeta"),
    envoy: path.join(bin, "envoy"),
  };
}

const pluginFile = ({ name, version }: { readonly name: string; readonly version: string }) =>
  `pulumi-home/plugins/${name.replace("pulumi-", "")}-v${version}/${name}`;

/** Where the engine looks for each provider, below the tools directory. */
export const pluginFiles = {
  command: pluginFile(versions["pulumi-resource-command"]),
  kubernetes: pluginFile(versions["pulumi-resource-kubernetes"]),
} as const;

/** Charts of Istio that clusters of the lab are given. */
export const chartNames = ["base", "istiod"] as const;
export type ChartName = (typeof chartNames)[number];

/**
 * Where a chart lies below the tools directory. Its version is in the name, since Helm's releases
 * see a change of a local chart only by its path.
 */
export function chartFile(name: ChartName): string {
  return `charts/istio-${name}-${versions.istio.version}.tgz`;
}

export type PulumiBackend = {
  /** Directory of the file backend; it must exist before Pulumi runs. */
  readonly stateDirectory: string;
  /** File with the passphrase of the checkout, mode 0600. */
  readonly passphraseFile: string;
};

/**
 * The environment of every `pulumi` process, apart from PATH: own home, own backend, no update
 * check, no download of plugins, no questions.
 */
export function pulumiEnvironment(root: string, backend: PulumiBackend): Record<string, string> {
  return {
    PULUMI_HOME: toolPaths(root).pulumiHome,
    PULUMI_BACKEND_URL: `file://${backend.stateDirectory}?no_tmp_dir=true`,
    PULUMI_CONFIG_PASSPHRASE_FILE: backend.passphraseFile,
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    PULUMI_SUPPRESS_NEO_LINK: "true",
  };
}

/** `current` with the directory of our programs in front, for the PATH of a child process. */
export function toolSearchPath(root: string, current: string | undefined): string {
  const { bin } = toolPaths(root);
  return current === undefined || current === "" ? bin : `${bin}${path.delimiter}${current}`;
}
