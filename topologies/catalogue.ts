/** All topologies, as data. Adding one is one entry. */
import { Failure } from "../contracts/failure.ts";
import type { HttpVersion, Topology } from "./model.ts";

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

/** Sidecars on both sides, and every leg in the same version of HTTP. */
const mesh = (name: string, http: HttpVersion): Topology => ({
  name,
  summary: `mutual TLS between sidecars, HTTP/${http} on every leg; the caller is its certificate`,
  runtimes: ["native", "k3s"],
  nodes: [
    load,
    { id: "control", kind: "control", role: "gateway" },
    { id: "client-sidecar", kind: "sidecar", role: "client", account: "client" },
    service,
    { id: "server-sidecar", kind: "sidecar", role: "server", account: "service" },
  ],
  legs: [
    { from: "load", to: "client-sidecar", http, tls: plain.tls },
    { from: "client-sidecar", to: "server-sidecar", http, tls: mutual },
    { from: "server-sidecar", to: "service", http, tls: plain.tls },
  ],
  checks: [
    { kind: "peer", at: "server-sidecar", identity: "client-sidecar" },
    { kind: "policy", at: "server-sidecar", where: "local" },
    { kind: "header", at: "service", setBy: "server-sidecar" },
  ],
  parameters: ["bodyBytes", "meshConnections"],
});

/** Every topology by its name, which is also its stack's name. */
export const catalogue: Readonly<Record<string, Topology>> = {
  baseline,
  jwt,
  gateway: gatewayTopology,
  "mtls-h1": mesh("mtls-h1", "1.1"),
  "mtls-h2": mesh("mtls-h2", "2"),
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
