/**
 * Files of this machine's distribution that images need: the libraries that a program is linked
 * with, and iptables, which the mesh's agent calls to lead a pod's traffic to the sidecar.
 */
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { sha256OfFile } from "./cache.ts";
import type { ImageEntry, ImageFile } from "./image.ts";

/** All of iptables is one program that goes by these names; it writes nftables rules. */
const xtables = "/usr/sbin/xtables-nft-multi";
const iptablesNames = ["iptables", "ip6tables"].flatMap((name) =>
  ["", "-save", "-restore"].flatMap((action) => [`${name}${action}`, `${name}-nft${action}`]),
);

/** The file at `source` as an entry at `target`. */
export async function imageFile(
  source: string,
  target: string,
  executable: boolean,
): Promise<ImageFile> {
  const { size } = await stat(source);
  const sha256 = await sha256OfFile(source);
  return { kind: "file", path: target, source, sha256, bytes: size, executable };
}

/**
 * The libraries that a program needs, and its loader.
 *
 * @throws Failure `testbed` if one of them is not on this machine
 */
export async function librariesOf(program: string): Promise<readonly ImageFile[]> {
  const spawn = $({ quiet: true, nothrow: true, timeout: "20s" });
  const listed = await spawn`ldd ${program}`;
  if (listed.exitCode !== 0) {
    throw new Failure("testbed", `ldd ${program}: ${listed.stderr.trim()}`);
  }
  const { found, missing } = parseLibraries(listed.stdout);
  if (missing.length > 0) {
    throw new Failure("testbed", `${program}: libraries missing here, ${missing.join(", ")}`);
  }
  return Promise.all(found.map((file) => imageFile(file, file, true)));
}

/** What `ldd` printed: paths of libraries, and names of those that it did not find. */
export function parseLibraries(text: string): {
  readonly found: readonly string[];
  readonly missing: readonly string[];
} {
  const lines = text.split("\n").map((line) => line.trim());
  return {
    found: lines.flatMap((line) => /^(?:\S+ => )?(\/\S+) \(0x[0-9a-f]+\)$/.exec(line)?.[1] ?? []),
    missing: lines.flatMap((line) => /^(\S+) => not found$/.exec(line)?.[1] ?? []),
  };
}

/**
 * iptables with all its extensions.
 *
 * @throws Failure `testbed` if it is not on this machine
 */
export async function iptablesEntries(): Promise<readonly ImageEntry[]> {
  const isThere = await stat(xtables).catch(() => undefined);
  if (isThere === undefined) {
    throw new Failure("testbed", `${xtables}: missing, images of the mesh need it`, {
      hint: "apt-get install --no-install-recommends iptables",
    });
  }
  const libraries = await librariesOf(xtables);
  const own = libraries.find(({ path: file }) => path.basename(file).startsWith("libxtables."));
  if (own === undefined) throw new Failure("testbed", `${xtables}: not linked with libxtables`);
  const extensions = path.join("/usr", path.dirname(own.path).replace(/^\/usr/, ""), "xtables");
  const names = (await readdir(extensions)).filter((name) => name.endsWith(".so"));
  return [
    await imageFile(xtables, xtables, true),
    ...iptablesNames.map((name) => ({
      kind: "link" as const,
      path: `/usr/sbin/${name}`,
      target: path.basename(xtables),
    })),
    ...libraries,
    ...(await Promise.all(
      names.sort().map((name) => {
        const file = path.join(extensions, name);
        return imageFile(file, file, false);
      }),
    )),
  ];
}
