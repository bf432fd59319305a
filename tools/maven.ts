/** Fetches one jar by Maven, whose own settings say from where; fixed by the jar's digest. */
import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { cacheKey, type Maker, sha256OfFile } from "./cache.ts";

export type Jar = {
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
  readonly sha256: string;
};

const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/** How to get the jar, and the key under which the cache keeps it. */
export function mavenJar(jar: Jar): { readonly key: string; readonly make: Maker } {
  return {
    key: cacheKey({ kind: "jar", sha256: jar.sha256 }),
    make: async (target) => {
      const scratch = await mkdtemp(path.join(path.dirname(target), "jar-"));
      try {
        await fetchJar(jar, scratch, target);
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
      return `jar sha256:${jar.sha256}`;
    },
  };
}

/** @throws Failure `testbed` if Maven cannot get it, or gets other bytes */
async function fetchJar(jar: Jar, scratch: string, target: string): Promise<void> {
  const { group, artifact, version, sha256 } = jar;
  const coordinates = `${group}:${artifact}:${version}`;
  const spawn = $({ quiet: true, nothrow: true, cwd: scratch, timeout: "300s" });
  const settings = [`-Dartifact=${coordinates}`, `-DoutputDirectory=${scratch}`];
  const done = await spawn`mvn --batch-mode --no-transfer-progress --quiet ${copy} ${settings}`;
  const file = (await readdir(scratch)).find((name) => name.endsWith(".jar"));
  if (done.exitCode !== 0 || file === undefined) {
    const problem = `${done.stdout}${done.stderr}`.trim().split("\n").slice(0, 3).join("\n  ");
    throw new Failure("testbed", `${coordinates}: Maven cannot get it:\n  ${problem}`, {
      hint: "check the network and Maven's settings, then run it again",
    });
  }
  const found = await sha256OfFile(path.join(scratch, file));
  if (found !== sha256) {
    throw new Failure("testbed", `${coordinates}: must have sha256 ${sha256}, found ${found}`);
  }
  await rename(path.join(scratch, file), target);
}
