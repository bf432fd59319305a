/**
 * What proxies counted: what must not happen, how their workers share the connections, and how
 * often their certificates were renewed. Pure.
 */
import { readProxyCounters, type WireTexts } from "./wire.ts";

export type ProxyFacts = {
  readonly unit: string;
  /** Counters of failures that grew while the load was measured, with their growth. */
  readonly errors: Readonly<Record<string, number>>;
  /** Connections by worker when measuring began, of the listener that has most; empty: unknown. */
  readonly workers: readonly number[];
  /** Of all TLS legs since the proxy started; absent where it encrypts none. */
  readonly tls?: { readonly handshakes: number; readonly errors: number };
  /** Growth of cache counters, summed over what the proxy has of each; absent: it has none. */
  readonly cache: { readonly hits?: number; readonly misses?: number };
  /** Certificates that it was given anew while measured; absent: it is given none. */
  readonly renewals?: number;
};

/**
 * What a proxy refuses, retries or gives up. That a request waits because the declared number of
 * connections is in use (`upstream_cx_overflow`) is no failure: the plan bounds them.
 */
const failure = new RegExp(
  "^cluster\\..*\\.(" +
    [
      "upstream_cx_connect_fail",
      "upstream_cx_connect_timeout",
      "upstream_rq_pending_overflow",
      "upstream_rq_retry",
      "upstream_rq_retry_overflow",
      "upstream_rq_timeout",
      "upstream_rq_5xx",
      "outlier_detection\\.ejections_enforced_total",
    ].join("|") +
    ")$|^listener\\..*\\.downstream_cx_(overflow|overload_reject)$",
);
/** What a proxy asks of its control plane is not load. */
const control = /^cluster\.(xds|sds)-grpc;?\./;

/** Facts of every proxy that was asked; a service that was asked has none. */
export function proxyFactsOf(units: readonly string[], texts: WireTexts): readonly ProxyFacts[] {
  return units.flatMap((unit) => {
    const text = texts.get(unit);
    if (text === undefined) return [];
    const [before, after] = [readProxyCounters(text.before), readProxyCounters(text.after)];
    if (after.size === 0) return [];
    const growth = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const names = [...after.keys()];
    const grown = names.filter(
      (name) => failure.test(name) && !control.test(name) && growth(name) > 0,
    );
    return [
      {
        unit,
        errors: Object.fromEntries(grown.map((name) => [name, growth(name)])),
        workers: workersOf(before),
        ...tlsOf(after),
        cache: cacheOf(names, growth),
        ...(before.size === 0 ? {} : renewalsOf(after, growth)),
      },
    ];
  });
}

function tlsOf(counters: ReadonlyMap<string, number>): Pick<ProxyFacts, "tls"> {
  const sum = (pattern: RegExp): number =>
    [...counters].reduce((all, [name, n]) => all + (pattern.test(name) ? n : 0), 0);
  const ofLegs = (name: string) =>
    new RegExp(`^(?:listener|cluster)\\.(?!admin|xds|sds).*ssl\\.${name}$`);
  const handshakes = sum(ofLegs("handshake"));
  const errors = sum(ofLegs("(?:connection_error|fail_verify_\\w+)"));
  return handshakes + errors === 0 ? {} : { tls: { handshakes, errors } };
}

function cacheOf(names: readonly string[], growth: (name: string) => number): ProxyFacts["cache"] {
  const total = (pattern: RegExp): number | undefined => {
    const found = names.filter((name) => pattern.test(name));
    return found.length === 0 ? undefined : found.reduce((sum, name) => sum + growth(name), 0);
  };
  const hits = total(/\.jwt_cache_hit$/);
  const misses = total(/\.jwt_cache_miss$/);
  return { ...(hits !== undefined && { hits }), ...(misses !== undefined && { misses }) };
}

/** How often a control plane had Envoy make a TLS context anew. */
const contextUpdates =
  /^(cluster|listener)\..*\.(client|server)_ssl_socket_factory\.ssl_context_update_by_sds$/;

/**
 * A new certificate renews every context. A listener counts those of all its filter chains together
 * and a cluster has one, so the least growth is the number of certificates; a proxy in which only
 * listeners count tells nothing.
 */
function renewalsOf(
  counters: ReadonlyMap<string, number>,
  growth: (name: string) => number,
): Pick<ProxyFacts, "renewals"> {
  const names = [...counters].flatMap(([name, count]) =>
    count > 0 && contextUpdates.test(name) && !control.test(name) ? [name] : [],
  );
  if (!names.some((name) => name.startsWith("cluster."))) return {};
  return { renewals: Math.min(...names.map(growth)) };
}

const workerCounter = /^listener\.(?!admin\.)(.+)\.worker_\d+\.downstream_cx_active$/;

function workersOf(counters: ReadonlyMap<string, number>): readonly number[] {
  const listeners = new Map<string, number[]>();
  for (const [name, value] of counters) {
    const listener = workerCounter.exec(name)?.[1];
    if (listener === undefined) continue;
    listeners.set(listener, [...(listeners.get(listener) ?? []), value]);
  }
  const total = (workers: readonly number[]): number => workers.reduce((sum, n) => sum + n, 0);
  return [...listeners.values()].sort((a, b) => total(b) - total(a))[0] ?? [];
}
