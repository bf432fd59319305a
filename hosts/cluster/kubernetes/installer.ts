/** Kind `kubernetes`: upstream Kubernetes as units of the lab's hosts. Pure. */
import { type Host, hostOf } from "../../../contracts/testbed.ts";
import { type HostPayload, type PayloadFile, renderPayload } from "../../payload.ts";
import { quote, renderTable, shellPart } from "../../shell.ts";
import {
  addressIn,
  apiServerOf,
  clusterDirectory,
  type ClusterFile,
  type ClusterInstallation,
  type ClusterInstaller,
  type ClusterPlace,
  type ClusterTask,
  podNetworksOf,
} from "../cluster.ts";
import { directoryOf } from "../files.ts";
import { reservedCpus } from "../reserved-cpus.ts";
import * as configuration from "./configuration.ts";
import { importScript, joinRuntimeScript, nodeUnits, serverUnits } from "./units.ts";

const serverPrograms = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
] as const;
const nodePrograms = ["kubectl", "kubelet", "kube-proxy", "kube-router"] as const;
const sandboxArchive = "pause.tar";
const meshControlArchive = "istiod.tar";
const meshProxyArchive = "proxyv2.tar";
/** Stands for the name that this archive gives its image. */
const sandboxImage = "SANDBOX_IMAGE";

const places: configuration.Places = {
  authority: `${clusterDirectory}/authority`,
  server: `${clusterDirectory}/server`,
  keys: `${clusterDirectory}/keys`,
  node: `${clusterDirectory}/node`,
};

const keySeconds = 30;
const payloadSeconds = 120;
/** The API server needs about 5 s on an idle machine. */
const apiSeconds = 60;
const joinSeconds = 60;

/** Puts upstream Kubernetes on the hosts; the control plane goes to the gateway host. */
export const kubernetesInstaller: ClusterInstaller = {
  kind: "kubernetes",
  files: [...serverPrograms, ...nodePrograms, sandboxArchive, "*.tar"],
  install,
};

function install(place: ClusterPlace): ClusterInstallation {
  const { testbed } = place;
  const server = hostOf(testbed, "gateway");
  const nodes = testbed.hosts.flatMap((host) => nodeTasks(place, server, host));
  const facts: ClusterTask = {
    ...withPrograms(
      place,
      server,
      onServer(place, server, "cluster-facts", "cluster_facts_create"),
    ),
    after: testbed.hosts.map(({ name }) => factsId(name)),
  };
  const kubeconfig: ClusterTask = {
    ...onServer(place, server, "kubeconfig", "kubeconfig_create"),
    after: [`${server.name}-authority`],
    secret: true,
  };
  return {
    files: Object.fromEntries(
      testbed.hosts.map((host) => [host.name, filesOf(place, server, host)]),
    ),
    tasks: [...serverTasks(place, server), ...nodes, facts, kubeconfig],
    outputs: {
      kubeconfig: kubeconfig.id,
      facts: facts.id,
      nodes: Object.fromEntries(testbed.hosts.map(({ name }) => [name, factsId(name)])),
    },
  };
}

const factsId = (host: string) => `${host}-node-facts`;

/** Everything goes to all hosts, but for the control planes of the cluster and of its mesh. */
function filesOf(place: ClusterPlace, server: Host, host: Host): ClusterFile[] {
  const elsewhere = new Set<string>([
    ...(host.name === server.name ? [] : [...serverPrograms, meshControlArchive]),
    ...(place.settings.mesh === "none" ? [meshControlArchive, meshProxyArchive] : []),
  ]);
  return [...place.files.values()].filter(({ name }) => !elsewhere.has(name));
}

function onServer(
  { settings }: ClusterPlace,
  server: Host,
  name: string,
  create: string,
): ClusterTask {
  const names = [
    ...["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map((n) => `DNS:${n}`),
    "DNS:kubernetes.default.svc.cluster.local",
    `IP:${addressIn(settings.serviceNetwork, 1)}`,
    `IP:${server.dataAddress}`,
  ];
  return {
    id: `${server.name}-${name}`,
    host: server.name,
    script: {
      prelude: [
        `host=${quote(server.name)}`,
        `authority=${places.authority}`,
        `server=${apiServerOf(server, settings)}`,
        `names=${quote(names.join(","))}`,
        `wait_seconds=${apiSeconds}`,
        `objects() {\ncat <<'END_OF_OBJECTS'\n${configuration.routerRights()}END_OF_OBJECTS\n}`,
        shellPart("facts"),
        shellPart("lease"),
        shellPart("cluster-server"),
      ].join("\n"),
      create,
    },
    timeoutSeconds: apiSeconds + keySeconds,
    after: [],
    needsFiles: false,
  };
}

/** The same with our programs; only then it is done anew when one of those changes. */
function withPrograms(place: ClusterPlace, server: Host, task: ClusterTask): ClusterTask {
  const programs = directoryOf(filesOf(place, server, server));
  const { prelude = "" } = task.script;
  const known = [`programs=${programs}`, `kubectl=${programs}/kubectl`, prelude].join("\n");
  return { ...task, needsFiles: true, script: { ...task.script, prelude: known } };
}

function serverTasks(place: ClusterPlace, server: Host): ClusterTask[] {
  const { settings } = place;
  const authority = onServer(place, server, "authority", "authority_create");
  const programs = directoryOf(filesOf(place, server, server));
  const payload: HostPayload = {
    host: server.name,
    name: "server",
    root: places.server,
    directories: [{ path: `${places.server}/etcd`, mode: "0700" }],
    files: [],
    units: serverUnits(places, server, settings, programs),
    listenSeconds: apiSeconds,
    after: [],
  };
  const control: ClusterTask = {
    id: `${server.name}-server`,
    host: server.name,
    script: renderPayload(payload),
    timeoutSeconds: payloadSeconds,
    after: [authority.id],
    needsFiles: true,
  };
  const api = withPrograms(place, server, onServer(place, server, "api", "api_create"));
  return [
    { ...authority, script: { ...authority.script, remove: "authority_remove" } },
    control,
    { ...api, after: [control.id] },
  ];
}

function nodeTasks(place: ClusterPlace, server: Host, host: Host): ClusterTask[] {
  const keys = keysTask(host);
  const signing: ClusterTask = {
    ...onServer(place, server, `sign-${host.name}`, "signing_create"),
    after: [`${server.name}-authority`],
    receives: { requests: keys.id },
  };
  const node: ClusterTask = {
    id: `${host.name}-node`,
    host: host.name,
    script: renderPayload(nodePayload(place, server, host)),
    timeoutSeconds: payloadSeconds,
    // A kubelet registers once: with a new API server, or for as long as the old one is there.
    after: [keys.id, `${server.name}-server`],
    needsFiles: true,
    receives: { certificates: signing.id, ca: `${server.name}-authority` },
  };
  const facts: ClusterTask = {
    id: factsId(host.name),
    host: host.name,
    script: {
      prelude: [
        nodePrelude(host),
        `programs=${directoryOf(filesOf(place, server, host))}`,
        `wait_seconds=${joinSeconds}`,
        ...[shellPart("facts"), shellPart("lease"), shellPart("cluster-node")],
      ].join("\n"),
      create: "node_facts_create",
    },
    timeoutSeconds: joinSeconds + keySeconds,
    after: [`${server.name}-api`, node.id],
    needsFiles: true,
  };
  return [keys, signing, node, facts];
}

function nodePrelude(host: Host): string {
  return [`host=${quote(host.name)}`, `keys=${places.keys}`, `root=${places.node}`].join("\n");
}

/** Keys are made where they are used; only requests and certificates travel. */
function keysTask(host: Host): ClusterTask {
  const identities = [
    [
      "kubelet",
      `/O=system:nodes/CN=system:node:${host.name}`,
      `DNS:${host.name},IP:${host.dataAddress}`,
    ],
    ["proxy", "/CN=system:kube-proxy", "-"],
    ["router", "/CN=system:kube-router", "-"],
  ];
  return {
    id: `${host.name}-keys`,
    host: host.name,
    script: {
      prelude: [
        nodePrelude(host),
        renderTable("identities", identities),
        shellPart("cluster-node"),
      ].join("\n"),
      create: "node_keys_create",
      remove: "node_keys_remove",
    },
    timeoutSeconds: keySeconds,
    after: [],
    needsFiles: false,
  };
}

function nodePayload(place: ClusterPlace, server: Host, host: Host): HostPayload {
  const { testbed, settings } = place;
  const { node } = places;
  const networks = podNetworksOf(testbed, settings);
  const files = filesOf(place, server, host);
  const programs = directoryOf(files);
  const archives = files
    .filter(({ executable }) => !executable)
    .map(({ name }) => `${programs}/${name}`);
  const routes = [
    // Without it, a host could not even begin to send to a virtual address.
    `${settings.serviceNetwork} dev ${host.nic}`,
    ...testbed.hosts
      .filter(({ name }) => name !== host.name)
      .map((other) => `${networks.get(other.name) ?? ""} via ${other.dataAddress}`),
  ];
  const functions = [
    nodePrelude(host),
    `programs=${programs}`,
    `sandbox_archive=${programs}/${sandboxArchive}`,
    `server=${apiServerOf(server, settings)}`,
    renderTable(
      "sysctls",
      nodeSysctls.map((line) => [line]),
    ),
    renderTable(
      "routes",
      routes.map((line) => [line]),
    ),
    shellPart("cluster-node"),
  ].join("\n");
  return {
    host: host.name,
    name: "node",
    root: node,
    directories: ["addresses", "cni", "containerd", "kubelet", "volume-plugins"].map((name) => ({
      path: `${node}/${name}`,
      mode: "0700",
    })),
    files: nodeFiles(place, host, networks.get(host.name) ?? "", archives),
    units: nodeUnits(places, host, settings, programs),
    steps: [
      {
        make: [functions, ...nodeSteps].join("\n"),
        undo: `${functions}\nnode_undo`,
        left: `${functions}\nnode_left`,
      },
    ],
    after: [],
  };
}

/** In this order: what is refused is refused before anything is made. */
const nodeSteps = [
  "node_must_be_free",
  "node_trust_make",
  "node_runtime_make",
  "node_network_make",
];

const nodeSysctls = [
  "net.ipv4.ip_forward 1",
  "net.bridge.bridge-nf-call-iptables 1",
  // kube-proxy would set it, and nobody would set it back.
  "net.ipv4.conf.all.route_localnet 1",
];

function nodeFiles(
  place: ClusterPlace,
  host: Host,
  podNetwork: string,
  archives: readonly string[],
): PayloadFile[] {
  const { settings, facts } = place;
  const { node } = places;
  const reserved = reservedCpus(host, facts?.[host.name]?.["cpu-online"]);
  const file = (name: string, content: string, mode = "0600") => ({
    path: `${node}/${name}`,
    mode,
    content,
  });
  return [
    file("containerd.toml", configuration.containerdConfiguration(node, sandboxImage)),
    file("cni/10-ztbench.conflist", configuration.networkConfiguration(node, podNetwork)),
    file("kubelet.json", configuration.kubeletConfiguration(places, host, settings, reserved)),
    file("kube-proxy.json", configuration.proxyConfiguration(node, host, settings)),
    file("resolv.conf", `nameserver ${addressIn(settings.serviceNetwork, 10)}\n`, "0644"),
    file("view", configuration.viewScript, "0700"),
    file("join-runtime", joinRuntimeScript, "0700"),
    file("import-images", importScript(archives), "0700"),
  ];
}
