/** Kind `k3s`: the server on the gateway host, an agent on each of the others. Pure. */
import { type Artifacts, artifactOf } from "../../../contracts/artifacts.ts";
import { Failure } from "../../../contracts/failure.ts";
import { type Host, hostOf } from "../../../contracts/testbed.ts";
import type { HostScript } from "../../runner.ts";
import { quote, shellPart } from "../../shell.ts";
import {
  apiServerOf,
  type ClusterFile,
  type ClusterInstallation,
  type ClusterInstaller,
  type ClusterPlace,
  type ClusterTask,
} from "../cluster.ts";
import { directoryOf } from "../files.ts";
import { reservedCpus } from "../reserved-cpus.ts";
import { agentConfiguration, renderUnit, serverConfiguration } from "./configuration.ts";
import { requiredImages, requireTested } from "./releases.ts";

/** Archives are read again at each start, several hundred megabytes of them. */
const startSeconds = 180;
/** A node joins within seconds of its agent's start. */
const joinSeconds = 60;
const taskSeconds = 2 * startSeconds;

/** k3s on hosts with Debian or Ubuntu, from the files of an artifacts document. */
export const k3sInstaller: ClusterInstaller = { kind: "k3s", files: [], install };

type K3sPlace = ClusterPlace & { readonly artifacts: Artifacts };

/** Names of the files that go to the hosts. */
function hostFiles(artifacts: Artifacts): string[] {
  return artifacts.files
    .filter(({ role }) => role === "k3s" || role === "k3s-images" || role === "images")
    .map(({ name }) => name);
}

function install(given: ClusterPlace): ClusterInstallation {
  const { artifacts, testbed } = given;
  if (artifacts === undefined) throw new Failure("bug", "k3s: installed without its artifacts");
  const place = { ...given, artifacts };
  const files = filesOf(place);
  const server = hostOf(testbed, "gateway");
  const others = testbed.hosts.filter(({ name }) => name !== server.name);
  requireTested(artifacts);
  const claims = testbed.hosts.map((host) => claimTask(place, host, files));
  const [start, token, kubeconfig] = serverTasks(place, server, files);
  const agents = others.map((host) => agentTask(place, host, files, token.id));
  const joined = testbed.hosts.map((host) =>
    nodeTask(place, server, host, host === server ? start.id : k3sId(host)),
  );
  const facts: ClusterTask = {
    ...onServer(place, server, start.id),
    id: `${server.name}-cluster-facts`,
    script: { prelude: prelude(place, server, files), create: "k3s_cluster_facts" },
    after: joined.map(({ id }) => id),
  };
  return {
    files: Object.fromEntries(testbed.hosts.map(({ name }) => [name, files])),
    tasks: [...claims, start, token, kubeconfig, ...agents, ...joined, facts],
    outputs: {
      kubeconfig: kubeconfig.id,
      facts: facts.id,
      nodes: Object.fromEntries(testbed.hosts.map(({ name }) => [name, nodeId(name)])),
    },
  };
}

const k3sId = (host: Host) => `${host.name}-k3s`;
const claimId = (host: Host) => `${host.name}-before`;
const nodeId = (host: string) => `${host}-node`;

function filesOf({ artifacts, files }: K3sPlace): ClusterFile[] {
  return hostFiles(artifacts).map((name) => {
    const file = files.get(name);
    if (file === undefined) throw new Failure("bug", `k3s: file ${name} was not looked for`);
    return file;
  });
}

/** What every script of a host knows. */
function prelude(place: K3sPlace, host: Host, files: readonly ClusterFile[]): string {
  const { artifacts, settings, testbed } = place;
  const server = hostOf(testbed, "gateway");
  const mode = host.name === server.name ? "server" : "agent";
  const program = artifactOf(artifacts, "k3s")?.name ?? "";
  const archives = hostFiles(artifacts).filter((name) => name !== program);
  const online = place.facts?.[host.name]?.["cpu-online"];
  const reserved = reservedCpus(host, online);
  const configuration =
    mode === "server"
      ? serverConfiguration(testbed, settings, reserved)
      : agentConfiguration(host, testbed, settings, reserved);
  const { hostname: address } = new URL(apiServerOf(server, settings));
  return [
    `host=${quote(host.name)}`,
    `directory=${directoryOf(files)}`,
    `unit=${mode === "server" ? "k3s" : "k3s-agent"}`,
    `program=${quote(program)}`,
    `images=(${requiredImages(artifacts, settings.mesh === "istio")
      .map(quote)
      .join(" ")})`,
    `archives=(${archives.map(quote).join(" ")})`,
    `address=${address}`,
    `api_port=${settings.apiPort}`,
    `pod_network=${settings.podNetwork}`,
    `wait_seconds=${startSeconds}`,
    `join_seconds=${joinSeconds}`,
    `k3s_configuration() {\ncat <<'END_OF_CONFIGURATION'\n${configuration}END_OF_CONFIGURATION\n}`,
    `k3s_unit() {\ncat <<'END_OF_UNIT'\n${renderUnit(mode)}END_OF_UNIT\n}`,
    shellPart("lease"),
    shellPart("k3s-removal"),
    shellPart("k3s"),
  ].join("\n");
}

/**
 * Notes what is there before anything is put on the host. Undone last: then it takes off whatever
 * an interrupted run has left, which the engine knows nothing of.
 */
function claimTask(place: K3sPlace, host: Host, files: readonly ClusterFile[]): ClusterTask {
  return {
    id: claimId(host),
    host: host.name,
    script: { prelude: prelude(place, host, files), create: "k3s_claim", remove: "k3s_remove" },
    timeoutSeconds: taskSeconds,
    after: [],
    needsFiles: false,
  };
}

function serverTasks(
  place: K3sPlace,
  server: Host,
  files: readonly ClusterFile[],
): readonly [ClusterTask, ClusterTask, ClusterTask] {
  const common = prelude(place, server, files);
  const start: ClusterTask = {
    id: k3sId(server),
    host: server.name,
    script: {
      prelude: common,
      create: [
        "k3s_install",
        "k3s_server_token",
        "k3s_start",
        "k3s_wait_for_api",
        "k3s_require_images",
        "k3s_name_by_digest",
      ].join("\n"),
      remove: "k3s_remove",
    },
    timeoutSeconds: taskSeconds,
    after: [claimId(server)],
    needsFiles: true,
  };
  const print = (id: string, create: string): ClusterTask => ({
    ...onServer(place, server, start.id),
    id: `${server.name}-${id}`,
    script: { prelude: common, create },
    secret: true,
  });
  return [
    start,
    print("cluster-token", "k3s_print_token"),
    print("kubeconfig", "k3s_print_kubeconfig"),
  ];
}

function onServer(place: K3sPlace, server: Host, after: string) {
  return {
    host: server.name,
    timeoutSeconds: place.testbed.hosts.length * joinSeconds,
    after: [after],
    needsFiles: false,
  } as const;
}

function agentTask(
  place: K3sPlace,
  host: Host,
  files: readonly ClusterFile[],
  token: string,
): ClusterTask {
  const script: HostScript = {
    prelude: prelude(place, host, files),
    create: [
      "k3s_install",
      'k3s_agent_token "$cluster_token"',
      "k3s_start",
      "k3s_require_images",
      "k3s_name_by_digest",
    ].join("\n"),
    remove: "k3s_remove",
  };
  return {
    id: k3sId(host),
    host: host.name,
    script,
    timeoutSeconds: taskSeconds,
    after: [claimId(host)],
    needsFiles: true,
    receives: { cluster_token: token },
  };
}

/** Looks from the server, since only there is it known who has joined. */
function nodeTask(place: K3sPlace, server: Host, host: Host, after: string): ClusterTask {
  return {
    ...onServer(place, server, after),
    id: nodeId(host.name),
    script: {
      prelude: prelude(place, server, filesOf(place)),
      create: `k3s_node ${quote(host.name)} ${host.dataAddress}`,
    },
  };
}
