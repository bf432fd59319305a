/** Where files that a testbed document names lie: relative to the document, or below home. */
import { homedir } from "node:os";
import path from "node:path";
import type { Testbed } from "../contracts/testbed.ts";

/** The testbed with absolute paths of its files; `file` is the document's own path. */
export function resolveIdentities(testbed: Testbed, file: string): Testbed {
  const resolve = (named: string) =>
    named.startsWith("~/")
      ? path.join(homedir(), named.slice(2))
      : path.resolve(path.dirname(file), named);
  const hosts = testbed.hosts.map((host) => ({
    ...host,
    identityFile: resolve(host.identityFile),
  }));
  const { cluster } = testbed;
  if (cluster?.artifacts === undefined) return { ...testbed, hosts };
  return { ...testbed, hosts, cluster: { ...cluster, artifacts: resolve(cluster.artifacts) } };
}
