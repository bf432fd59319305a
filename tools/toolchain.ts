/** The compilers and runtimes that must be on the machine already, and whether they will do. */
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { versions } from "./versions.ts";

export type GoToolchain = {
  /** Path of the go command. */
  readonly command: string;
  /** E.g. `go1.26.8`. */
  readonly version: string;
  readonly os: string;
  readonly architecture: string;
};

/** Where Go's own installer puts it; shells of root often lack it in PATH. */
const usualGo = "/usr/local/go/bin/go";

/**
 * Finds the Go toolchain.
 *
 * @throws Failure `testbed` if it is missing or too old
 */
export async function findGo(): Promise<GoToolchain> {
  for (const command of ["go", usualGo]) {
    const spawn = $({ quiet: true, nothrow: true, timeout: "20s", env: goEnvironment() });
    const found = await spawn`${command} env GOVERSION GOOS GOARCH`;
    if (found.exitCode !== 0) continue;
    const [version = "", os = "", architecture = ""] = found.stdout.trim().split("\n");
    requireAtLeast("go", version.replace(/^go/, ""));
    return { command, version, os, architecture };
  }
  throw new Failure("testbed", `go: not found, at least ${versions.go.version} wanted`, {
    hint: `install it (${versions.go.origin.source}) and put it on PATH`,
  });
}

/** Flags of every build: locked modules, no paths of this machine, no other toolchain. */
export const goFlags = "-mod=readonly -trimpath -buildvcs=false";

export function goEnvironment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    CGO_ENABLED: "0",
    GOFLAGS: goFlags,
    GOTOOLCHAIN: "local",
    GOWORK: "off",
  };
}

/** @throws Failure `testbed` if this Node is too old */
export function checkNode(): void {
  requireAtLeast("node", process.versions.node);
}

function requireAtLeast(name: "go" | "node", found: string): void {
  const { version, origin } = versions[name];
  if (compareVersions(found, version) >= 0) return;
  throw new Failure("testbed", `${name}: version ${found} found, at least ${version} wanted`, {
    hint: `install a newer one (${origin.source}) and put it first on PATH`,
  });
}

/** Compares dotted versions by number; what follows the third number does not count. */
export function compareVersions(a: string, b: string): number {
  const numbers = (version: string) => version.split(/[.\-+ ]/, 3).map((n) => Number.parseInt(n));
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (Number.isNaN(difference)) return -1; // e.g. a development build of Go: not known to do
    if (difference !== 0) return Math.sign(difference);
  }
  return 0;
}
