/** The facts that must be seen on each leg, and where they are read. Pure. */
import type { WireSource } from "../contracts/deployment.ts";
import { dataPortOf, isBesideLoad } from "./endpoints.ts";
import { serviceHost } from "./istio.ts";
import {
  type HttpVersion,
  nodeOf,
  type Topology,
  type TopologyLeg,
  type TopologyNode,
} from "./model.ts";
import { keyExchangeGroup } from "./tls.ts";
import { identityOf } from "./trust.ts";

const version = "TLSv1.3";
const cipher = "TLS_AES_128_GCM_SHA256";

/** The protocols that a sidecar offers, most wanted first, and what a sidecar agrees to. */
export type MeshAlpn = Readonly<
  Record<HttpVersion, { readonly offered: readonly string[]; readonly agreed: string }>
>;

/** For HTTP/1.1 sidecars offer `istio` only, which no server knows, so nothing is agreed on. */
export const meshAlpn: MeshAlpn = {
  "1.1": { offered: ["istio"], agreed: "none" },
  "2": { offered: ["istio", "h2"], agreed: "h2" },
};

/** Istio's own proxy names the version of HTTP, too, by a filter that other Envoys do not have. */
export const istioAlpn: MeshAlpn = {
  "1.1": { offered: ["istio-http/1.1", "istio", "http/1.1"], agreed: "http/1.1" },
  "2": { offered: ["istio-h2", "istio", "h2"], agreed: "h2" },
};

/** The probe that shakes hands with the server's sidecar just as the client's does. */
export const handshakeProbe = "right-certificate";

/**
 * Facts of a leg by name; none where nothing is encrypted, but that whoever connects there does not
 * read what it passes on.
 */
export function wireFactsOf(
  topology: Topology,
  leg: TopologyLeg,
  alpn: MeshAlpn,
): Record<string, string> {
  if (leg.tls.mode === "none") {
    return nodeOf(topology, leg.from).carries === "bytes" ? { carries: "bytes" } : {};
  }
  return {
    alpn: alpn[leg.http].agreed,
    caller: identityOf(nodeOf(topology, leg.from)),
    cipher,
    group: keyExchangeGroup,
    keyType: leg.tls.keyType,
    peer: identityOf(nodeOf(topology, leg.to)),
    version,
  };
}

/**
 * Who has seen a leg.
 *
 * @param nameOf what the unit of a node is called in the runtime
 */
export function wireSourcesOf(
  topology: Topology,
  leg: TopologyLeg,
  nameOf: (node: TopologyNode) => string,
): WireSource[] {
  const [from, to] = [nodeOf(topology, leg.from), nodeOf(topology, leg.to)];
  const cluster = clusterOf(topology, from);
  const manager = to.carries === "bytes" ? undefined : managerOf(topology, to);
  return [
    ...(cluster === undefined
      ? []
      : [{ at: "from", unit: nameOf(from), prefix: `cluster.${cluster}` } as const]),
    ...(manager === undefined
      ? []
      : [{ at: "to", unit: nameOf(to), prefix: `http.${manager}` } as const]),
    ...(to.kind === "service" && to.answers !== "nothing"
      ? [{ at: "service", unit: nameOf(to) } as const]
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
