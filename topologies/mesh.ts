/** What a mesh of a topology is told, in the words of Istio, the same in every runtime. Pure. */
import type { MeshPolicy, PortName } from "./istio.ts";
import { checksOf, nodeOf, nodesOfKind, type Topology, type TopologyLeg } from "./model.ts";
import type { Parameters } from "./parameters.ts";

/** What is admitted by rules that know no caller: what load and the first probes ask for. */
export const admittedRequests = { methods: ["GET"], paths: ["/"] } as const;

/** Rules, identities and connections of a mesh. */
export function meshPolicyOf(topology: Topology, parameters: Parameters): MeshPolicy {
  const [policy] = checksOf(topology, "policy");
  const callers = checksOf(topology, "peer").map(({ identity }) => nodeOf(topology, identity));
  return {
    mutualTls: topology.legs.some(({ tls }) => tls.mode === "mutual"),
    resumesSessions: parameters.sessionResumption === 1,
    ...(policy === undefined
      ? {}
      : {
          admits:
            policy.on === "caller"
              ? { callers: callers.flatMap(({ account }) => account ?? []) }
              : admittedRequests,
        }),
    ...(carriesBytes(topology)
      ? {}
      : {
          pool: {
            connections: parameters.meshConnections,
            requestsPerConnection: parameters.requestsPerConnection,
          },
        }),
  };
}

/** Whether its sidecars pass bytes on without reading them; all of a mesh do the same. */
export function carriesBytes(topology: Topology): boolean {
  return nodesOfKind(topology, "sidecar").some(({ carries }) => carries === "bytes");
}

/** What the port at the end of a leg is called, which tells a mesh how to treat it. */
export function portNameOf(topology: Topology, leg: TopologyLeg | undefined): PortName {
  if (carriesBytes(topology)) return "tcp";
  return leg?.http === "2" ? "http2" : "http";
}
