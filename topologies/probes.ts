/** The security boundary of a topology as requests with the answers they must get. Pure. */
import type { Expectation, Probe } from "../contracts/deployment.ts";
import { type Entry, type MeshProbePlace, renderMeshProbes } from "./mesh-probes.ts";
import { type PlainMeshPlace, renderPlainMeshProbes } from "./plain-mesh-probes.ts";
import { claimedUser, forgedUser, publicPath, tokenUserPattern, userHeader } from "./identity.ts";
import { checksOf, nodeOf, nodesOfKind, type HttpVersion, type Topology } from "./model.ts";

export type ProbePlace = {
  /** Name of the host that sends load; probes are sent from there, too. */
  readonly host: string;
  /** Network namespace that it is sent from; absent: the host's own. */
  readonly networkNamespace?: string;
  /** Base of the entry, without a path. */
  readonly entryUrl: string;
  readonly entryHttp: HttpVersion;
  readonly tokenDirectory: string;
  /** What the probes of a mesh with mutual TLS need; absent where there is none. */
  readonly mesh?: MeshProbePlace;
  /** What the probes of a mesh in plaintext need; absent where there is none. */
  readonly plainMesh?: PlainMeshPlace;
  /** Base URL of a node, for going round those before it. */
  readonly urlOf: (id: string) => string;
  /** What whoever the network keeps out gets to see. */
  readonly shutOut: Expectation;
};

const timeoutSeconds = 2;

const status = (code: number): Expectation => ({ outcome: "status", status: code });
const answeredAs = (user: { value: string } | { matches: string }): Expectation => ({
  outcome: "status",
  status: 200,
  header: { name: userHeader, ...user },
});

/** All probes of a topology; at least one is positive. */
export function renderProbes(topology: Topology, place: ProbePlace): Probe[] {
  const { host, networkNamespace, entryHttp: http } = place;
  const from = { host, ...(networkNamespace === undefined ? {} : { networkNamespace }) };
  const entry: Entry = { ...from, http, timeoutSeconds, url: `${place.entryUrl}/` };
  const tokenCheck = checksOf(topology, "jwt")[0];
  if (place.mesh !== undefined && tokenCheck === undefined) {
    return renderMeshProbes(entry, place.mesh);
  }
  if (tokenCheck === undefined) {
    if (nodesOfKind(topology, "service").some(({ answers }) => answers === "nothing")) {
      return [probeOfNothing(entry)];
    }
    if (place.plainMesh !== undefined) {
      return [...probesWithoutProof(entry), ...renderPlainMeshProbes(entry, place.plainMesh)];
    }
    if (topology.checks.length > 0) throw new Error(`${topology.name}: no probes of its checks`);
    return probesWithoutProof(entry);
  }
  const verifier = nodeOf(topology, tokenCheck.at).kind;
  const withToken = (name: string) => ({ tokenFile: `${place.tokenDirectory}/${name}.txt` });
  const probes: Probe[] = [
    {
      id: "valid-token",
      kind: "positive",
      shows: "a valid token is accepted, and the service knows its user",
      ...entry,
      headers: {},
      ...withToken("valid"),
      expect: answeredAs({ matches: tokenUserPattern }),
    },
    {
      id: "no-token",
      kind: "negative",
      shows: "a request without a token is refused",
      ...entry,
      headers: {},
      expect: status(401),
    },
    ...refusedTokens(verifier === "gateway").map(({ id, code, shows }): Probe => ({
      id,
      kind: "negative",
      shows,
      ...entry,
      headers: {},
      ...withToken(id),
      expect: status(code),
    })),
    {
      id: "forged-identity",
      kind: "negative",
      shows: "a forged identity header beside a valid token does not change who the caller is",
      ...entry,
      headers: { [userHeader]: forgedUser },
      ...withToken("valid"),
      expect: answeredAs({ matches: tokenUserPattern }),
    },
  ];
  if (verifier === "gateway") {
    probes.push({
      id: "forged-identity-public",
      kind: "negative",
      shows: "a forged identity header is stripped on the route that needs no token, too",
      ...entry,
      url: `${place.entryUrl}${publicPath}`,
      headers: { [userHeader]: forgedUser },
      expect: status(401),
    });
  }
  return [...probes, ...probesPastNetwork(topology, entry, place)];
}

function probeOfNothing(entry: Entry): Probe {
  return {
    id: "answer",
    kind: "positive",
    shows: "the null server answers; it knows nobody and refuses nobody",
    ...entry,
    headers: {},
    expect: status(200),
  };
}

/** What a topology that asks for no proof does not stop. */
function probesWithoutProof(entry: Entry) {
  return [
    {
      id: "valid-identity",
      kind: "positive",
      shows: "the service answers, and knows the user that the caller claims to be",
      ...entry,
      headers: { [userHeader]: claimedUser },
      expect: answeredAs({ value: claimedUser }),
    },
    {
      id: "forged-identity",
      kind: "positive",
      shows: "not stopped: whatever identity a caller forges is believed",
      ...entry,
      headers: { [userHeader]: forgedUser },
      expect: answeredAs({ value: forgedUser }),
    },
  ] satisfies Probe[];
}

/** @param byEnvoy whose status for a wrong audience is its own */
function refusedTokens(byEnvoy: boolean) {
  return [
    { id: "expired", code: 401, shows: "an expired token is refused" },
    { id: "bad-signature", code: 401, shows: "a token signed by another key is refused" },
    {
      id: "wrong-audience",
      code: byEnvoy ? 403 : 401,
      shows: "a token for another service is refused",
    },
    { id: "foreign-issuer", code: 401, shows: "a token of another issuer is refused" },
  ];
}

/** From the load host straight to each node that only others may reach. */
function probesPastNetwork(topology: Topology, entry: Entry, place: ProbePlace): Probe[] {
  return checksOf(topology, "network").map((check) => ({
    id: `direct-to-${check.at}`,
    kind: "negative",
    shows: `the ${check.at} cannot be reached past the ${check.allows.join(" or ")}`,
    ...entry,
    url: `${place.urlOf(check.at)}/`,
    http: "1.1",
    headers: { [userHeader]: forgedUser },
    expect: place.shutOut,
  }));
}
