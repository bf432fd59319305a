/** SSH keys of a lab: made before the first boot, so that every host key is pinned beforehand. */
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Role } from "../../contracts/testbed.ts";
import { demand } from "./command.ts";
import type { LabLayout } from "./layout.ts";

export type LabKeys = {
  readonly identityFile: string;
  /** Public host key as "type base64". */
  readonly hostKeys: Readonly<Record<Role, string>>;
};

/** Makes what is missing and writes `known_hosts`, `ssh_config` and `hosts` anew. */
export async function ensureKeys(directory: string, layout: LabLayout): Promise<LabKeys> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const identityFile = join(directory, "id");
  await Promise.all([
    ensureKey(identityFile, layout.prefix),
    ...layout.hosts.map((host) => ensureKey(join(directory, `host_${host.role}`), host.role)),
  ]);
  const read = async (role: Role): Promise<string> => {
    const line = await readFile(join(directory, `host_${role}.pub`), "utf8");
    return line.split(" ").slice(0, 2).join(" ").trim();
  };
  const hostKeys = {
    client: await read("client"),
    gateway: await read("gateway"),
    server: await read("server"),
  };
  await replaceFile(join(directory, "known_hosts"), knownHosts(layout, hostKeys));
  await replaceFile(join(directory, "ssh_config"), sshConfig(layout, directory));
  await replaceFile(join(directory, "hosts"), hostsFile(layout));
  return { identityFile, hostKeys };
}

/** `/etc/hosts` of a lab whose data network is its own. */
function hostsFile(layout: LabLayout): string {
  const hosts = layout.hosts.map((host) => `${host.dataAddress} ${host.role}`);
  return ["127.0.0.1 localhost", ...hosts].map((line) => `${line}\n`).join("");
}

/** `known_hosts` text: each host by role and by address. */
export function knownHosts(layout: LabLayout, hostKeys: Readonly<Record<Role, string>>): string {
  return layout.hosts
    .map((host) => `${host.role},${host.managementAddress} ${hostKeys[host.role]}\n`)
    .join("");
}

/** `ssh -F` configuration that knows the hosts by role and trusts nothing but the pinned keys. */
export function sshConfig(layout: LabLayout, directory: string): string {
  const hosts = layout.hosts.flatMap((host) => [
    `Host ${host.role}`,
    `  HostName ${host.managementAddress}`,
    `  HostKeyAlias ${host.role}`,
  ]);
  return [
    ...hosts,
    "Host *",
    "  User root",
    `  IdentityFile ${join(directory, "id")}`,
    "  IdentitiesOnly yes",
    `  UserKnownHostsFile ${join(directory, "known_hosts")}`,
    "  GlobalKnownHostsFile /dev/null",
    "  StrictHostKeyChecking yes",
    "  HostKeyAlgorithms ssh-ed25519",
    "  BatchMode yes",
    "  ConnectTimeout 5",
    "  LogLevel ERROR",
    "",
  ].join("\n");
}

/** Both halves appear by rename, private half last: an interrupted run leaves no half key. */
async function ensureKey(path: string, comment: string): Promise<void> {
  const present = await Promise.all([hasContent(path), hasContent(`${path}.pub`)]);
  if (present.every(Boolean)) return;
  const part = `${path}.part`;
  await rm(part, { force: true });
  await rm(`${part}.pub`, { force: true });
  await demand(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", part]);
  await rename(`${part}.pub`, `${path}.pub`);
  await rename(part, path);
}

async function hasContent(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.size > 0,
    () => false,
  );
}

async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.part`, content, { mode: 0o600 });
  await rename(`${path}.part`, path);
}
