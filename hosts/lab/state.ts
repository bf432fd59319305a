/** What is written down about a running lab, and whether the machine still agrees with it. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { testbedSchema } from "../../contracts/testbed.ts";
import { attempt } from "./command.ts";
import { namespacesOf } from "./layout.ts";
import { isRunBySystemd, machineBootId } from "./machine.ts";
import type { Lab } from "./options.ts";
import { labProfiles } from "./profile.ts";
import { isSupervisor, isWatcher, namespaceInode, type FoundProcess } from "./processes.ts";

const stateSchema = z.strictObject({
  /** Hash of everything the lab was started with. */
  stamp: z.string(),
  machineBoot: z.string(),
  guarded: z.boolean(),
  profile: z.enum(labProfiles).default("native"),
  testbed: testbedSchema,
  warnings: z.array(z.strictObject({ id: z.string(), message: z.string() })),
});
export type LabState = z.infer<typeof stateSchema>;

/** Reads the state of a lab; undefined if there is none, or none that can be used. */
export async function readState(lab: Lab): Promise<LabState | undefined> {
  try {
    const parsed = stateSchema.safeParse(JSON.parse(await readFile(lab.paths.state, "utf8")));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the state by rename, so that it is complete or absent. */
export async function writeState(lab: Lab, state: LabState): Promise<void> {
  await mkdir(dirname(lab.paths.state), { recursive: true });
  const part = `${lab.paths.state}.part`;
  await writeFile(part, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600 });
  await rename(part, lab.paths.state);
}

/** What a lab in this state should have and has not; empty for a whole lab. */
export async function missingParts(
  lab: Lab,
  state: LabState,
  processes: readonly FoundProcess[],
): Promise<string[]> {
  const { layout } = lab;
  const missing: string[] = [];
  if (state.machineBoot !== (await machineBootId())) missing.push("this boot of the machine");
  const watched = !(await isRunBySystemd());
  for (const { machine } of layout.hosts) {
    if (!processes.some((p) => isSupervisor(p, machine))) missing.push(`supervisor of ${machine}`);
    if (watched && !processes.some((p) => isWatcher(p, machine))) {
      missing.push(`watcher of ${machine}`);
    }
  }
  for (const name of namespacesOf(layout)) {
    if ((await namespaceInode(name)) === undefined) missing.push(`namespace ${name}`);
  }
  const links = await ownLinks(lab);
  for (const { link } of layout.hosts) {
    if (!links.some((found) => found.name === link && found.own)) missing.push(`link ${link}`);
  }
  if (state.guarded) {
    const guard = await attempt(["nft", "list", "table", "netdev", layout.prefix]);
    if (guard.exitCode !== 0) missing.push(`nft table ${layout.prefix}`);
  }
  return missing;
}

/** Links of the machine that bear a name of the lab; `own` ones bear its mark, too. */
export async function ownLinks(lab: Lab): Promise<{ name: string; own: boolean }[]> {
  const { output, exitCode } = await attempt(["ip", "-json", "link"]);
  if (exitCode !== 0) return [];
  const links = JSON.parse(output) as { ifname: string; ifalias?: string }[];
  const names = new Set(lab.layout.hosts.map((host) => host.link));
  return links
    .filter((link) => names.has(link.ifname))
    .map((link) => ({ name: link.ifname, own: link.ifalias === lab.layout.linkAlias }));
}
