/** Files of Istio's module that tests need, and the program that judges by Istio's library. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { $ } from "zx";
import { moduleDirectory } from "../../tools/istio.ts";
import { findGo, goEnvironment } from "../../tools/toolchain.ts";
import { versions } from "../../tools/versions.ts";

const root = path.resolve(import.meta.dirname, "..", "..");
const buildSeconds = 600;

export type IstioFiles = {
  /** All of Istio's custom resource definitions. */
  readonly definitions: string;
  /** Paths of the injector's template and of the values that it is given. */
  readonly template: string;
  readonly values: string;
};

/** @param directory for files that are derived */
export async function istioFiles(directory: string): Promise<IstioFiles> {
  const charts = path.join(await moduleDirectory(root, await findGo()), "manifests", "charts");
  const chart = path.join(charts, "istio-control", "istio-discovery");
  const values = path.join(directory, "values.json");
  const all = parse(readFileSync(path.join(chart, "values.yaml"), "utf8")) as {
    _internal_defaults_do_not_set: object;
  };
  writeFileSync(values, JSON.stringify(all._internal_defaults_do_not_set));
  return {
    definitions: path.join(charts, "base", "files", "crd-all.gen.yaml"),
    template: path.join(chart, "files", "injection-template.yaml"),
    values,
  };
}

/** Builds the judge; its parts are compiled already, since the control plane has them, too. */
export async function buildJudge(directory: string): Promise<string> {
  const go = await findGo();
  const target = path.join(directory, "ztvalidate");
  const cwd = path.join(root, versions.istio.origin.directory);
  const shell = $({ quiet: true, cwd, env: goEnvironment(), timeout: `${buildSeconds}s` });
  await shell`${go.command} build -ldflags ${"-s -w"} -o ${target} ./cmd/ztvalidate`;
  return target;
}
