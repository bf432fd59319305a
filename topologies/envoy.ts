/**
 * Envoy's bootstrap for a gateway that verifies tokens. All names used are understood alike by
 * Envoy 1.28 and 1.36; where the two would behave differently, a comment says what is pinned.
 */
import { audience, identityHeaders, issuerName, publicPath } from "./identity.ts";
import type { HttpVersion } from "./model.ts";

export type SocketAddress = { readonly address: string; readonly port: number };

export type GatewaySpec = {
  readonly listen: SocketAddress;
  readonly admin: SocketAddress;
  readonly downstreamHttp: HttpVersion;
  readonly upstream: SocketAddress;
  readonly upstreamHttp: HttpVersion;
  /** Where the issuer serves its key set, at /jwks.json. */
  readonly issuer: SocketAddress;
};

export const jwksPath = "/jwks.json";
const jwksCacheSeconds = 300;
const jwksTimeoutSeconds = 5;

/** High enough never to be met: a circuit breaker must not be what is measured. */
const unlimited = 1_000_000;

const api = "type.googleapis.com/envoy.extensions";

/** The whole bootstrap as JSON text. */
export function renderGateway(spec: GatewaySpec): string {
  const bootstrap = {
    admin: { address: socketAddress(spec.admin) },
    static_resources: {
      listeners: [
        {
          name: "ingress",
          address: socketAddress(spec.listen),
          filter_chains: [{ filters: [connectionManager(spec)] }],
        },
      ],
      clusters: [
        cluster("service", spec.upstream, spec.upstreamHttp),
        cluster("issuer", spec.issuer, "1.1"),
      ],
    },
  };
  return `${JSON.stringify(bootstrap, null, 1)}\n`;
}

function socketAddress({ address, port }: SocketAddress): object {
  return { socket_address: { address, port_value: port } };
}

function connectionManager(spec: GatewaySpec): object {
  const upstream = { cluster: "service", timeout: "30s" };
  return filter("network.http_connection_manager", "HttpConnectionManager", {
    stat_prefix: "ingress",
    // Named, not detected: the protocol of a leg is part of what is measured.
    codec_type: spec.downstreamHttp === "2" ? "HTTP2" : "HTTP1",
    generate_request_id: false,
    use_remote_address: true,
    skip_xff_append: true,
    // A path must mean the same to the token rules, the routes and the service.
    normalize_path: true,
    merge_slashes: true,
    path_with_escaped_slashes_action: "REJECT_REQUEST",
    http_filters: [stripIdentity(), verifyToken(spec.issuer), router()],
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            { match: { path: publicPath }, route: upstream },
            { match: { prefix: "/" }, route: upstream },
          ],
        },
      ],
    },
  });
}

/** First in the chain, so that no route, with a token or without, lets a forged header through. */
function stripIdentity(): object {
  return filter("http.header_mutation", "HeaderMutation", {
    mutations: {
      request_mutations: identityHeaders.map(({ header }) => ({ remove: header })),
    },
  });
}

function verifyToken(issuer: SocketAddress): object {
  const provider = {
    issuer: issuerName,
    audiences: [audience],
    // The token ends here: behind the gateway the identity is in the headers.
    forward: false,
    claim_to_headers: identityHeaders.map(({ claim, header }) => ({
      claim_name: claim,
      header_name: header,
    })),
    remote_jwks: {
      http_uri: {
        uri: `http://${issuer.address}:${issuer.port}${jwksPath}`,
        cluster: "issuer",
        timeout: `${jwksTimeoutSeconds}s`,
      },
      cache_duration: `${jwksCacheSeconds}s`,
      // The listener opens once the keys are there, so that no request waits for them.
      async_fetch: { fast_listener: false },
    },
  };
  return filter("http.jwt_authn", "JwtAuthentication", {
    providers: { issuer: provider },
    rules: [
      { match: { path: publicPath } },
      { match: { prefix: "/" }, requires: { provider_name: "issuer" } },
    ],
  });
}

function router(): object {
  return filter("http.router", "Router", { dynamic_stats: false, suppress_envoy_headers: true });
}

function cluster(name: string, endpoint: SocketAddress, http: HttpVersion): object {
  // 1.28 speaks HTTP/2 by nghttp2, 1.36 by oghttp2: the same on the wire, not the same code.
  const protocol = http === "2" ? { http2_protocol_options: {} } : { http_protocol_options: {} };
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    circuit_breakers: { thresholds: ["DEFAULT", "HIGH"].map(threshold) },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${api}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: protocol,
      },
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(endpoint) } }] }],
    },
  };
}

function threshold(priority: string): object {
  return {
    priority,
    max_connections: unlimited,
    max_pending_requests: unlimited,
    max_requests: unlimited,
    max_retries: unlimited,
    track_remaining: true,
  };
}

/** An Envoy filter: `place` is both in its name and in its type. */
function filter(place: string, type: string, config: object): object {
  return {
    name: `envoy.filters.${place}`,
    typed_config: { "@type": `${api}.filters.${place}.v3.${type}`, ...config },
  };
}
