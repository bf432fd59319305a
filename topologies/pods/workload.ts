/** Pods: Guaranteed, pinned to the host of their role, never restarted. Pure. */
import type { ClusterKind } from "../../contracts/testbed.ts";
import { roleLabel } from "../../hosts/cluster/cluster.ts";
import type { Role } from "../../contracts/testbed.ts";
import { rootNamespace } from "../istio.ts";
import type { KubernetesObject } from "./objects.ts";
import { named } from "./objects.ts";
import { type CpuShare, pullPolicyOf } from "./place.ts";

export type ContainerSpec = {
  readonly name: string;
  readonly image: string;
  /** Program and arguments; absent: as the image says. */
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly cpu: Pick<CpuShare, "quantity">;
  /** As Kubernetes writes it. */
  readonly memory: string;
  /** It is ready once it accepts connections here. */
  readonly port?: number;
  /** Files of a config map, and the directory that they are in. */
  readonly files?: { readonly configMap: string; readonly directory: string };
};

export type SidecarSpec = {
  readonly cpu: CpuShare;
  readonly memory: string;
  /** How long each of its certificates is valid. */
  readonly certificateSeconds: number;
};

export type PodSpec = {
  readonly name: string;
  readonly role: Role;
  readonly labels: Readonly<Record<string, string>>;
  readonly account: string;
  readonly container: ContainerSpec;
  /** What Istio adds; absent: nothing. */
  readonly sidecar?: SidecarSpec;
  readonly hostNetwork?: boolean;
  readonly kind: ClusterKind;
  /** Address of the control plane where there is no name server. */
  readonly controlAddress?: string;
};

/** Sockets are closed by then; what is still open belongs to nobody. */
const graceSeconds = 2;

/** Nobody: none of the programs needs a right, and Istio's user would not be captured. */
const user = 65_534;

/**
 * One pod. It is a bare one that is never restarted, as units are: a program that dies during a
 * run must be seen, and another pod of the same name would hide it.
 */
export function podObject(spec: PodSpec): KubernetesObject {
  const { container, sidecar, controlAddress } = spec;
  const { files } = container;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: named(spec.name, {
      labels: { ...spec.labels, "sidecar.istio.io/inject": String(sidecar !== undefined) },
      ...(sidecar === undefined ? {} : { annotations: sidecarAnnotations(sidecar, spec.kind) }),
    }),
    spec: {
      nodeSelector: { [roleLabel]: spec.role },
      serviceAccountName: spec.account,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: graceSeconds,
      ...(spec.hostNetwork === true ? { hostNetwork: true } : {}),
      ...(sidecar === undefined || controlAddress === undefined
        ? {}
        : { hostAliases: [{ ip: controlAddress, hostnames: [`istiod.${rootNamespace}.svc`] }] }),
      containers: [containerObject(container, spec.kind)],
      ...(files === undefined
        ? {}
        : { volumes: [{ name: "files", configMap: { name: files.configMap } }] }),
    },
  };
}

function containerObject(spec: ContainerSpec, kind: ClusterKind): object {
  const { command, environment, files, port } = spec;
  const resources = { cpu: spec.cpu.quantity, memory: spec.memory };
  return {
    name: spec.name,
    image: spec.image,
    imagePullPolicy: pullPolicyOf(kind),
    ...(command === undefined ? {} : { command }),
    ...(environment === undefined
      ? {}
      : { env: Object.entries(environment).map(([name, value]) => ({ name, value })) }),
    resources: { requests: resources, limits: resources },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: user,
    },
    ...(port === undefined
      ? {}
      : {
          ports: [{ containerPort: port, protocol: "TCP" }],
          readinessProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 30 },
        }),
    ...(files === undefined
      ? {}
      : { volumeMounts: [{ name: "files", mountPath: files.directory, readOnly: true }] }),
  };
}

/**
 * How Istio makes the sidecar. All four quantities are set in equal pairs: with fewer, the whole
 * pod would not be Guaranteed.
 */
function sidecarAnnotations(
  { cpu, memory, certificateSeconds }: SidecarSpec,
  kind: ClusterKind,
): Record<string, string> {
  const config = {
    concurrency: cpu.threads,
    holdApplicationUntilProxyStarts: true,
    terminationDrainDuration: "1s",
    // Brackets, since the agent's YAML does not stand backslashes.
    proxyStatsMatcher: { inclusionRegexps: ["listener[.].*", "cluster[.].*", "http[.].*"] },
    proxyMetadata: {
      WORKLOAD_RSA_KEY_SIZE: "2048",
      SECRET_TTL: `${certificateSeconds}s`,
      // All sidecars renew at the same share of the life time, as Istio 1.20 has it.
      SECRET_GRACE_PERIOD_RATIO: "0.5",
      SECRET_GRACE_PERIOD_RATIO_JITTER: "0",
    },
    // The lab's Envoy is not Istio's own and would complain of these two.
    ...(kind === "kubernetes" ? { runtimeValues: unknownGuards } : {}),
  };
  return {
    "proxy.istio.io/config": JSON.stringify(config),
    "sidecar.istio.io/nativeSidecar": "false",
    "sidecar.istio.io/proxyCPU": cpu.quantity,
    "sidecar.istio.io/proxyCPULimit": cpu.quantity,
    "sidecar.istio.io/proxyMemory": memory,
    "sidecar.istio.io/proxyMemoryLimit": memory,
  };
}

const unknownGuards = {
  "envoy.reloadable_features.fixed_heap_use_allocated": "",
  "envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": "",
} as const;
