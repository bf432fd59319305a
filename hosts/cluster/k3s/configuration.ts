/** Renders the configuration of k3s: a file of ours, and no flags beside it. Pure. */
import { stringify } from "yaml";
import {
  type ClusterSettings,
  type Host,
  hostOf,
  type Testbed,
} from "../../../contracts/testbed.ts";
import { apiServerOf, roleLabel } from "../cluster.ts";

/** Where the token lies on every host, mode 0600. */
const tokenFile = "/etc/rancher/k3s/cluster-token";

/** Deployments of k3s that would be load of their own; CoreDNS stays. */
const disabled = ["traefik", "servicelb", "local-storage", "metrics-server"] as const;

/** Of kubelet: whole CPUs for those that ask for them, never throttled, on one memory node. */
function kubeletArguments(reserved: string): string[] {
  return [
    "cpu-manager-policy=static",
    "cpu-manager-policy-options=full-pcpus-only=true",
    `reserved-cpus=${reserved}`,
    "topology-manager-policy=single-numa-node",
    "topology-manager-scope=pod",
    "cpu-cfs-quota=false",
  ];
}

function ofEveryNode(host: Host, reserved: string): object {
  return {
    "node-name": host.name,
    "node-ip": host.dataAddress,
    "node-label": [`${roleLabel}=${host.role}`],
    "token-file": tokenFile,
    "kubelet-arg": kubeletArguments(reserved),
    // It would set another limit of tracked connections than the tuning profile has.
    "kube-proxy-arg": ["conntrack-max-per-core=0"],
  };
}

/**
 * Of the host that runs the API server, which is a node, too.
 *
 * @param reserved CPU list, see `reservedCpus`
 */
export function serverConfiguration(
  testbed: Testbed,
  settings: ClusterSettings,
  reserved: string,
): string {
  const host = hostOf(testbed, "gateway");
  const { apiAddress } = settings;
  const names = [host.dataAddress, host.managementAddress, ...(apiAddress ? [apiAddress] : [])];
  return write({
    ...ofEveryNode(host, reserved),
    "advertise-address": host.dataAddress,
    "https-listen-port": settings.apiPort,
    "tls-san": [...new Set(names)],
    "write-kubeconfig-mode": "0600",
    "cluster-cidr": settings.podNetwork,
    "service-cidr": settings.serviceNetwork,
    "flannel-backend": "none",
    "disable-network-policy": true,
    disable: [...disabled],
    "disable-helm-controller": true,
    // The other modes look up pods in node networks, which Calico's own addresses are not in.
    "egress-selector-mode": "agent",
  });
}

/** Of a host that joins the server. */
export function agentConfiguration(
  host: Host,
  testbed: Testbed,
  settings: ClusterSettings,
  reserved: string,
): string {
  return write({
    server: apiServerOf(hostOf(testbed, "gateway"), { ...settings, apiAddress: undefined }),
    ...ofEveryNode(host, reserved),
  });
}

function write(configuration: object): string {
  const text = stringify(configuration, { lineWidth: 0 });
  return `# Written by ztbench; changes are overwritten.\n${text}`;
}

/**
 * The unit. It outlives a reboot, so that a host which reboots for boot parameters comes back as a
 * node.
 */
export function renderUnit(mode: "server" | "agent"): string {
  return [
    "[Unit]",
    `Description=k3s ${mode} of ztbench`,
    "Wants=network-online.target",
    "After=network-online.target",
    "",
    "[Service]",
    "Type=notify",
    "ExecStartPre=-/sbin/modprobe br_netfilter",
    "ExecStartPre=-/sbin/modprobe overlay",
    `ExecStart=/usr/local/bin/k3s ${mode}`,
    // Pods go on while k3s is started anew.
    "KillMode=process",
    "Delegate=yes",
    "LimitNOFILE=1048576",
    "LimitNPROC=infinity",
    "LimitCORE=infinity",
    "TasksMax=infinity",
    // The installer has a deadline of its own; an agent goes on trying to join after a reboot.
    "TimeoutStartSec=infinity",
    "Restart=always",
    "RestartSec=5s",
    "",
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ].join("\n");
}
