/** The deployment document: what load must know of a deployed topology. Never holds a secret. */
import { z } from "zod";

export const httpVersionSchema = z.enum(["1.1", "2"]);
export const runtimeSchema = z.enum(["native", "k3s"]);
export type Runtime = z.infer<typeof runtimeSchema>;

/** What a probe must observe. */
export const expectationSchema = z.discriminatedUnion("outcome", [
  z.strictObject({
    outcome: z.literal("status"),
    status: z.int().min(100).max(599),
    /** A response header that must have exactly this value, or match this regular expression. */
    header: z
      .strictObject({
        name: z.string(),
        value: z.string().optional(),
        matches: z.string().optional(),
      })
      .optional(),
  }),
  /** The connection, or its TLS handshake, is refused, reset or closed without an answer. */
  z.strictObject({ outcome: z.literal("refused") }),
  /** Nothing answers within the time-out (a dropped packet). */
  z.strictObject({ outcome: z.literal("no-response") }),
]);
export type Expectation = z.infer<typeof expectationSchema>;

/** How a probe speaks TLS, and whom it takes for the server. */
export const probeTlsSchema = z.strictObject({
  /** Roots that must have signed the server's certificate; files are on the probe's host. */
  caFile: z.string(),
  /** SPIFFE ID that the server's certificate must name. */
  serverId: z.string().regex(/^spiffe:\/\/./),
  /** Certificate chain and key to show; both absent: none is shown. */
  certFile: z.string().optional(),
  keyFile: z.string().optional(),
  /** Protocols to offer, most wanted first. */
  alpn: z.array(z.string()),
});
export type ProbeTls = z.infer<typeof probeTlsSchema>;

/** A request that must be answered, or must be refused, in just this way. */
export const probeSchema = z.strictObject({
  id: z.string().regex(/^[a-z][a-z0-9-]*$/),
  kind: z.enum(["positive", "negative"]),
  /** What it shows, for people. */
  shows: z.string(),
  /** Name of the host that sends it. */
  host: z.string(),
  /** Path of a network namespace on that host to send from; absent: the host's own. */
  networkNamespace: z.string().optional(),
  url: z.url(),
  http: httpVersionSchema,
  headers: z.record(z.string(), z.string()),
  /** File on that host whose first line is sent as bearer token. */
  tokenFile: z.string().optional(),
  /** For https only. */
  tls: probeTlsSchema.optional(),
  timeoutSeconds: z.number().positive(),
  expect: expectationSchema,
});
export type Probe = z.infer<typeof probeSchema>;

/** Where the facts of a leg are read. Counters have Envoy's names, with this prefix and a dot. */
export const wireSourceSchema = z.discriminatedUnion("at", [
  /** The proxy that connects, by the counters of its cluster. */
  z.strictObject({ at: z.literal("from"), unit: z.string(), prefix: z.string() }),
  /** The proxy that listens, by the counters of its connection manager. */
  z.strictObject({ at: z.literal("to"), unit: z.string(), prefix: z.string() }),
  /** The service that listens, by its own counters. */
  z.strictObject({ at: z.literal("service"), unit: z.string() }),
  /** A probe that shakes hands as the leg does. */
  z.strictObject({ at: z.literal("probe"), id: z.string() }),
]);
export type WireSource = z.infer<typeof wireSourceSchema>;

/** A leg of the request path with the facts that must be seen on the wire. */
export const legSchema = z.strictObject({
  from: z.string(),
  to: z.string(),
  http: httpVersionSchema,
  tls: z.enum(["none", "server", "mutual"]),
  /** Exact facts of TLS legs; later compared with what Envoy and the kernel report. */
  wire: z.record(z.string(), z.string()),
  /** Without any, nothing is known of the leg. */
  seenBy: z.array(wireSourceSchema).optional(),
});
export type Leg = z.infer<typeof legSchema>;

export const unitSchema = z.strictObject({
  /** systemd unit, or container, whose resources are counted. */
  name: z.string(),
  host: z.string(),
  kind: z.enum(["service", "proxy", "issuer", "control"]),
  program: z.string(),
  cpus: z.string(),
  /** Path of a container's group below the root of each cgroup hierarchy; absent: systemd knows. */
  cgroup: z.string().optional(),
  /** True if its CPU time counts as cost of the topology (the issuer and control plane do not). */
  dataPlane: z.boolean(),
});
export type Unit = z.infer<typeof unitSchema>;

/** What the cluster made of a pod, as read back once it was ready. */
export const podSchema = z.strictObject({
  name: z.string(),
  host: z.string(),
  qosClass: z.enum(["Guaranteed", "Burstable", "BestEffort"]),
  /** Kernel settings as seen in the pod's network namespace. */
  sysctls: z.record(z.string(), z.string()),
  containers: z.array(
    z.strictObject({
      name: z.string(),
      /** Name of the unit that its resources are counted as. */
      unit: z.string(),
      image: z.string(),
      imageDigest: z.string(),
      /** As the topology names it, by its digest; absent for what the mesh adds. */
      plannedImage: z.string().optional(),
      /** CPUs that it may run on, kernel CPU list. */
      cpuset: z.string(),
      /** CPUs that the kubelet gave it for itself; 0: none. */
      exclusiveCpus: z.int().nonnegative(),
      /** CPUs that its topology wants for it alone; 0: none. */
      plannedCpus: z.int().nonnegative(),
    }),
  ),
});
export type Pod = z.infer<typeof podSchema>;

/** The cluster that a topology was deployed in; versions are what each part says of itself. */
export const deployedClusterSchema = z.strictObject({
  kind: z.enum(["k3s", "kubernetes"]),
  /** Directory on every host that leads to the cgroup hierarchies of the container runtime. */
  cgroupRoot: z.string(),
  /** Images that the pods name, by what they hold. */
  images: z.strictObject({ service: z.string(), envoy: z.string(), pause: z.string() }),
  /** Where pods find the control plane; absent where a name server tells. */
  controlAddress: z.ipv4().optional(),
  versions: z.record(z.string(), z.string()),
  pods: z.array(podSchema),
});

/** Where a unit tells of itself. */
export const endpointSchema = z.strictObject({
  unit: z.string(),
  host: z.string(),
  url: z.url(),
  /** Path of a network namespace on that host to ask from; absent: the host's own. */
  networkNamespace: z.string().optional(),
});

export const deploymentSchema = z.strictObject({
  schema: z.literal("ztbench/deployment/1"),
  topology: z.string(),
  runtime: runtimeSchema,
  testbed: z.string(),
  testbedClass: z.enum(["lab", "metal"]),
  instance: z.string().optional(),
  parameters: z.record(z.string(), z.union([z.string(), z.number()])),
  entry: z.strictObject({
    /** Name of the host that sends load. */
    host: z.string(),
    /** Path of a network namespace on that host to send from; absent: the host's own. */
    networkNamespace: z.string().optional(),
    url: z.url(),
    http: httpVersionSchema,
    /** File of bearer tokens on that host, one a line; absent where no token is sent. */
    tokensFile: z.string().optional(),
    headers: z.record(z.string(), z.string()),
  }),
  legs: z.array(legSchema).min(1),
  units: z.array(unitSchema).min(1),
  /** Envoy admin endpoints, reachable only on the host itself. */
  admin: z.array(endpointSchema),
  /** Of runtime `k3s` only. */
  cluster: deployedClusterSchema.optional(),
  /** Counters of services as JSON, reachable only on the host itself. */
  statistics: z.array(endpointSchema).optional(),
  probes: z.array(probeSchema).min(1),
  /** What the host really granted, e.g. whether SCHED_RR holds. */
  scheduling: z.enum(["rr", "other"]),
  /** sha256 over everything rendered onto the hosts. */
  configurationDigest: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Deployment = z.infer<typeof deploymentSchema>;

/** What the prober reads on standard input. */
export const probeRequestSchema = z.strictObject({
  schema: z.literal("ztbench/probe-request/1"),
  deadlineSeconds: z.number().positive(),
  /** `positive`: repeat until all hold or the deadline passes; `once`: ask each one time. */
  until: z.enum(["positive", "once"]),
  probes: z.array(probeSchema).min(1),
});
export type ProbeRequest = z.infer<typeof probeRequestSchema>;

/** What the prober prints. */
export const probeResultsSchema = z.strictObject({
  schema: z.literal("ztbench/probe-results/1"),
  results: z.array(
    z.strictObject({
      id: z.string(),
      passed: z.boolean(),
      observed: z.strictObject({
        outcome: z.enum(["status", "refused", "no-response", "error"]),
        status: z.int().optional(),
        header: z.string().optional(),
        error: z.string().optional(),
        /** What was agreed on, of a handshake that succeeded. */
        tls: z
          .strictObject({
            version: z.string(),
            cipher: z.string(),
            group: z.string(),
            /** Empty if none was agreed on. */
            alpn: z.string(),
            keyType: z.string(),
            peer: z.string(),
          })
          .optional(),
      }),
      durationNs: z.int().nonnegative(),
    }),
  ),
});
export type ProbeResults = z.infer<typeof probeResultsSchema>;
