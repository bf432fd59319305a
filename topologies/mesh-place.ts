/** Where the probes of a mesh are sent from and to, in whatever runtime. Pure. */
import { hostOf, type Testbed } from "../contracts/testbed.ts";
import type { MeshProbePlace } from "./mesh-probes.ts";
import { checksOf, legTo, nodeOf, nodesOfKind, type Topology } from "./model.ts";
import type { PlainMeshPlace } from "./plain-mesh-probes.ts";
import { identityOf } from "./trust.ts";

type Runtime = Pick<MeshProbePlace, "certificates" | "alpn"> & {
  readonly testbed: Testbed;
  /** Base URL at which a node is reached. */
  readonly urlOf: (id: string) => string;
};

/** One of both for a mesh, none for topologies without one. */
export function meshProbePlaces(
  topology: Topology,
  { testbed, urlOf, certificates, alpn }: Runtime,
): { readonly mesh?: MeshProbePlace; readonly plainMesh?: PlainMeshPlace } {
  const [control] = nodesOfKind(topology, "control");
  if (control === undefined) return {};
  const last = topology.legs.at(-1);
  if (last === undefined) return {};
  const server = nodeOf(topology, last.from);
  const reached = {
    host: hostOf(testbed, control.role).name,
    server: new URL(urlOf(server.id)).host,
    hasRules: checksOf(topology, "policy").length > 0,
  };
  const [check] = checksOf(topology, "peer");
  if (check === undefined) return { plainMesh: reached };
  return {
    mesh: {
      ...reached,
      http: legTo(topology, server.id)?.http ?? "1.1",
      serverId: identityOf(server),
      callerId: identityOf(nodeOf(topology, check.identity)),
      certificates,
      alpn,
    },
  };
}
