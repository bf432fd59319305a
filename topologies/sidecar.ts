/** Sidecars and their control plane in the native runtime: units, files and steps. Pure. */
import { hostOf } from "../contracts/testbed.ts";
import { threadsOf } from "../contracts/cpu-list.ts";
import { payloadIdOf, type PayloadStep } from "../hosts/payload.ts";
import { captureStep, sidecarPorts } from "./capture.ts";
import { adminPorts, endpointOf, isBesideLoad, listenOf, rootOf } from "./endpoints.ts";
import {
  controlEnvironment,
  meshConfig,
  meshNamespace,
  renderObjects,
  renderPolicy,
  renderRegistry,
  rootNamespace,
  serviceLabels,
  trustDomain,
} from "./istio.ts";
import { meshPolicyOf, portNameOf } from "./mesh.ts";
import { legTo, nodeOf, nodesOfKind, type TopologyNode } from "./model.ts";
import { type NodeContext, type NodeRendering, unitOf } from "./node-unit.ts";
import {
  acceptStep,
  authorityDirectoryOf,
  authorityStep,
  identityRootOf,
  proxyUser,
  requestsOf,
} from "./trust.ts";

const loopback = "127.0.0.1";
const cluster = "ztbench";
const template = "envoy_bootstrap.json";

/** Ports on which the control plane also listens, on loopback. */
const controlPorts = { plain: 15010, monitoring: 15014, debug: 15080 } as const;

/** Istio's control plane and certificate authority, with the objects that say what the mesh is. */
export function renderControl(node: TopologyNode, context: NodeContext): NodeRendering {
  const { topology, testbed, programs } = context;
  const root = rootOf(topology);
  const endpoint = endpointOf(topology, testbed, node.id);
  const settings = `${root}/mesh.json`;
  const objects = `${root}/objects`;
  const config = meshConfig({ discovery: listenOf(endpoint), objects });
  const file = (path: string, content: string) => ({ path, mode: "0600", content });
  const unit = unitOf(node, context, {
    kind: "control",
    program: "ztistiod",
    dataPlane: false,
    cpuSet: "system",
    type: "notify",
    arguments: [
      `-mesh=${settings}`,
      `-cluster=${cluster}`,
      `-domain=${trustDomain}`,
      `-listen=${listenOf(endpoint)}`,
      ...Object.entries(controlPorts).map(([name, port]) => `-${name}=${loopback}:${port}`),
    ],
    environment: {
      ...controlEnvironment,
      POD_NAMESPACE: rootNamespace,
      POD_NAME: node.id,
      REVISION: "default",
      ROOT_CA_DIR: authorityDirectoryOf(topology),
      ENABLE_CA_SERVER: "true",
      XDS_AUTH: "true",
      PILOT_ENABLE_GATEWAY_API: "false",
    },
    workingDirectory: root,
    scheduling: "other",
    startSeconds: 30,
    listens: [endpoint.port, ...Object.values(controlPorts)],
  });
  return {
    ...unit,
    files: [
      file(settings, `${JSON.stringify(config, null, 1)}\n`),
      file(
        `${objects}/policy.yaml`,
        renderObjects(renderPolicy(meshPolicyOf(topology, context.parameters))),
      ),
      file(`${objects}/registry.yaml`, renderObjects(registryOf(context))),
    ],
    directories: [],
    steps: [authorityStep(topology, programs)],
    receives: requestsOf(topology, testbed),
  };
}

function registryOf({ topology, testbed }: NodeContext) {
  return nodesOfKind(topology, "sidecar")
    .filter((node) => isBesideLoad(topology, node))
    .flatMap((node) => {
      const { address, port } = endpointOf(topology, testbed, node.id);
      const [leg] = topology.legs.filter(({ from }) => from === node.id);
      if (leg === undefined) throw new Error(`sidecar ${node.id}: sends to nobody`);
      const account = nodeOf(topology, leg.to).account ?? "";
      const workload = endpointOf(topology, testbed, leg.to).address;
      return renderRegistry({
        address,
        port,
        portName: portNameOf(topology, leg),
        workload,
        account,
      });
    });
}

/** Istio's agent, which fetches a certificate, starts Envoy and feeds it. */
export function renderSidecar(node: TopologyNode, context: NodeContext): NodeRendering {
  const { topology, testbed, programs } = context;
  const directory = `${rootOf(topology)}/${node.id}`;
  const [control] = nodesOfKind(topology, "control");
  if (control === undefined) throw new Error(`sidecar ${node.id}: needs a control plane`);
  const unit = unitOf(node, context, {
    kind: "proxy",
    program: "pilot-agent",
    dataPlane: true,
    cpuSet: "proxy",
    // The agent does not speak to systemd: the ports that its Envoy opens once the control plane
    // has told it everything tell instead.
    type: "exec",
    arguments: [
      "proxy",
      "sidecar",
      `--domain=${meshNamespace}.svc.${trustDomain}`,
      "--proxyLogLevel=warning",
    ],
    environment: sidecarEnvironment(node, control, context, directory),
    user: proxyUser,
    workingDirectory: directory,
    scheduling: context.scheduling,
    startSeconds: 20,
    listens: [...Object.values(sidecarPorts), adminPorts.sidecar],
  });
  const variable = "certificates";
  return {
    ...unit,
    files: [],
    directories: [
      { path: rootOf(topology), mode: "0711" },
      { path: `${directory}/etc/istio/proxy`, mode: "0700" },
      { path: `${directory}/var/run/secrets`, mode: "0700" },
    ],
    steps: [
      acceptStep(topology, node, programs, variable),
      ownStep(directory),
      captureStep(capturedBy(node, context), rootOf(topology), programs),
    ],
    receives: { [variable]: payloadIdOf({ host: hostOf(testbed, control.role).name }) },
    adminUrl: `http://${loopback}:${adminPorts.sidecar}/`,
  };
}

/** The sidecar writes its sockets and Envoy's bootstrap into its directory. */
function ownStep(directory: string): PayloadStep {
  return { make: `chown -R ${proxyUser}: ${directory}`, undo: ":", left: ":" };
}

function capturedBy(node: TopologyNode, { topology, testbed }: NodeContext) {
  const { address, port, host } = endpointOf(topology, testbed, node.id);
  return isBesideLoad(topology, node)
    ? { outboundAddress: address, nic: host.nic }
    : { inboundPort: port };
}

function sidecarEnvironment(
  node: TopologyNode,
  control: TopologyNode,
  context: NodeContext,
  directory: string,
): Record<string, string> {
  const { topology, testbed, programs, parameters } = context;
  const host = hostOf(testbed, node.role);
  const account = node.account ?? "";
  const receives = legTo(topology, node.id);
  const isServer = receives !== undefined && !isBesideLoad(topology, node);
  const identity = identityRootOf(topology);
  const labels = isServer ? serviceLabels : { app: account };
  return {
    POD_NAME: node.id,
    POD_NAMESPACE: meshNamespace,
    INSTANCE_IP: host.dataAddress,
    SERVICE_ACCOUNT: account,
    TRUST_DOMAIN: trustDomain,
    ISTIO_META_CLUSTER_ID: cluster,
    ISTIO_META_MESH_ID: trustDomain,
    ISTIO_META_WORKLOAD_NAME: node.id,
    ISTIO_META_SERVICE_ACCOUNT: account,
    ISTIO_META_NAMESPACE: meshNamespace,
    ISTIO_METAJSON_LABELS: JSON.stringify(labels),
    ISTIO_META_DNS_CAPTURE: "false",
    ISTIOD_SAN: `istiod.${rootNamespace}.svc`,
    PILOT_CERT_PROVIDER: "istiod",
    PROV_CERT: identity,
    XDS_ROOT_CA: `${identity}/root-cert.pem`,
    CA_ROOT_CA: `${identity}/root-cert.pem`,
    WORKLOAD_RSA_KEY_SIZE: "2048",
    SECRET_TTL: `${parameters.certificateSeconds}s`,
    // All sidecars renew at the same share of the life time, as Istio 1.20 has it.
    SECRET_GRACE_PERIOD_RATIO: "0.5",
    SECRET_GRACE_PERIOD_RATIO_JITTER: "0",
    PROXY_CONFIG: JSON.stringify({
      discoveryAddress: listenOf(endpointOf(topology, testbed, control.id)),
      controlPlaneAuthPolicy: "MUTUAL_TLS",
      binaryPath: `${programs}/envoy`,
      proxyBootstrapTemplatePath: `${programs}/${template}`,
      configPath: `${directory}/etc/istio/proxy`,
      concurrency: threadsOf(host.cpus.proxy) ?? 0,
      // Without these two, which this Envoy does not know, it does not complain of them.
      runtimeValues: {
        "envoy.reloadable_features.fixed_heap_use_allocated": "",
        "envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": "",
      },
      statusPort: sidecarPorts.status,
      terminationDrainDuration: "1s",
      // Brackets, since the agent's YAML does not stand backslashes.
      proxyStatsMatcher: { inclusionRegexps: ["listener[.].*", "cluster[.].*", "http[.].*"] },
    }),
  };
}
