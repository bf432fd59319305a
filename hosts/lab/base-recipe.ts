/** What the read-only root of all lab hosts contains, as data, and the key it is cached under. */
import { createHash } from "node:crypto";
import { roles } from "../../contracts/testbed.ts";
import { dataAddressOf } from "./layout.ts";
import { type LabProfile, nodeMaskedUnits, nodePackages } from "./profile.ts";

export const basePackages = [
  "ca-certificates",
  "dbus",
  "ethtool",
  "iproute2",
  "iptables",
  "iputils-ping",
  "nftables",
  "openssh-server",
  "openssh-sftp-server",
  "procps",
  "systemd",
  "systemd-sysv",
  "util-linux",
] as const;

/** Units that only cost boot time or would fight over what the lab itself manages. */
export const maskedUnits = [
  "apt-daily-upgrade.timer",
  "apt-daily.timer",
  "console-getty.service",
  "dev-hugepages.mount",
  "dpkg-db-backup.timer",
  "e2scrub_all.timer",
  "e2scrub_reap.service",
  "fstrim.timer",
  "getty.target",
  "getty@tty1.service",
  "ldconfig.service",
  "nftables.service",
  "systemd-firstboot.service",
  "systemd-journal-flush.service",
  "systemd-logind.service",
  "systemd-machine-id-commit.service",
  "systemd-networkd-wait-online.service",
  "systemd-networkd.service",
  "systemd-networkd.socket",
  "systemd-pcrphase.service",
  "systemd-resolved.service",
  "systemd-tmpfiles-clean.timer",
  "systemd-udev-trigger.service",
  "systemd-udevd.service",
  "systemd-update-utmp-runlevel.service",
  "systemd-update-utmp.service",
] as const;

const excludedPaths = [
  "/usr/share/doc/*",
  "/usr/share/man/*",
  "/usr/share/locale/*",
  "/usr/share/i18n/*",
  "/usr/share/info/*",
];

/** Sidecars run as this user, so that redirection can tell their traffic from the service's. */
const sidecarUser = { name: "istio-proxy", id: 1337 };

const lines = (...text: string[]): string => text.map((line) => `${line}\n`).join("");

/** Files that are written into a finished root, by path below it. */
export const baseFiles: Readonly<Record<string, string>> = {
  "etc/systemd/system.conf.d/ztbench.conf": lines(
    "[Manager]",
    "DefaultCPUAccounting=yes",
    "DefaultTasksMax=infinity",
    "DefaultLimitNOFILE=1048576",
    "DefaultTimeoutStopSec=5s",
  ),
  "etc/systemd/journald.conf.d/ztbench.conf": lines(
    "[Journal]",
    "Storage=volatile",
    "RuntimeMaxUse=16M",
    "RateLimitBurst=0",
  ),
  "etc/ssh/sshd_config.d/ztbench.conf": lines(
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "UsePAM no",
    "UseDNS no",
    "HostKey /etc/ssh/ssh_host_ed25519_key",
    "MaxSessions 128",
    "MaxStartups 128:30:256",
  ),
  "etc/hosts": lines(
    "127.0.0.1 localhost",
    ...roles.map((role) => `${dataAddressOf(role)} ${role}`),
  ),
  "etc/resolv.conf": "",
  // Empty: systemd takes the id that nspawn hands over.
  "etc/machine-id": "",
  // Targets of read-only binds.
  "root/.ssh/authorized_keys": "",
  "etc/ssh/ssh_host_ed25519_key": "",
  "etc/ssh/ssh_host_ed25519_key.pub": "",
};

/** Steps inside the new root; `$1` is its path, set by mmdebstrap. */
const customizeHooks = [
  `chroot "$1" groupadd --gid ${sidecarUser.id} ${sidecarUser.name}`,
  `chroot "$1" useradd --uid ${sidecarUser.id} --gid ${sidecarUser.id} --no-create-home ` +
    `--home-dir /nonexistent --shell /usr/sbin/nologin ${sidecarUser.name}`,
  'rm -rf "$1"/etc/ssh/ssh_host_* "$1"/etc/apt/sources.list* "$1"/var/lib/apt/lists/* ' +
    '"$1"/var/cache/apt/* "$1"/var/log/*.log "$1"/var/log/apt',
  // mmdebstrap copies these from the machine, and they would win over what nspawn sets.
  'rm -f "$1"/etc/hostname "$1"/etc/resolv.conf',
];

/** What a root of this profile is made of. */
function packagesOf(profile: LabProfile): readonly string[] {
  return profile === "kubernetes" ? [...basePackages, ...nodePackages] : basePackages;
}

/** What does not start in a root of this profile. */
export function maskedUnitsOf(profile: LabProfile): readonly string[] {
  return profile === "kubernetes" ? [...maskedUnits, ...nodeMaskedUnits] : maskedUnits;
}

export type BaseTarget = {
  readonly profile: LabProfile;
  readonly suite: string;
  readonly architecture: string;
  /** Apt sources file of the machine. */
  readonly sources: string;
};

/** Twelve hexadecimal digits that change whenever the contents of the root would. */
export function baseKey(target: BaseTarget): string {
  const content = JSON.stringify([
    target.suite,
    target.architecture,
    packagesOf(target.profile),
    maskedUnitsOf(target.profile),
    baseFiles,
    excludedPaths,
    customizeHooks,
  ]);
  return createHash("sha256").update(content).digest("hex").slice(0, 12);
}

/** Arguments that build the root at `directory`. */
export function mmdebstrapArgv(target: BaseTarget, directory: string): string[] {
  return [
    "mmdebstrap",
    "--mode=root",
    "--variant=minbase",
    `--architectures=${target.architecture}`,
    `--include=${packagesOf(target.profile).join(",")}`,
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=force-unsafe-io",
    ...excludedPaths.map((path) => `--dpkgopt=path-exclude=${path}`),
    ...customizeHooks.map((hook) => `--customize-hook=${hook}`),
    target.suite,
    directory,
    target.sources,
  ];
}

/**
 * Arguments that run a build so that nothing of it survives its caller: mounts stay in a private
 * namespace, and a process namespace ends with its first process.
 */
export function sealedArgv(argv: readonly string[]): string[] {
  const seal = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"];
  return [...seal, "--pid", "--fork", "--kill-child", "--mount-proc", "nice", ...argv];
}
