/**
 * How the mesh's programs are made: Istio's agent as upstream wrote it, its control plane in a
 * program of ours, and the bootstrap template that the agent renders for Envoy.
 */
import { copyFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { cacheKey, type Maker, sha256OfFile } from "./cache.ts";
import { goProgram } from "./go-program.ts";
import { forHosts, forImages, identity, type Recipe } from "./programs.ts";
import { goEnvironment, type GoToolchain } from "./toolchain.ts";
import { versions } from "./versions.ts";

const agent = "pilot-agent";
const controlPlane = "ztistiod";
/** The control plane as upstream starts it; it needs Kubernetes. */
export const podControlPlane = "pilot-discovery";
const template = "envoy_bootstrap.json";
const templateInModule = `tools/packaging/common/${template}`;
const downloadTimeout = "600s";

/** The mesh: what goes to the hosts, and the control plane that runs in a pod. */
export async function istioRecipes(root: string, go: GoToolchain): Promise<readonly Recipe[]> {
  const { version, origin } = versions.istio;
  const source = `${origin.module} v${version}`;
  return [
    {
      ...identity({ name: agent, version }, "upstream"),
      provenance: `${source}, built here with ${go.version}`,
      files: [forHosts(agent)],
      task: `building ${agent} (with ${controlPlane} about 7 min on 2 idle cores, once)`,
      ...(await goProgram(root, go, {
        directory: origin.directory,
        package: `${origin.module}/pilot/cmd/${agent}`,
        stamps: versionStamps(version),
        from: "lock files",
      })),
    },
    {
      ...identity({ name: controlPlane, version }, "ztbench"),
      provenance: `own start of ${source}'s control plane, built here with ${go.version}`,
      files: [forHosts(controlPlane)],
      task: `building ${controlPlane}`,
      ...(await goProgram(root, go, {
        directory: origin.directory,
        package: `./cmd/${controlPlane}`,
        stamps: versionStamps(version),
        from: "module",
      })),
    },
    {
      ...identity({ name: template, version }, "upstream"),
      provenance: `${templateInModule} of ${source}`,
      files: [forHosts(template)],
      task: `copying ${template}`,
      ...(await templateFile(root, go)),
    },
    {
      ...identity({ name: podControlPlane, version }, "upstream"),
      provenance: `${source}, built here with ${go.version}`,
      files: [forImages(podControlPlane)],
      groups: ["cluster"],
      task: `building ${podControlPlane} (about 1 min)`,
      ...(await goProgram(root, go, {
        directory: origin.directory,
        package: `${origin.module}/pilot/cmd/${podControlPlane}`,
        stamps: versionStamps(version),
        from: "lock files",
      })),
    },
  ];
}

/** What the programs say of themselves; without it, Istio takes itself for an unknown version. */
function versionStamps(version: string): Record<string, string> {
  const variables = "istio.io/istio/pkg/version";
  return { [`${variables}.buildVersion`]: version, [`${variables}.buildStatus`]: "Clean" };
}

const downloadSchema = z.object({ Dir: z.string() });

async function templateFile(
  root: string,
  go: GoToolchain,
): Promise<{ readonly key: string; readonly make: Maker }> {
  const { version, origin } = versions.istio;
  const directory = path.join(root, origin.directory);
  const sums = await sha256OfFile(path.join(directory, "go.sum"));
  const module = `${origin.module}@v${version}`;
  return {
    key: cacheKey({ kind: "file of a module", module, file: templateInModule, sums }),
    make: async (target) => {
      const source = await moduleDirectory(root, go);
      await copyFile(path.join(source, templateInModule), target);
      return `${go.version} ${go.os}/${go.architecture}`;
    },
  };
}

/**
 * Where Istio's module lies unpacked; go checks it against the lock file.
 *
 * @throws Failure `testbed` if it cannot be downloaded
 */
export async function moduleDirectory(root: string, go: GoToolchain): Promise<string> {
  const { version, origin } = versions.istio;
  const module = `${origin.module}@v${version}`;
  const spawn = $({
    quiet: true,
    nothrow: true,
    cwd: path.join(root, origin.directory),
    env: goEnvironment(),
    timeout: downloadTimeout,
  });
  const done = await spawn`${go.command} mod download -json ${module}`;
  if (done.exitCode !== 0) {
    throw new Failure("testbed", `${module}: cannot be downloaded, ${done.stderr.trim()}`, {
      hint: "check GOPROXY, then run it again",
    });
  }
  return downloadSchema.parse(JSON.parse(done.stdout)).Dir;
}
