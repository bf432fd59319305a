/** Renders the configuration files of a node of upstream Kubernetes. Pure. */
import type { ClusterSettings, Host } from "../../../contracts/testbed.ts";
import { addressIn, roleLabel } from "../cluster.ts";

/** Where things lie on the hosts. */
export type Places = {
  /** Keys and certificates of the authority, on the host of the API server. */
  readonly authority: string;
  /** Everything else of the control plane. */
  readonly server: string;
  /** Keys of a node. */
  readonly keys: string;
  /** Everything else of a node. */
  readonly node: string;
};

/** Where the runtime of a node keeps sockets and mounts; gone with a reboot, like these. */
export const runDirectory = "/run/ztcluster";
export const runtimeSocket = `${runDirectory}/containerd.sock`;

/** Every program of Debian's package is found here. */
const pluginDirectory = "/usr/lib/cni";

/** JSON is YAML, too. */
const write = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** @param sandboxImage name of the image that holds a pod's namespaces */
export function containerdConfiguration(root: string, sandboxImage: string): string {
  const absent = ["btrfs", "zfs", "aufs", "devmapper"];
  return [
    "version = 2",
    `root = "${root}/containerd"`,
    `state = "${runDirectory}/containerd"`,
    `disabled_plugins = [${absent.map((n) => `"io.containerd.snapshotter.v1.${n}"`).join(", ")}]`,
    "[grpc]",
    `  address = "${runtimeSocket}"`,
    "[debug]",
    '  level = "warn"',
    '[plugins."io.containerd.grpc.v1.cri"]',
    `  sandbox_image = "${sandboxImage}"`,
    "  disable_apparmor = true",
    "  netns_mounts_under_state_dir = true",
    // Root of a container may lack the right to lower its own score.
    "  restrict_oom_score_adj = true",
    '  [plugins."io.containerd.grpc.v1.cri".cni]',
    `    bin_dir = "${pluginDirectory}"`,
    `    conf_dir = "${root}/cni"`,
    '  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]',
    '    runtime_type = "io.containerd.runc.v2"',
    "",
  ].join("\n");
}

/** A bridge on each node; between nodes packets are routed, without any tunnel. */
export function networkConfiguration(root: string, podNetwork: string): string {
  return write({
    cniVersion: "1.0.0",
    name: "ztbench",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: `${root}/addresses`,
          ranges: [[{ subnet: podNetwork }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}

/**
 * Whole CPUs for pods that ask for whole CPUs, never throttled, on one memory node.
 *
 * @param reserved CPU list that no pod gets for itself, see `reservedCpus`
 */
export function kubeletConfiguration(
  { node: root, keys }: Places,
  host: Host,
  settings: ClusterSettings,
  reserved: string,
): string {
  return write({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: host.dataAddress,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${root}/ca.crt` },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: `${root}/kubelet.crt`,
    tlsPrivateKeyFile: `${keys}/kubelet.key`,
    cgroupDriver: "cgroupfs",
    containerRuntimeEndpoint: `unix://${runtimeSocket}`,
    clusterDNS: [addressIn(settings.serviceNetwork, 10)],
    clusterDomain: "cluster.local",
    resolvConf: `${root}/resolv.conf`,
    volumePluginDir: `${root}/volume-plugins`,
    healthzPort: 0,
    failSwapOn: false,
    oomScoreAdj: 0,
    cpuManagerPolicy: "static",
    cpuManagerPolicyOptions: { "full-pcpus-only": "true" },
    reservedSystemCPUs: reserved,
    topologyManagerPolicy: "single-numa-node",
    topologyManagerScope: "pod",
    cpuCFSQuota: false,
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "imagefs.available": "1%",
    },
    serializeImagePulls: false,
    nodeStatusUpdateFrequency: "4s",
  });
}

/** Virtual addresses of services by iptables, as k3s does it; the limits of conntrack stay. */
export function proxyConfiguration(root: string, host: Host, settings: ClusterSettings): string {
  return write({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "iptables",
    oomScoreAdj: 0,
    clusterCIDR: settings.podNetwork,
    hostnameOverride: host.name,
    clientConnection: { kubeconfig: `${root}/proxy.kubeconfig` },
    healthzBindAddress: "",
    metricsBindAddress: "",
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  });
}

/** Label of a node, `KEY=VALUE`. */
export function nodeLabel(host: Host): string {
  return `${roleLabel}=${host.role}`;
}

/** What kube-router may read, beyond what an API server grants by itself. */
export function routerRights(): string {
  const name = "ztbench:kube-router";
  const rules = [
    {
      apiGroups: [""],
      resources: ["namespaces", "pods", "services", "nodes", "endpoints"],
      verbs: ["list", "get", "watch"],
    },
    {
      apiGroups: ["networking.k8s.io"],
      resources: ["networkpolicies"],
      verbs: ["list", "get", "watch"],
    },
    {
      apiGroups: ["discovery.k8s.io"],
      resources: ["endpointslices"],
      verbs: ["list", "get", "watch"],
    },
  ];
  const group = "rbac.authorization.k8s.io";
  return write({
    apiVersion: "v1",
    kind: "List",
    items: [
      { apiVersion: `${group}/v1`, kind: "ClusterRole", metadata: { name }, rules },
      {
        apiVersion: `${group}/v1`,
        kind: "ClusterRoleBinding",
        metadata: { name },
        roleRef: { apiGroup: group, kind: "ClusterRole", name },
        subjects: [{ apiGroup: group, kind: "User", name: "system:kube-router" }],
      },
    ],
  });
}

/**
 * Runs a program that sees control groups and kernel settings as a kubelet wants them, in a mount
 * namespace of its own. On a hybrid machine a host sees only version 2, which has no controllers
 * there, so those of version 1 are mounted as they are. And where /proc/sys is read-only, plain
 * files stand for the four settings that a kubelet would set for the whole machine.
 */
export const viewScript = `#!/bin/bash
set -euo pipefail
controllers=$(cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null || :)
if [[ " $controllers " != *' cpuset '* ]] && [ ! -d /sys/fs/cgroup/unified ]; then
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  while IFS=: read -r _ name _; do
    case $name in
      '') kind=cgroup2 path=unified options=rw ;;
      name=*) kind=cgroup path=\${name#name=} options=none,$name ;;
      *) kind=cgroup path=$name options=$name ;;
    esac
    mkdir "/sys/fs/cgroup/$path"
    mount -t "$kind" -o "$options" cgroup "/sys/fs/cgroup/$path"
  done </proc/self/cgroup
fi
if [ ! -w /proc/sys/vm/overcommit_memory ]; then
  mkdir -p ${runDirectory}/sysctl
  for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1; do
    file=${runDirectory}/sysctl/\${pair##*/}
    file=\${file%%=*}
    echo "\${pair#*=}" >"$file"
    mount --bind "$file" "/proc/sys/\${pair%%=*}"
  done
fi
exec "$@"
`;
