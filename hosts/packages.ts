/** Debian packages that every host must have. */

/** What ztbench calls on a host, and what systemd-based Debian hosts may lack. */
export const requiredPackages = [
  "ca-certificates",
  "ethtool",
  "iproute2",
  "iptables",
  "iputils-ping",
  "nftables",
  "openssh-sftp-server",
  "procps",
  "util-linux",
] as const;
