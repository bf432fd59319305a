/** All topologies, as data. Adding one is one entry. */
import { Failure } from "../contracts/failure.ts";
import type { Check, HttpVersion, Topology, TopologyLeg } from "./model.ts";

const plain = { http: "1.1", tls: { mode: "none" } } as const;
const load = { id: "load", kind: "load", role: "client" } as const;
const service = { id: "service", kind: "service", role: "server" } as const;
const gateway = { id: "gateway", kind: "gateway", role: "gateway" } as const;
/** On the load host, so that tokens and the signing key never cross the network. */
const issuer = { id: "issuer", kind: "issuer", role: "client" } as const;

const tokenParameters = ["tokens", "tokenBytes", "tokenLifetimeSeconds"] as const;

const baseline: Topology = {
  name: "baseline",
  summary: "no authentication: the service believes whatever identity it is told",
  runtimes: ["native", "k3s"],
  nodes: [load, service],
  legs: [{ from: "load", to: "service", ...plain }],
  checks: [],
  parameters: ["bodyBytes", "hostNetwork"],
};

/** Not a way to authenticate: what the load driver reaches here is its own ceiling. */
const nothing: Topology = {
  name: "null",
  summary: "a server that does nothing: shows what the load driver and the path can do",
  runtimes: ["native", "k3s"],
  nodes: [load, { ...service, answers: "nothing" }],
  legs: [{ from: "load", to: "service", ...plain }],
  checks: [],
  parameters: ["bodyBytes"],
};

const jwt: Topology = {
  name: "jwt",
  summary: "RS256 bearer tokens, verified by the service itself",
  runtimes: ["native", "k3s"],
  nodes: [load, issuer, service],
  legs: [{ from: "load", to: "service", ...plain }],
  checks: [{ kind: "jwt", at: "service", issuer: "issuer" }],
  parameters: ["bodyBytes", ...tokenParameters],
};

const gatewayTopology: Topology = {
  name: "gateway",
  summary: "an Envoy gateway verifies tokens; the service believes the headers it sets",
  runtimes: ["native", "k3s"],
  nodes: [load, issuer, gateway, service],
  legs: [
    { from: "load", to: "gateway", ...plain },
    { from: "gateway", to: "service", ...plain },
  ],
  checks: [
    { kind: "jwt", at: "gateway", issuer: "issuer" },
    { kind: "header", at: "service", setBy: "gateway" },
    { kind: "network", at: "service", allows: ["gateway"] },
  ],
  parameters: ["bodyBytes", ...tokenParameters],
};

const mutual = { mode: "mutual", keyType: "rsa-2048" } as const;

type MeshShape = {
  readonly name: string;
  readonly summary: string;
  readonly http: HttpVersion;
  /** Sidecars pass bytes on and do not read them. */
  readonly carries?: "bytes";
  /** Between the sidecars. */
  readonly tls: TopologyLeg["tls"];
  readonly checks: readonly Check[];
};

/** Sidecars on both sides, and every leg in the same version of HTTP. */
function mesh({ name, summary, http, carries, tls, checks }: MeshShape): Topology {
  const sidecar = { kind: "sidecar", ...(carries === undefined ? {} : { carries }) } as const;
  return {
    name,
    summary,
    runtimes: ["native", "k3s"],
    nodes: [
      load,
      { id: "control", kind: "control", role: "gateway" },
      { id: "client-sidecar", ...sidecar, role: "client", account: "client" },
      service,
      { id: "server-sidecar", ...sidecar, role: "server", account: "service" },
    ],
    legs: [
      { from: "load", to: "client-sidecar", http, tls: plain.tls },
      { from: "client-sidecar", to: "server-sidecar", http, tls },
      { from: "server-sidecar", to: "service", http, tls: plain.tls },
    ],
    checks,
    parameters: [
      "bodyBytes",
      // Who passes bytes on has no pool of connections.
      ...(carries === undefined ? (["meshConnections", "requestsPerConnection"] as const) : []),
      ...(tls.mode === "mutual" ? (["certificateSeconds", "sessionResumption"] as const) : []),
    ],
  };
}

/** The peer has proved who it is, and the service is told. */
const proved: readonly Check[] = [
  { kind: "peer", at: "server-sidecar", identity: "client-sidecar" },
  { kind: "header", at: "service", setBy: "server-sidecar" },
];
const rulesOn = (on: "caller" | "request"): Check => ({
  kind: "policy",
  at: "server-sidecar",
  where: "local",
  on,
});

/** Rungs of the ladder: each differs from the one before in what it is named after alone. */
const sidecarTcp = mesh({
  name: "sidecar-tcp",
  summary: "sidecars that pass bytes on: no HTTP, no TLS, no authentication",
  http: "1.1",
  carries: "bytes",
  tls: plain.tls,
  checks: [],
});
const sidecarHttp = mesh({
  name: "sidecar-http",
  summary: "sidecars that speak HTTP/1.1 in plaintext: no TLS, no authentication",
  http: "1.1",
  tls: plain.tls,
  checks: [],
});
const sidecarPolicy = mesh({
  name: "sidecar-policy",
  summary: "sidecars in plaintext, with rules on what is asked for: nobody proves who calls",
  http: "1.1",
  tls: plain.tls,
  checks: [rulesOn("request")],
});
const mtlsOnly = mesh({
  name: "mtls-only",
  summary: "mutual TLS between sidecars, HTTP/1.1, without rules: the whole mesh may call",
  http: "1.1",
  tls: mutual,
  checks: proved,
});

const mtls = (name: string, http: HttpVersion): Topology =>
  mesh({
    name,
    summary: `mutual TLS between sidecars, HTTP/${http} on every leg; callers are certificates`,
    http,
    tls: mutual,
    checks: [...proved, rulesOn("caller")],
  });

/** Every topology by its name, which is also its stack's name. */
export const catalogue: Readonly<Record<string, Topology>> = {
  baseline,
  jwt,
  gateway: gatewayTopology,
  "sidecar-tcp": sidecarTcp,
  "sidecar-http": sidecarHttp,
  "sidecar-policy": sidecarPolicy,
  "mtls-only": mtlsOnly,
  "mtls-h1": mtls("mtls-h1", "1.1"),
  "mtls-h2": mtls("mtls-h2", "2"),
  null: nothing,
};

/**
 * The topology of that name.
 *
 * @throws Failure `usage` naming those there are
 */
export function topologyNamed(name: string): Topology {
  const topology = Object.hasOwn(catalogue, name) ? catalogue[name] : undefined;
  if (topology === undefined) {
    throw new Failure(
      "usage",
      `topology ${name}: not known, known are ${Object.keys(catalogue).join(", ")}`,
      { hint: "name a known one, or add an entry to topologies/catalogue.ts" },
    );
  }
  return topology;
}
