/** The testbed document: which hosts there are, how to reach them and how their CPUs are used. */
import { z } from "zod";
import { highestCpu, parseCpuList } from "./cpu-list.ts";
import { Failure } from "./failure.ts";
import { overlaps } from "./ipv4.ts";

/** A kernel CPU list such as `0`, `2-9` or `0,4-7`; empty text means "not reserved". */
export const cpuListSchema = z
  .string()
  .regex(/^(\d+(-\d+)?(,\d+(-\d+)?)*)?$/, 'must be a CPU list such as "0" or "2-9,12"')
  .superRefine((text, context) => {
    try {
      parseCpuList(text);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const message = `must be numbers and ascending ranges from 0 to ${highestCpu}`;
      context.addIssue({ code: "custom", message });
    }
  });

export const roles = ["client", "gateway", "server"] as const;
export type Role = (typeof roles)[number];

const ipv4 = z.ipv4("must be an IPv4 address");
const port = z.int().min(1).max(65535);
const name = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,30}$/,
    "must be lower case letters, digits and dashes, starting with a letter",
  );

/** The slice of everything measured on a host: units on the sets `load`, `proxy` and `service`. */
export const benchSlice = "ztbench.slice";

/** The CPU sets of one host; each ends as an affinity mask and as thread counts. */
export const cpuLayoutSchema = z.strictObject({
  system: cpuListSchema,
  irq: cpuListSchema,
  load: cpuListSchema,
  proxy: cpuListSchema,
  service: cpuListSchema,
});
export type CpuLayout = z.infer<typeof cpuLayoutSchema>;

export const hostSchema = z.strictObject({
  name,
  role: z.enum(roles),
  /** Where SSH answers; never used for load. */
  managementAddress: ipv4,
  managementPort: port.default(22),
  user: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/, "must be a user name")
    .default("root"),
  /** Private key file on the operator's machine. */
  identityFile: z.string().regex(/^\P{Cc}+$/u, "must be a path without control characters"),
  /** Public host key in authorized_keys form, pinned before the first contact. */
  hostKey: z
    .string()
    .regex(
      /^(ssh-|ecdsa-)\S+ [A-Za-z0-9+/]+={0,2}( .*)?$/,
      'must be a public key line "type base64"',
    ),
  /** Where load and service traffic goes. */
  dataAddress: ipv4,
  nic: z
    .string()
    .regex(/^[a-zA-Z0-9_.-]{1,15}$/, "must be an interface name of at most 15 characters"),
  cpus: cpuLayoutSchema,
});
export type Host = z.infer<typeof hostSchema>;

/** What runs pods: nothing, k3s on metal, or the upstream Kubernetes of a lab. */
export const clusterKinds = ["none", "k3s", "kubernetes"] as const;
export type ClusterKind = (typeof clusterKinds)[number];

/** The cluster of a testbed. Its server runs on the gateway host, agents on the others. */
export const clusterSchema = z.strictObject({
  /** CIDR that pods get their addresses from; each node takes a /24 of it. */
  podNetwork: z.cidrv4(),
  /** CIDR of service addresses. */
  serviceNetwork: z.cidrv4(),
  /** Port of the API server on the data address of the gateway host: the second declared door. */
  apiPort: port.default(6443),
  /** Where this machine reaches the API server, unless by that data address. */
  apiAddress: ipv4.optional(),
  /** Greatest packet of pods, bytes; absent: that of the hardware. */
  mtu: z.int().min(1280).max(9216).optional(),
  /** Path of the artifacts document, relative to this one. Needed by k3s, and only there. */
  artifacts: z
    .string()
    .regex(/^\P{Cc}+$/u, "must be a path without control characters")
    .optional(),
  /** Which mesh is installed with the cluster. */
  mesh: z.enum(["istio", "none"]).default("istio"),
});
export type ClusterSettings = z.infer<typeof clusterSchema>;

/** Parameters of the kernel command line that need a reboot: none, or those for publication. */
export const bootProfiles = ["none", "publish"] as const;

/**
 * What bare-metal hosts must be like; the preflight refuses others. What is not stated is what the
 * articles had, so that anything else has to be said.
 */
export const hardwareSchema = z.strictObject({
  /** Speed of the link of the data NIC, in units of 10^6 bit/s. */
  linkSpeedMbps: z.int().min(10).default(25_000),
  /** Of the data NIC on every host and of all between them, bytes of an IP packet. */
  mtu: z.int().min(576).max(9216).default(1500),
  /** Least transfer rate of the NIC's PCIe link, GT/s: 8 is generation 3. */
  pcieGts: z.number().min(2.5).max(128).default(8),
  /** Least number of lanes of the NIC's PCIe link. */
  pcieLanes: z.int().min(1).max(32).default(8),
  /** `off`: second threads of cores go offline; `on`: they are there and stay idle. */
  smt: z.enum(["off", "on"]).default("off"),
  bootProfile: z.enum(bootProfiles).default("none"),
});
export type Hardware = z.infer<typeof hardwareSchema>;

/** `repro`: tuned for repeatable numbers; `stock`: as the distribution has it. */
export const tuningProfiles = ["repro", "stock"] as const;

export const testbedSchema = z
  .strictObject({
    schema: z.literal("ztbench/testbed/1"),
    name,
    class: z.enum(["lab", "metal"]),
    /** Which boot of a lab this is; absent on metal, where hosts outlive the document. */
    instance: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
    hosts: z.array(hostSchema).min(1),
    /** Network of the data addresses, CIDR. */
    dataNetwork: z.cidrv4(),
    /** Scheduling class of load, proxies and services. */
    scheduling: z.enum(["rr", "other"]),
    tuningProfile: z.enum(tuningProfiles).default("repro"),
    clusterKind: z.enum(clusterKinds).default("none"),
    /** For `metal`; a lab has no hardware of its own. */
    hardware: hardwareSchema.optional(),
    /** There if, and only if, there is a cluster. */
    cluster: clusterSchema.optional(),
  })
  .superRefine((testbed, context) => {
    const complain = (path: (string | number)[], message: string) => {
      context.addIssue({ code: "custom", path: ["hosts", ...path], message });
    };
    const seen = new Map<string, number>();
    testbed.hosts.forEach((host, index) => {
      const door = `${host.managementAddress} port ${host.managementPort}`;
      for (const [key, subject, value] of [
        ["name", "name is", host.name],
        ["dataAddress", "dataAddress is", host.dataAddress],
        ["managementAddress", "address and port are", door],
      ] as const) {
        const first = seen.get(`${key} ${value}`);
        if (first === undefined) seen.set(`${key} ${value}`, index);
        else complain([index, key], `${subject} already used by hosts[${first}]`);
      }
      if (!overlaps(host.dataAddress, testbed.dataNetwork)) {
        complain([index, "dataAddress"], `must lie in dataNetwork ${testbed.dataNetwork}`);
      }
      const sameRole = testbed.hosts.findIndex((other) => other.role === host.role);
      if (host.role !== "client" && sameRole !== index) {
        complain([index, "role"], `role ${host.role} is already held by hosts[${sameRole}]`);
      }
    });
    if ((testbed.clusterKind === "none") !== (testbed.cluster === undefined)) {
      const wanted = testbed.clusterKind === "none" ? "absent" : "present";
      const message = `must be ${wanted} with clusterKind ${testbed.clusterKind}`;
      context.addIssue({ code: "custom", path: ["cluster"], message });
    }
    for (const [key, message] of clusterProblems(testbed)) {
      context.addIssue({ code: "custom", path: ["cluster", key], message });
    }
    if (testbed.class === "lab" && testbed.hardware !== undefined) {
      const message = "must be absent with class lab, which has no hardware of its own";
      context.addIssue({ code: "custom", path: ["hardware"], message });
    }
    for (const role of roles) {
      if (!testbed.hosts.some((host) => host.role === role)) {
        complain([], `a host with role ${role} is missing`);
      }
    }
  });
export type Testbed = z.infer<typeof testbedSchema>;

type Clustered = Readonly<{
  clusterKind: ClusterKind;
  cluster?: ClusterSettings | undefined;
  dataNetwork: string;
  hosts: readonly Host[];
  hardware?: Hardware | undefined;
}>;

type ClusterProblem = readonly [key: keyof ClusterSettings, message: string];

function clusterProblems(testbed: Clustered): ClusterProblem[] {
  const { cluster, clusterKind, dataNetwork, hardware, hosts } = testbed;
  if (cluster === undefined || clusterKind === "none") return [];
  const problems: ClusterProblem[] = [];
  const isK3s = clusterKind === "k3s";
  if (isK3s && cluster.artifacts === undefined) {
    problems.push(["artifacts", "is needed with clusterKind k3s"]);
  }
  const network = hardware?.mtu;
  if (isK3s && cluster.mtu === undefined && network === undefined) {
    problems.push(["mtu", "is needed with clusterKind k3s, here or as hardware.mtu"]);
  }
  if (cluster.mtu !== undefined && network !== undefined && cluster.mtu > network) {
    problems.push(["mtu", `must be at most hardware.mtu ${network}`]);
  }
  if (!isK3s && cluster.artifacts !== undefined) {
    problems.push(["artifacts", "has a meaning with clusterKind k3s only"]);
  }
  const { podNetwork, serviceNetwork } = cluster;
  for (const [key, network, other, taken] of [
    ["podNetwork", podNetwork, "dataNetwork", dataNetwork],
    ["serviceNetwork", serviceNetwork, "dataNetwork", dataNetwork],
    ["serviceNetwork", serviceNetwork, "podNetwork", podNetwork],
  ] as const) {
    if (overlaps(network, taken)) problems.push([key, `must not overlap ${other} ${taken}`]);
  }
  const prefix = Number(podNetwork.split("/")[1]);
  if (2 ** (24 - prefix) < hosts.length) {
    problems.push(["podNetwork", `must hold a /24 for each of ${hosts.length} hosts`]);
  }
  return problems;
}

/** The host of that name; names come from documents that were checked against the testbed. */
export function hostNamed(testbed: Testbed, name: string): Host {
  const host = testbed.hosts.find((candidate) => candidate.name === name);
  if (host === undefined) throw new Error(`testbed ${testbed.name} has no host ${name}`);
  return host;
}

/** The first host that has a role; the schema makes sure that there is one. */
export function hostOf(testbed: Testbed, role: Role): Host {
  const host = testbed.hosts.find((candidate) => candidate.role === role);
  if (host === undefined) throw new Error(`testbed ${testbed.name} has no ${role}`);
  return host;
}
