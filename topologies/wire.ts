/** The facts that must be seen on each leg, and where they are read. Pure. */
import type { WireSource } from "../contracts/deployment.ts";
import { dataPortOf, isBesideLoad, unitNameOf } from "./endpoints.ts";
import { serviceHost } from "./istio.ts";
import { nodeOf, type Topology, type TopologyLeg, type TopologyNode } from "./model.ts";
import { keyExchangeGroup } from "./tls.ts";
import { identityOf } from "./trust.ts";

const version = "TLSv1.3";
const cipher = "TLS_AES_128_GCM_SHA256";

/**
 * For HTTP/1.1 sidecars offer `istio` only, which no server knows, so that nothing is agreed on.
 * Istio's own proxy would offer http/1.1, too, by a filter that other Envoys do not have.
 */
export const meshAlpn = {
  "1.1": { offered: ["istio"], agreed: "none" },
  "2": { offered: ["istio", "h2"], agreed: "h2" },
} as const;

/** The probe that shakes hands with the server's sidecar just as the client's does. */
export const handshakeProbe = "right-certificate";

/** Facts of a leg by name; none where nothing is encrypted. */
export function wireFactsOf(topology: Topology, leg: TopologyLeg): Record<string, string> {
  if (leg.tls.mode === "none") return {};
  return {
    alpn: meshAlpn[leg.http].agreed,
    caller: identityOf(nodeOf(topology, leg.from)),
    cipher,
    group: keyExchangeGroup,
    keyType: leg.tls.keyType,
    peer: identityOf(nodeOf(topology, leg.to)),
    version,
  };
}

/** Who has seen a leg. */
export function wireSourcesOf(topology: Topology, leg: TopologyLeg): WireSource[] {
  const [from, to] = [nodeOf(topology, leg.from), nodeOf(topology, leg.to)];
  const cluster = clusterOf(topology, from);
  const manager = managerOf(topology, to);
  return [
    ...(cluster === undefined
      ? []
      : [{ at: "from", unit: unitNameOf(from), prefix: `cluster.${cluster}` } as const]),
    ...(manager === undefined
      ? []
      : [{ at: "to", unit: unitNameOf(to), prefix: `http.${manager}` } as const]),
    ...(to.kind === "service" && to.answers !== "nothing"
      ? [{ at: "service", unit: unitNameOf(to) } as const]
      : []),
    ...(leg.tls.mode === "none" ? [] : [{ at: "probe", id: handshakeProbe } as const]),
  ];
}

/** Envoy's name of the cluster that a node sends to; Istio ends its names with a semicolon. */
function clusterOf(topology: Topology, node: TopologyNode): string | undefined {
  if (node.kind === "gateway") return "service";
  if (node.kind !== "sidecar") return undefined;
  const port = dataPortOf(node);
  return isBesideLoad(topology, node) ? `outbound|${port}||${serviceHost};` : `inbound|${port}||;`;
}

/** Envoy's name of what answers on a node. */
function managerOf(topology: Topology, node: TopologyNode): string | undefined {
  if (node.kind === "gateway") return "ingress";
  if (node.kind !== "sidecar") return undefined;
  const side = isBesideLoad(topology, node) ? "outbound" : "inbound";
  return `${side}_0.0.0.0_${dataPortOf(node)};`;
}
