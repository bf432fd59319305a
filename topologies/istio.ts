/**
 * What Istio is told of a mesh, as its own objects. Only API versions and fields that Istio 1.20
 * serves, too, so that the same objects go to a cluster. Pure.
 */
import { keyExchangeGroup } from "./tls.ts";

export const trustDomain = "cluster.local";
export const meshNamespace = "ztbench";
export const rootNamespace = "istio-system";
const serviceName = "echo";

/** Name by which proxies know the service. */
export const serviceHost = `${serviceName}.${meshNamespace}.svc.${trustDomain}`;

/** Label of the service's workload, which the objects select it by. */
export const serviceLabels = { app: serviceName } as const;

export type IstioObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: object;
};

/** What a workload with this service account is called in its certificate. */
export function spiffeId(account: string, domain = trustDomain): string {
  return `spiffe://${principalOf(account, domain)}`;
}

function principalOf(account: string, domain = trustDomain): string {
  return `${domain}/ns/${meshNamespace}/sa/${account}`;
}

export type MeshPolicy = {
  /** Whether sidecars prove to each other who they are; else they speak plaintext. */
  readonly mutualTls: boolean;
  /** Whether a sidecar that connects offers the session of an earlier connection. */
  readonly resumesSessions: boolean;
  /** What the service's sidecar lets through; absent: it has no rules. */
  readonly admits?: Admitted;
  /** Absent where bytes are passed on: each connection then has one of its own behind it. */
  readonly pool?: ConnectionPool;
};

export type Admitted =
  /** Requests of these service accounts. */
  | { readonly callers: readonly string[] }
  /** Such requests, whoever sends them. */
  | { readonly methods: readonly string[]; readonly paths: readonly string[] };

/** Istio applies it from a sidecar to another, and from a sidecar to its service, too. */
export type ConnectionPool = {
  /** Connections at most. */
  readonly connections: number;
  /** Requests after which a connection is closed; 0: it never is. */
  readonly requestsPerConnection: number;
};

/** Who may call the service, and how: the same on hosts and in a cluster. */
export function renderPolicy(policy: MeshPolicy): IstioObject[] {
  const { mutualTls, resumesSessions, admits, pool } = policy;
  return [
    {
      apiVersion: "security.istio.io/v1beta1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: meshNamespace },
      spec: { mtls: { mode: mutualTls ? "STRICT" : "DISABLE" } },
    },
    ...(admits === undefined ? [] : [authorization(admits)]),
    {
      apiVersion: "networking.istio.io/v1beta1",
      kind: "DestinationRule",
      metadata: { name: serviceName, namespace: meshNamespace },
      spec: {
        host: serviceHost,
        trafficPolicy: {
          tls: { mode: mutualTls ? "ISTIO_MUTUAL" : "DISABLE" },
          ...(pool === undefined ? {} : { connectionPool: poolObject(pool) }),
        },
      },
    },
    ...(mutualTls && !resumesSessions ? [fullHandshakes()] : []),
  ];
}

const upstreamTlsType =
  "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";

/** Istio has no setting of its own for it: the connecting proxy is told to keep no session. */
function fullHandshakes(): IstioObject {
  return {
    apiVersion: "networking.istio.io/v1alpha3",
    kind: "EnvoyFilter",
    metadata: { name: "full-handshakes", namespace: meshNamespace },
    spec: {
      configPatches: [
        {
          applyTo: "CLUSTER",
          match: { context: "SIDECAR_OUTBOUND", cluster: { service: serviceHost } },
          patch: {
            operation: "MERGE",
            value: {
              transport_socket: {
                name: "envoy.transport_sockets.tls",
                typed_config: {
                  "@type": upstreamTlsType,
                  max_session_keys: 0,
                },
              },
            },
          },
        },
      ],
    },
  };
}

function authorization(admits: Admitted): IstioObject {
  const isOnCaller = "callers" in admits;
  const rule = isOnCaller
    ? { from: [{ source: { principals: admits.callers.map((c) => principalOf(c)) } }] }
    : { to: [{ operation: { methods: admits.methods, paths: admits.paths } }] };
  return {
    apiVersion: "security.istio.io/v1beta1",
    kind: "AuthorizationPolicy",
    metadata: { name: isOnCaller ? "callers" : "requests", namespace: meshNamespace },
    spec: { selector: { matchLabels: serviceLabels }, action: "ALLOW", rules: [rule] },
  };
}

function poolObject({ connections, requestsPerConnection }: ConnectionPool): object {
  return {
    tcp: { maxConnections: connections },
    http: {
      // The version of a leg is what its port says, never what Istio makes of it.
      h2UpgradePolicy: "DO_NOT_UPGRADE",
      ...(requestsPerConnection > 0 ? { maxRequestsPerConnection: requestsPerConnection } : {}),
    },
  };
}

/** How a port is named, by which Istio knows its protocol, and that protocol. */
const protocols = { tcp: "TCP", http: "HTTP", http2: "HTTP2" } as const;
export type PortName = keyof typeof protocols;

export type MeshService = {
  /** Address that clients send to. */
  readonly address: string;
  readonly port: number;
  readonly portName: PortName;
  /** Address of the host that runs it. */
  readonly workload: string;
  /** Service account that it runs as. */
  readonly account: string;
};

/** Where the service is; a cluster knows that by itself. */
export function renderRegistry(service: MeshService): IstioObject[] {
  const { address, port, portName, workload, account } = service;
  return [
    {
      apiVersion: "networking.istio.io/v1beta1",
      kind: "ServiceEntry",
      metadata: { name: serviceName, namespace: meshNamespace },
      spec: {
        hosts: [serviceHost],
        addresses: [address],
        location: "MESH_INTERNAL",
        resolution: "STATIC",
        ports: [{ number: port, name: portName, protocol: protocols[portName], targetPort: port }],
        workloadSelector: { labels: serviceLabels },
      },
    },
    {
      apiVersion: "networking.istio.io/v1beta1",
      kind: "WorkloadEntry",
      metadata: { name: serviceName, namespace: meshNamespace },
      spec: { address: workload, labels: serviceLabels, serviceAccount: account },
    },
  ];
}

export type MeshSettings = {
  /** Where proxies find the control plane, host:port. */
  readonly discovery: string;
  /** Directory of the objects; absent in a cluster, which has them itself. */
  readonly objects?: string;
};

/** The mesh configuration that the control plane starts with. */
export function meshConfig({ discovery, objects }: MeshSettings): object {
  return {
    rootNamespace,
    trustDomain,
    enableTracing: false,
    accessLogFile: "",
    outboundTrafficPolicy: { mode: "REGISTRY_ONLY" },
    ...(objects === undefined ? {} : { configSources: [{ address: `fs://${objects}` }] }),
    defaultConfig: { discoveryAddress: discovery, controlPlaneAuthPolicy: "MUTUAL_TLS" },
    defaultProviders: {},
    tlsDefaults: { ecdhCurves: [keyExchangeGroup] },
  };
}

/** Settings of the control plane that Envoys without Istio's own filters need. */
export const controlEnvironment = {
  PILOT_ENABLE_METADATA_EXCHANGE: "false",
  PILOT_ENABLE_ALPN_FILTER: "false",
  PILOT_DISABLE_MX_ALPN: "true",
} as const;

/** Text of objects for a file: JSON, which is YAML, too. */
export function renderObjects(objects: readonly IstioObject[]): string {
  return objects.map((object) => `${JSON.stringify(object, null, 1)}\n`).join("---\n");
}
