/** What sidecars without TLS do not stop, and what their rules do, if they have any. Pure. */
import type { Expectation, Probe } from "../contracts/deployment.ts";
import { forgedUser, userHeader } from "./identity.ts";
import { admittedRequests } from "./mesh.ts";
import type { Entry } from "./mesh-probes.ts";

export type PlainMeshPlace = {
  /** Name of a host outside of the mesh. */
  readonly host: string;
  /** Where the service's sidecar takes connections, host:port. */
  readonly server: string;
  /** Whether rules say what may be asked for. */
  readonly hasRules: boolean;
};

/** A path that no rule admits. */
const otherPath = "/other";
const refused: Expectation = { outcome: "status", status: 403 };

/**
 * The probes that a mesh in plaintext adds to those of a topology without proof.
 *
 * @param entry how load enters the mesh
 */
export function renderPlainMeshProbes(entry: Entry, place: PlainMeshPlace): Probe[] {
  const { host, server, hasRules } = place;
  const { http, timeoutSeconds } = entry;
  const outside = { host, http, timeoutSeconds };
  const [admitted] = admittedRequests.paths;
  const probes: Probe[] = [
    {
      id: "plaintext-outside",
      kind: "positive",
      shows: "not stopped: a host outside of the mesh is answered, as whoever it says it is",
      ...outside,
      url: `http://${server}${admitted}`,
      headers: { [userHeader]: forgedUser },
      expect: {
        outcome: "status",
        status: 200,
        header: { name: userHeader, value: forgedUser },
      },
    },
  ];
  if (!hasRules) return probes;
  return [
    ...probes,
    {
      id: "other-path",
      kind: "negative",
      shows: "what no rule admits is refused, through the caller's own sidecar, too",
      ...entry,
      url: new URL(otherPath, entry.url).href,
      headers: {},
      expect: refused,
    },
    {
      id: "other-path-outside",
      kind: "negative",
      shows: "what no rule admits is refused from outside of the mesh",
      ...outside,
      url: `http://${server}${otherPath}`,
      headers: {},
      expect: refused,
    },
  ];
}
