/** Testbed document to the two files that OpenSSH reads; pure, so that it can be read in a test. */
import type { Host, Testbed } from "../contracts/testbed.ts";

/** Name under which a host's key is pinned: never an address, so that no other entry can match. */
export function hostKeyAlias(host: Host): string {
  return `ztbench-${host.name}`;
}

/** One pinned key a host: exactly what the testbed document says, before the first contact. */
export function renderKnownHosts(testbed: Testbed): string {
  return testbed.hosts
    .map((host) => {
      const [type = "", key = ""] = host.hostKey.split(" ");
      return `${hostKeyAlias(host)} ${type} ${key}\n`;
    })
    .join("");
}

/**
 * The client configuration: every host by its name in the document, nothing taken from the
 * operator's own configuration, agent or known hosts.
 *
 * @param directory where known_hosts lies and connections are shared; short, since the path of a
 *   socket may have 108 characters
 */
export function renderSshConfig(testbed: Testbed, directory: string): string {
  const hosts = testbed.hosts.map((host) =>
    [
      `Host ${host.name}`,
      `  HostName ${host.managementAddress}`,
      `  Port ${host.managementPort}`,
      `  User ${host.user}`,
      `  IdentityFile "${escaped(host.identityFile)}"`,
      `  HostKeyAlias ${hostKeyAlias(host)}`,
      `  HostKeyAlgorithms ${algorithmsOf(host)}`,
    ].join("\n"),
  );
  const all = [
    "Host *",
    "  BatchMode yes",
    "  StrictHostKeyChecking yes",
    `  UserKnownHostsFile "${escaped(directory)}/known_hosts"`,
    "  GlobalKnownHostsFile none",
    "  IdentitiesOnly yes",
    "  IdentityAgent none",
    "  ForwardAgent no",
    "  ConnectTimeout 5",
    "  ServerAliveInterval 15",
    "  ServerAliveCountMax 2",
    "  LogLevel ERROR",
    // One login a host for a whole campaign: logging in costs the host CPU, also during a run.
    "  ControlMaster auto",
    `  ControlPath "${escaped(directory)}/%n"`,
    "  ControlPersist 600",
  ].join("\n");
  return `${[...hosts, all].join("\n\n")}\n`;
}

/** A server may hold keys of other types as well: ask for the pinned one. */
function algorithmsOf(host: Host): string {
  const type = host.hostKey.split(" ")[0] ?? "";
  return type === "ssh-rsa" ? "rsa-sha2-512,rsa-sha2-256" : type;
}

/** OpenSSH takes a path with blanks in double quotes, and expands `%` unless it is doubled. */
function escaped(path: string): string {
  return path.replaceAll("%", "%%");
}
