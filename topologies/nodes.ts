/** What each kind of node needs on its host in the native runtime: unit, files, directories. */
import type { CpuLayout, Host } from "../contracts/testbed.ts";
import { threadsOf } from "../contracts/cpu-list.ts";
import { adminPorts, endpointOf, listenOf, rootOf, tokenDirectoryOf } from "./endpoints.ts";
import { jwksPath, renderGateway } from "./envoy.ts";
import { audience, issuerName } from "./identity.ts";
import { checksOf, legFrom, legTo, nodeOf, type Topology, type TopologyNode } from "./model.ts";
import { type NodeContext, type NodeRendering, unitOf } from "./node-unit.ts";
import { renderControl, renderSidecar } from "./sidecar.ts";

const loopback = "127.0.0.1";

/**
 * Renders one node.
 *
 * @throws Error for a load node, which nothing is deployed for
 */
export function renderNode(node: TopologyNode, context: NodeContext): NodeRendering {
  switch (node.kind) {
    case "service":
      return node.answers === "nothing" ? renderNull(node, context) : renderService(node, context);
    case "issuer":
      return renderIssuer(node, context);
    case "gateway":
      return renderGatewayNode(node, context);
    case "control":
      return renderControl(node, context);
    case "sidecar":
      return renderSidecar(node, context);
    case "load":
      throw new Error(`node ${node.id}: runtime native renders no ${node.kind}`);
  }
}

/** As many threads as CPUs; Go's own count otherwise, where the testbed reserves none. */
function goThreads(host: Host, cpuSet: keyof CpuLayout): Record<string, string> {
  const count = threadsOf(host.cpus[cpuSet]);
  return count === undefined ? {} : { GOMAXPROCS: String(count) };
}

/**
 * The command line of a service, the same in every runtime.
 *
 * @param listen where it takes requests, host:port
 * @param issuer where its issuer serves keys, host:port; for services that verify tokens
 */
export function serviceArguments(
  node: TopologyNode,
  { topology, parameters }: Pick<NodeContext, "topology" | "parameters">,
  listen: string,
  issuer: string | undefined,
): string[] {
  const verifies = checksOf(topology, "jwt", node.id).length > 0;
  const keys = [
    `-jwks=http://${issuer ?? ""}${jwksPath}`,
    `-issuer=${issuerName}`,
    `-audience=${audience}`,
  ];
  return [
    `-listen=${listen}`,
    `-auth=${verifies ? "jwt" : believedBy(node, topology)}`,
    ...(verifies ? keys : []),
    `-body-bytes=${parameters.bodyBytes}`,
    `-admin=${loopback}:${adminPorts.service}`,
  ];
}

function renderService(node: TopologyNode, context: NodeContext): NodeRendering {
  const { topology, testbed } = context;
  const endpoint = endpointOf(topology, testbed, node.id);
  const [check] = checksOf(topology, "jwt", node.id);
  const issuer = check && listenOf(endpointOf(topology, testbed, check.issuer));
  const unit = unitOf(node, context, {
    kind: "service",
    program: "ztecho",
    dataPlane: true,
    cpuSet: "service",
    type: "notify",
    arguments: serviceArguments(node, context, listenOf(endpoint), issuer),
    environment: goThreads(endpoint.host, "service"),
    scheduling: context.scheduling,
    startSeconds: 20,
    listens: [endpoint.port, adminPorts.service],
  });
  const statisticsUrl = `http://${loopback}:${adminPorts.service}/stats`;
  return { ...unit, files: [], directories: [], statisticsUrl };
}

function renderNull(node: TopologyNode, context: NodeContext): NodeRendering {
  const endpoint = endpointOf(context.topology, context.testbed, node.id);
  const unit = unitOf(node, context, {
    kind: "service",
    program: "ztnull",
    dataPlane: true,
    cpuSet: "service",
    type: "notify",
    arguments: [`-listen=${listenOf(endpoint)}`, `-body-bytes=${context.parameters.bodyBytes}`],
    environment: goThreads(endpoint.host, "service"),
    scheduling: context.scheduling,
    startSeconds: 20,
    listens: [endpoint.port],
  });
  return { ...unit, files: [], directories: [] };
}

/** Whose headers a service without tokens believes. */
function believedBy(node: TopologyNode, topology: Topology): "none" | "identity" | "peer" {
  const [check] = checksOf(topology, "header", node.id);
  if (check === undefined) return "none";
  return nodeOf(topology, check.setBy).kind === "sidecar" ? "peer" : "identity";
}

function renderIssuer(node: TopologyNode, context: NodeContext): NodeRendering {
  const { topology, testbed, parameters } = context;
  const endpoint = endpointOf(topology, testbed, node.id);
  const directory = tokenDirectoryOf(topology);
  const unit = unitOf(node, context, {
    kind: "issuer",
    program: "ztissuer",
    dataPlane: false,
    // Never on the CPUs of what is measured, and never ahead of it.
    cpuSet: "system",
    type: "notify",
    arguments: [
      `-dir=${directory}`,
      `-listen=${listenOf(endpoint)}`,
      `-count=${parameters.tokens}`,
      `-token-bytes=${parameters.tokenBytes}`,
      `-ttl=${parameters.tokenLifetimeSeconds}s`,
      `-issuer=${issuerName}`,
      `-audience=${audience}`,
    ],
    environment: goThreads(endpoint.host, "system"),
    scheduling: "other",
    // Minting is about 1 ms of CPU a token.
    startSeconds: 20 + Math.ceil(parameters.tokens / 250),
    listens: [endpoint.port],
  });
  return { ...unit, files: [], directories: [{ path: directory, mode: "0700" }] };
}

function renderGatewayNode(node: TopologyNode, context: NodeContext): NodeRendering {
  const { topology, testbed } = context;
  const endpoint = endpointOf(topology, testbed, node.id);
  const [before, after] = [legTo(topology, node.id), legFrom(topology, node.id)];
  const tokenCheck = checksOf(topology, "jwt", node.id)[0];
  if (before === undefined || after === undefined || tokenCheck === undefined) {
    throw new Error(`gateway ${node.id}: needs a leg on each side and a jwt check`);
  }
  const configuration = `${rootOf(topology)}/${node.id}.json`;
  const admin = { address: loopback, port: adminPorts.gateway };
  const content = renderGateway({
    listen: endpoint,
    admin,
    downstreamHttp: before.http,
    upstream: endpointOf(topology, testbed, after.to),
    upstreamHttp: after.http,
    issuer: endpointOf(topology, testbed, tokenCheck.issuer),
  });
  const workers = threadsOf(endpoint.host.cpus.proxy);
  const unit = unitOf(node, context, {
    kind: "proxy",
    program: "envoy",
    dataPlane: true,
    cpuSet: "proxy",
    // Envoy does not speak to systemd: its port, opened once the keys are there, tells instead.
    type: "exec",
    arguments: [
      "--config-path",
      configuration,
      "--disable-hot-restart",
      "--log-level",
      "warning",
      ...(workers === undefined ? [] : ["--concurrency", String(workers)]),
    ],
    scheduling: context.scheduling,
    startSeconds: 20,
    listens: [endpoint.port, admin.port],
  });
  return {
    ...unit,
    files: [{ path: configuration, mode: "0600", content }],
    directories: [],
    adminUrl: `http://${admin.address}:${admin.port}/`,
  };
}
