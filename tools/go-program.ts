/** Builds a Go program from a module in this repository; the key covers all that shapes it. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { cacheKey, type Maker, sha256OfFile } from "./cache.ts";
import { goEnvironment, goFlags, type GoToolchain } from "./toolchain.ts";

export type GoProgram = {
  /** Directory of the module, relative to the checkout. */
  readonly directory: string;
  /** Import path, or path relative to the module. */
  readonly package: string;
  /** Values stamped into string variables, by `package.variable`. */
  readonly stamps: Readonly<Record<string, string>>;
  /** `lock files`: only third-party code goes in. `module`: the module's own code, too. */
  readonly from: "lock files" | "module";
};

/** Longest build: the Pulumi CLI, cold, on a slow and busy machine. */
const buildTimeout = "3600s";

/** How to make one program, and the key under which the cache keeps it. */
export async function goProgram(
  root: string,
  go: GoToolchain,
  program: GoProgram,
): Promise<{ readonly key: string; readonly make: Maker }> {
  const directory = path.join(root, program.directory);
  const linkerFlags = renderLinkerFlags(program.stamps);
  const names = program.from === "module" ? await sourceFiles(directory) : ["go.mod", "go.sum"];
  const files: Record<string, string> = {};
  for (const name of names) files[name] = await sha256OfFile(path.join(directory, name));
  const builder = `${go.version} ${go.os}/${go.architecture}`;
  const determinants = { builder, goFlags, linkerFlags, package: program.package, files };
  return {
    key: cacheKey({ kind: "go program", ...determinants }),
    make: async (target) => {
      const spawn = $({
        quiet: true,
        nothrow: true,
        cwd: directory,
        env: goEnvironment(),
        timeout: buildTimeout,
      });
      const built =
        await spawn`${go.command} build -o ${target} -ldflags ${linkerFlags} ${program.package}`;
      if (built.exitCode === 0) return builder;
      throw new Failure("testbed", buildProblem(program, built.stderr), {
        hint: "if modules could not be downloaded, check GOPROXY, then run it again",
      });
    },
  };
}

function renderLinkerFlags(stamps: Readonly<Record<string, string>>): string {
  const set = Object.entries(stamps).map(([variable, value]) => `-X ${variable}=${value}`);
  return ["-s -w", ...set].join(" ");
}

function buildProblem(program: GoProgram, stderr: string): string {
  const lines = stderr.trim().split("\n");
  const shown = lines.filter((line) => !line.startsWith("go: downloading")).slice(-8);
  return `${program.directory}: go build ${program.package} failed:\n  ${shown.join("\n  ")}`;
}

/** Files that can end up in a program: all but tests and their data. */
async function sourceFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
    .filter((name) => isSource(name))
    .sort();
}

/** Whether a file of a module, by its path in it, can end up in a program. */
export function isSource(name: string): boolean {
  const folders = name.split("/").slice(0, -1);
  return !name.endsWith("_test.go") && !folders.some((f) => f === "testdata" || f.startsWith("."));
}
