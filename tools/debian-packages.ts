/**
 * The Debian packages that this machine needs, by purpose. Their versions are the release's own.
 */

/** What Debian packages are for: the installer itself, the lab, or only the tests. */
export type PackagePurpose = "tools" | "lab" | "test";

export type DebianPackage = {
  readonly name: string;
  readonly purpose: PackagePurpose;
  /** Programs that show it is there, however it came. */
  readonly commands: readonly string[];
  readonly why: string;
};

const debian = (
  purpose: PackagePurpose,
  name: string,
  commands: readonly string[],
  why: string,
): DebianPackage => ({ name, purpose, commands, why });

/** Debian packages of this machine. Their version is the Debian release's own. */
export const debianPackages: readonly DebianPackage[] = [
  debian("tools", "python3-pip", ["python3", "pip3"], "downloads wheels by digest, unpacks them"),
  debian("tools", "util-linux", ["flock"], "locks that a killed process cannot leave behind"),
  debian("lab", "systemd-container", ["systemd-nspawn"], "runs the lab's hosts"),
  debian("lab", "mmdebstrap", ["mmdebstrap"], "builds the base root of the lab's hosts"),
  debian("lab", "nftables", ["nft"], "guards the machine against the lab's hosts"),
  debian("lab", "openssh-client", ["ssh", "ssh-keygen"], "the door to every host"),
  debian("lab", "iproute2", ["ip"], "namespaces, links and addresses"),
  debian("lab", "iptables", ["iptables"], "leak check: rules before and after"),
  debian("lab", "procps", ["pgrep", "sysctl"], "process and kernel settings lookups"),
  debian("lab", "curl", ["curl"], "one request by hand from the README"),
  debian("test", "chromium", ["chromium"], "shows and prints the report page in a real browser"),
  debian("test", "openssh-server", ["sshd"], "conformance tests of the command provider"),
];
