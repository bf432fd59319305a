/** Helm charts of Istio, out of the very module that its programs are built from. */
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { cacheKey, sha256OfFile } from "./cache.ts";
import { moduleDirectory } from "./istio.ts";
import { chartNames, type ChartName, chartFile } from "./paths.ts";
import { identity, type Recipe } from "./programs.ts";
import type { GoToolchain } from "./toolchain.ts";
import { versions } from "./versions.ts";

/** Where each chart lies in the module. */
const directoryOf: Readonly<Record<ChartName, string>> = {
  base: "manifests/charts/base",
  istiod: "manifests/charts/istio-control/istio-discovery",
};

/** Each chart as one archive, which Helm takes as it is. */
export async function chartRecipes(root: string, go: GoToolchain): Promise<readonly Recipe[]> {
  const { version, origin } = versions.istio;
  const sums = await sha256OfFile(path.join(root, origin.directory, "go.sum"));
  return chartNames.map((name) => ({
    ...identity({ name: `chart ${name}`, version }, "upstream"),
    provenance: `${directoryOf[name]} of ${origin.module} v${version}`,
    files: [chartFile(name)],
    task: `packing chart ${name}`,
    key: cacheKey({ kind: "chart", name, module: origin.module, version, sums }),
    make: async (target) => {
      await pack(path.join(await moduleDirectory(root, go), directoryOf[name]), name, target);
      return "tar";
    },
  }));
}

/** The same files always give the same archive. */
async function pack(directory: string, name: string, target: string): Promise<void> {
  const spawn = $({ quiet: true, nothrow: true, timeout: "60s" });
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const named = ["--mode=u+rw,go=r,a+X", `--transform=s,^\\.,${name},`];
  const done =
    await spawn`tar ${fixed} ${named} -I ${"gzip -n"} -cf ${target} --directory=${directory} .`;
  if (done.exitCode === 0) return;
  throw new Failure("testbed", `chart ${name}: cannot be packed, ${done.stderr.trim()}`);
}
