/** Files of Istio's module that tests need, and the program that judges by Istio's library. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { $ } from "zx";
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
  const { version, origin } = versions.istio;
  const go = await findGo();
  const shell = goShell(origin.directory);
  const done = await shell`${go.command} mod download -json ${origin.module}@v${version}`;
  const { Dir } = z.object({ Dir: z.string() }).parse(JSON.parse(done.stdout));
  const charts = path.join(Dir, "manifests", "charts");
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
  const shell = goShell(versions.istio.origin.directory);
  await shell`${go.command} build -ldflags ${"-s -w"} -o ${target} ./cmd/ztvalidate`;
  return target;
}

function goShell(directory: string) {
  const cwd = path.join(root, directory);
  return $({ quiet: true, cwd, env: goEnvironment(), timeout: `${buildSeconds}s` });
}
