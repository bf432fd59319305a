/**
 * What was really seen on the legs of a run, from what its proxies, its service and its probes
 * said; compared with what the topology expects. Pure.
 */
import { z } from "zod";
import type { Leg, WireSource } from "../contracts/deployment.ts";
import type { RunRecord } from "../contracts/record.ts";
import { parseSamples } from "./samples.ts";

/** What the kernel and the proxies printed, by unit, before and after the measured load. */
export type WireTexts = ReadonlyMap<string, { readonly before: string; readonly after: string }>;

/** Counts of the connecting proxy; absent where there is none or where it does not encrypt. */
export type LegCounts = {
  /** Open when the measured load began. */
  readonly open?: number;
  /** Opened while it lasted. */
  readonly opened?: number;
  readonly fullHandshakes?: number;
  readonly resumedHandshakes?: number;
  /** Sent in the same time as `opened`, by the same counts: somewhat longer than the load. */
  readonly requests?: number;
};

/** TLS handshakes of each leg on which they were counted. */
export function handshakesOf(legs: readonly LegFacts[]): readonly number[] {
  return legs.flatMap(({ counts: { fullHandshakes, resumedHandshakes = 0 } }) =>
    fullHandshakes === undefined ? [] : [fullHandshakes + resumedHandshakes],
  );
}

export type LegFacts = {
  readonly from: string;
  readonly to: string;
  readonly expected: Readonly<Record<string, string>>;
  /** By the same names; what was not seen is missing. */
  readonly observed: Readonly<Record<string, string>>;
  readonly counts: LegCounts;
};

/** Facts of every leg that something has seen, in the order of the request path. */
export function wireFactsOf(
  record: Pick<RunRecord, "deployment" | "probes">,
  texts: WireTexts,
): LegFacts[] {
  const readings = new Map([...texts].map(([unit, text]) => [unit, readUnit(text)]));
  return record.deployment.legs.flatMap((leg) => {
    const sources = leg.seenBy ?? [];
    if (sources.length === 0) return [];
    const { from, to } = leg;
    const seen = sources.map((source) => factsBy(source, readings, record.probes));
    return [
      {
        from,
        to,
        expected: expectedOn(leg, sources),
        observed: observedOn(leg, merge(seen)),
        counts: countsOf(leg, readings),
      },
    ];
  });
}

/** Of a leg on which nobody reads HTTP, nobody can say which version of it that was. */
function expectedOn({ http, wire }: Leg, sources: readonly WireSource[]): Record<string, string> {
  const isUnread = wire["carries"] === "bytes" && sources.every(({ at }) => at === "from");
  return isUnread ? wire : { http, ...wire };
}

/** Proxies have certificates whether a leg uses them or not; nobody is named on a plain one. */
function observedOn(leg: Leg, facts: Record<string, string>): Record<string, string> {
  if (leg.tls !== "none") return facts;
  return Object.fromEntries(
    Object.entries(facts).filter(([name]) => name !== "caller" && name !== "peer"),
  );
}

/** Names every fact that is not as expected; none of a leg that is as it should be. */
export function wireProblems(facts: readonly LegFacts[]): string[] {
  return facts.flatMap(({ from, to, expected, observed }) =>
    Object.entries(expected).flatMap(([name, wanted]) => {
      const found = observed[name] ?? "not seen";
      return found === wanted ? [] : [`${from} to ${to}: ${name} ${found} instead of ${wanted}`];
    }),
  );
}

/**
 * For people: what was seen on each leg of each treatment, a line for everything that differed
 * between its runs; counts are the least and the most of any run.
 */
export function wireLines(
  runs: readonly { readonly label: string; readonly wire?: readonly LegFacts[] }[],
): string[] {
  const seen = new Map<string, LegCounts[]>();
  for (const { label, wire = [] } of runs) {
    for (const { from, to, observed, counts } of wire) {
      const facts = Object.entries(observed).sort(([a], [b]) => (a < b ? -1 : 1));
      const text = facts.map(([name, value]) => `${name} ${value}`).join(", ") || "nothing seen";
      const line = `${label}: ${from} to ${to}: ${text}`;
      seen.set(line, [...(seen.get(line) ?? []), counts]);
    }
  }
  return [...seen].map(([line, counts]) => [line, ...rangesOf(counts)].join("; "));
}

const countNames = {
  open: "connections open",
  opened: "opened under load",
  fullHandshakes: "full handshakes",
  resumedHandshakes: "resumed",
} as const satisfies Partial<Record<keyof LegCounts, string>>;

function rangesOf(counts: readonly LegCounts[]): string[] {
  const ranges = (Object.keys(countNames) as (keyof typeof countNames)[]).flatMap((key) => {
    const values = counts.flatMap((count) => count[key] ?? []);
    if (values.length === 0) return [];
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return [`${countNames[key]} ${least === most ? least : `${least} to ${most}`}`];
  });
  return ranges.length === 0 ? [] : [ranges.join(", ")];
}

type Counters = ReadonlyMap<string, number>;

type UnitReading = {
  readonly before: Counters;
  readonly after: Counters;
  /** SPIFFE IDs of the unit's own certificates. */
  readonly identities: readonly string[];
  /** Requests that a service has answered in each version of HTTP. */
  readonly served: {
    readonly before: Record<string, number>;
    readonly after: Record<string, number>;
  };
};

function readUnit(text: { readonly before: string; readonly after: string }): UnitReading {
  const [before, after] = [blocksOf(text.before), blocksOf(text.after)];
  return {
    before: readCounters(before.get("stats") ?? ""),
    after: readCounters(after.get("stats") ?? ""),
    identities: readIdentities(after.get("certs")),
    served: { before: readServed(before.get("service")), after: readServed(after.get("service")) },
  };
}

/** Blocks of a proxy's file by the name of what was asked. */
function blocksOf(text: string): Map<string, string> {
  const samples = parseSamples(text, "proxies", "0");
  return new Map(
    samples.flatMap(({ source, content }) =>
      source.startsWith("scrape ") ? [[source.slice("scrape ".length), content] as const] : [],
    ),
  );
}

/** Counters in a proxy's file of one moment; none if it was not asked for them. */
export function readProxyCounters(text: string): Counters {
  return readCounters(blocksOf(text).get("stats") ?? "");
}

function readCounters(text: string): Counters {
  return new Map(
    text.split("\n").flatMap((line) => {
      const [, name, value] = /^(\S+): (\d+)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(value)] as const];
    }),
  );
}

const certificatesSchema = z.object({
  certificates: z.array(
    z.object({
      cert_chain: z.array(
        z.object({ subject_alt_names: z.array(z.object({ uri: z.string().optional() })) }),
      ),
    }),
  ),
});

function readIdentities(text: string | undefined): string[] {
  const parsed = certificatesSchema.safeParse(parseJson(text));
  if (!parsed.success) return [];
  const names = parsed.data.certificates.flatMap(({ cert_chain: chain }) =>
    chain.flatMap((leaf) => leaf.subject_alt_names.flatMap(({ uri }) => uri ?? [])),
  );
  return [...new Set(names)].sort();
}

const servedSchema = z.object({ protocols: z.record(z.string(), z.number()) });

function readServed(text: string | undefined): Record<string, number> {
  const parsed = servedSchema.safeParse(parseJson(text));
  return parsed.success ? parsed.data.protocols : {};
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

type Facts = Readonly<Record<string, readonly string[]>>;

function factsBy(
  source: WireSource,
  readings: ReadonlyMap<string, UnitReading>,
  probes: RunRecord["probes"],
): Facts {
  if (source.at === "probe") return factsByProbe(source.id, probes);
  const reading = readings.get(source.unit);
  if (reading === undefined) return {};
  switch (source.at) {
    case "from":
      return factsByCluster(reading, source.prefix);
    case "to":
      return factsByManager(reading, source.prefix);
    case "service":
      return { http: grownIn(reading.served) };
  }
}

/** The proxy's connections since it started: all of them carry load, or a probe that is alike. */
function factsByCluster({ after, identities }: UnitReading, prefix: string): Facts {
  const isUsed = (name: string) => (after.get(`${prefix}.${name}`) ?? 0) > 0;
  const http = versions.filter(({ digit }) => isUsed(`upstream_cx_http${digit}_total`));
  const named = (kind: string) => namesUnder(after, `${prefix}.ssl.${kind}.`);
  return {
    http: http.map(({ name }) => name),
    // A proxy that speaks HTTP counts its connections by version, too.
    carries: http.length === 0 && isUsed("upstream_cx_total") ? ["bytes"] : [],
    version: named("versions"),
    cipher: named("ciphers"),
    group: named("curves"),
    caller: identities,
  };
}

/** Only requests of the measured load: probes and strangers come before and after. */
function factsByManager({ before, after, identities }: UnitReading, prefix: string): Facts {
  const grown = versions.filter(({ digit }) => {
    const name = `${prefix}.downstream_rq_http${digit}_total`;
    return (after.get(name) ?? 0) > (before.get(name) ?? 0);
  });
  return { http: grown.map(({ name }) => name), peer: identities };
}

const versions = [
  { name: "1.1", digit: 1, protocol: "HTTP/1.1" },
  { name: "2", digit: 2, protocol: "HTTP/2" },
] as const;

function grownIn({ before, after }: UnitReading["served"]): string[] {
  return versions
    .filter(({ protocol }) => (after[protocol] ?? 0) > (before[protocol] ?? 0))
    .map(({ name }) => name);
}

function namesUnder(counters: Counters, prefix: string): string[] {
  return [...counters]
    .filter(([name, value]) => name.startsWith(prefix) && value > 0)
    .map(([name]) => name.slice(prefix.length))
    .sort();
}

function factsByProbe(id: string, { before, after }: RunRecord["probes"]): Facts {
  const handshakes = [...before.results, ...after.results].flatMap((result) =>
    result.id === id ? (result.observed.tls ?? []) : [],
  );
  const all = (read: (tls: (typeof handshakes)[number]) => string) => [
    ...new Set(handshakes.map(read)),
  ];
  return {
    version: all(({ version }) => version),
    cipher: all(({ cipher }) => cipher),
    group: all(({ group }) => group),
    alpn: all(({ alpn }) => (alpn === "" ? "none" : alpn)),
    keyType: all(({ keyType }) => keyType),
    peer: all(({ peer }) => peer),
  };
}

/** What all sources say; where they differ, everything that any of them says. */
function merge(seen: readonly Facts[]): Record<string, string> {
  const merged = new Map<string, Set<string>>();
  for (const [name, values] of seen.flatMap((facts) => Object.entries(facts))) {
    const known = merged.get(name) ?? new Set();
    values.forEach((value) => known.add(value));
    merged.set(name, known);
  }
  return Object.fromEntries(
    [...merged].flatMap(([name, values]) =>
      values.size === 0 ? [] : [[name, [...values].sort().join(" and ")] as const],
    ),
  );
}

function countsOf(leg: Leg, readings: ReadonlyMap<string, UnitReading>): LegCounts {
  const source = leg.seenBy?.find(({ at }) => at === "from");
  if (source?.at !== "from") return {};
  const reading = readings.get(source.unit);
  if (reading === undefined) return {};
  const grown = (name: string) => {
    const [before, after] = [reading.before, reading.after].map((c) =>
      c.get(`${source.prefix}.${name}`),
    );
    return after === undefined ? undefined : after - (before ?? 0);
  };
  const open = reading.before.get(`${source.prefix}.upstream_cx_active`);
  const opened = grown("upstream_cx_total");
  const handshakes = grown("ssl.handshake");
  const resumed = grown("ssl.session_reused");
  const requests = grown("upstream_rq_total");
  return {
    ...(open === undefined ? {} : { open }),
    ...(opened === undefined ? {} : { opened }),
    ...(handshakes === undefined ? {} : { fullHandshakes: handshakes - (resumed ?? 0) }),
    ...(resumed === undefined ? {} : { resumedHandshakes: resumed }),
    ...(requests === undefined ? {} : { requests }),
  };
}
