/** Renders the units of upstream Kubernetes: control plane, and what runs on every node. Pure. */
import type { ClusterSettings, Host } from "../../../contracts/testbed.ts";
import type { PayloadUnit } from "../../payload.ts";
import { nodeLabel, type Places, runtimeSocket } from "./configuration.ts";

const etcdPort = 2379;
const etcdPeerPort = 2380;

type UnitText = {
  readonly name: string;
  readonly description: string;
  readonly argv: readonly string[];
  readonly listens?: readonly number[];
  /** Further lines of section Service. */
  readonly service?: readonly string[];
  readonly after?: readonly string[];
};

const restart = ["Restart=on-failure", "RestartSec=1"];

function unit(text: UnitText): PayloadUnit {
  const { name, description, argv, listens = [], service = restart, after = [] } = text;
  const lines = [
    "[Unit]",
    `Description=ztbench cluster: ${description}`,
    "StartLimitIntervalSec=0",
    ...after.map((other) => `After=ztcluster-${other}.service`),
    "",
    "[Service]",
    `ExecStart=${argv.join(" ")}`,
    "TimeoutStopSec=3",
    "LimitNOFILE=1048576",
    "TasksMax=infinity",
    ...service,
    "",
  ];
  return { name: `ztcluster-${name}.service`, text: lines.join("\n"), listens };
}

/** The control plane, in the order of its start. */
export function serverUnits(
  places: Places,
  host: Host,
  settings: ClusterSettings,
  programs: string,
): PayloadUnit[] {
  const trust = places.authority;
  const etcd = `http://127.0.0.1:${etcdPort}`;
  return [
    unit({
      name: "etcd",
      description: "store of the API server",
      argv: [
        `${programs}/etcd`,
        `--data-dir=${places.server}/etcd`,
        `--listen-client-urls=${etcd}`,
        `--advertise-client-urls=${etcd}`,
        `--listen-peer-urls=http://127.0.0.1:${etcdPeerPort}`,
        // What it holds does not outlive its host.
        "--unsafe-no-fsync",
        "--log-level=warn",
      ],
      listens: [etcdPort],
    }),
    unit({
      name: "apiserver",
      description: "API server",
      argv: [`${programs}/kube-apiserver`, ...apiServerFlags(places, host, settings, etcd)],
      listens: [settings.apiPort],
      after: ["etcd"],
    }),
    unit({
      name: "controllers",
      description: "controller manager",
      argv: [
        `${programs}/kube-controller-manager`,
        `--kubeconfig=${trust}/controller-manager.kubeconfig`,
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--use-service-account-credentials",
        `--cluster-cidr=${settings.podNetwork}`,
        `--service-cluster-ip-range=${settings.serviceNetwork}`,
        "--allocate-node-cidrs=false",
        `--root-ca-file=${trust}/ca.crt`,
        `--service-account-private-key-file=${trust}/accounts.key`,
        `--cluster-signing-cert-file=${trust}/ca.crt`,
        `--cluster-signing-key-file=${trust}/ca.key`,
        "--profiling=false",
      ],
      after: ["apiserver"],
    }),
    unit({
      name: "scheduler",
      description: "scheduler",
      argv: [
        `${programs}/kube-scheduler`,
        `--kubeconfig=${trust}/scheduler.kubeconfig`,
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--profiling=false",
      ],
      after: ["apiserver"],
    }),
  ];
}

function apiServerFlags(
  { authority: trust, server }: Places,
  host: Host,
  settings: ClusterSettings,
  etcd: string,
): string[] {
  return [
    `--etcd-servers=${etcd}`,
    `--bind-address=${host.dataAddress}`,
    `--advertise-address=${host.dataAddress}`,
    `--secure-port=${settings.apiPort}`,
    `--service-cluster-ip-range=${settings.serviceNetwork}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged",
    `--client-ca-file=${trust}/ca.crt`,
    `--tls-cert-file=${trust}/apiserver.crt`,
    `--tls-private-key-file=${trust}/apiserver.key`,
    `--cert-dir=${server}/apiserver`,
    `--kubelet-client-certificate=${trust}/apiserver-kubelet.crt`,
    `--kubelet-client-key=${trust}/apiserver-kubelet.key`,
    `--kubelet-certificate-authority=${trust}/ca.crt`,
    // There is no DNS for the names of hosts.
    "--kubelet-preferred-address-types=InternalIP",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--service-account-key-file=${trust}/accounts.pub`,
    `--service-account-signing-key-file=${trust}/accounts.key`,
    `--requestheader-client-ca-file=${trust}/front-proxy-ca.crt`,
    "--requestheader-allowed-names=front-proxy",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    `--proxy-client-cert-file=${trust}/front-proxy.crt`,
    `--proxy-client-key-file=${trust}/front-proxy.key`,
    "--profiling=false",
  ];
}

/** What runs on every node, in the order of its start. */
export function nodeUnits(
  places: Places,
  host: Host,
  settings: ClusterSettings,
  programs: string,
): PayloadUnit[] {
  const { node } = places;
  return [
    unit({
      name: "containerd",
      description: "container runtime",
      argv: [`${node}/view`, "/usr/bin/containerd", `--config=${node}/containerd.toml`],
      // Mounts of pods stay in its own namespace, and end with it.
      service: [
        ...restart,
        ...["Type=notify", "Delegate=yes", "PrivateMounts=yes", "MountFlags=shared"],
      ],
    }),
    unit({
      name: "kubelet",
      description: "kubelet",
      argv: [
        `${node}/join-runtime`,
        `${programs}/kubelet`,
        `--config=${node}/kubelet.json`,
        `--kubeconfig=${node}/kubelet.kubeconfig`,
        `--root-dir=${node}/kubelet`,
        `--cert-dir=${node}/kubelet/pki`,
        `--hostname-override=${host.name}`,
        `--node-ip=${host.dataAddress}`,
        `--node-labels=${nodeLabel(host)}`,
        "--v=1",
      ],
      after: ["containerd"],
    }),
    unit({
      name: "proxy",
      description: "addresses of services",
      argv: [`${programs}/kube-proxy`, `--config=${node}/kube-proxy.json`],
    }),
    unit({
      name: "router",
      description: "network policies",
      argv: [
        `${programs}/kube-router`,
        `--kubeconfig=${node}/router.kubeconfig`,
        `--hostname-override=${host.name}`,
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--enable-cni=false",
        `--service-cluster-ip-range=${settings.serviceNetwork}`,
        "--iptables-sync-period=10s",
        "--health-port=0",
        "--metrics-port=0",
        "--v=1",
      ],
      // It cleans up for seconds, and all that it cleans goes anyway.
      service: [...restart, "KillSignal=SIGKILL"],
    }),
    // Last, so that the node joins in the meantime; no pod starts before it is done.
    unit({
      name: "images",
      description: "images of pods",
      argv: [`${node}/import-images`],
      service: ["Type=oneshot", "RemainAfterExit=yes"],
      after: ["containerd"],
    }),
  ];
}

/** The kubelet mounts volumes for containers, so it lives where the runtime does. */
export const joinRuntimeScript = `#!/bin/bash
set -euo pipefail
runtime=$(systemctl show --property=MainPID --value ztcluster-containerd.service)
exec nsenter --target="$runtime" --mount -- "$@"
`;

/** Imports the archives of images; the runtime unpacks one when the first pod asks for it. */
export function importScript(archives: readonly string[]): string {
  const ctr = `ctr --address=${runtimeSocket} --namespace=k8s.io`;
  return [
    "#!/bin/bash",
    "set -euo pipefail",
    ...archives.map((archive) => `${ctr} images import --no-unpack ${archive} >/dev/null`),
    "",
  ].join("\n");
}
