/**
 * Connections and handshakes of a run as its proxies counted them, over time. Each is the greatest
 * count of any one listener or cluster: the two ends of a leg count the same connections, so a sum
 * would count them twice.
 */
import type { Point, Sample } from "./samples.ts";

/** Counts at a moment. */
export type ConnectionCounts = {
  /** Connections that were ever opened on the leg that has most. */
  readonly opened: number;
  /** Those that are open now. */
  readonly active: number;
  /** TLS handshakes, resumed ones among them. */
  readonly handshakes: number;
  readonly resumed: number;
};

export type CountName = keyof ConnectionCounts;

/** Text of a proxy's `/stats`, one `name: value` a line, to the counts it shows. */
export function countsOf(text: string): ConnectionCounts {
  const greatest = { opened: 0, active: 0, handshakes: 0, resumed: 0 };
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(": ");
    const value = Number(line.slice(at + 2));
    const count = at === -1 || !Number.isFinite(value) ? undefined : countNamed(line.slice(0, at));
    if (count !== undefined) greatest[count] = Math.max(greatest[count], value);
  }
  return greatest;
}

/** Those of the data path: its own administration and control plane are not load. */
function countNamed(name: string): CountName | undefined {
  if (/^listener\.admin\.|\.(worker_\d+|main_thread)\.|^cluster\.(xds|sds)-grpc;?\./.test(name)) {
    return undefined;
  }
  if (!/^(listener|cluster)\./.test(name)) return undefined;
  if (/\.(down|up)stream_cx_total$/.test(name)) return "opened";
  if (/\.(down|up)stream_cx_active$/.test(name)) return "active";
  if (name.endsWith(".ssl.handshake")) return "handshakes";
  return name.endsWith(".ssl.session_reused") ? "resumed" : undefined;
}

/** Counts over time for each proxy that was scraped, by the name of its unit. */
export type ProxyTimelines = ReadonlyMap<string, readonly TimedCounts[]>;
export type TimedCounts = ConnectionCounts & { readonly atNs: number };

const scrapePrefix = "scrape ";

/** Cuts the scrapes out of the samples of all hosts; those that failed are left out. */
export function proxyTimelines(samples: Iterable<readonly Sample[]>): ProxyTimelines {
  const timelines = new Map<string, TimedCounts[]>();
  for (const host of samples) {
    for (const { source, atNs, content } of host) {
      if (!source.startsWith(scrapePrefix) || source.endsWith(" error")) continue;
      const unit = source.slice(scrapePrefix.length);
      const own = timelines.get(unit) ?? [];
      own.push({ atNs, ...countsOf(content) });
      timelines.set(unit, own);
    }
  }
  return timelines;
}

/**
 * Count of the proxy that has most at a moment, from the last reading of each at or before it;
 * undefined if nobody was asked by then.
 */
export function countAt(
  timelines: ProxyTimelines,
  name: CountName,
  atNs: number,
): number | undefined {
  const counts = [...timelines.values()].flatMap((readings) => {
    const last = readings.findLast((reading) => reading.atNs <= atNs);
    return last === undefined ? [] : [last[name]];
  });
  return counts.length === 0 ? undefined : Math.max(...counts);
}

/** The kernel's own count of connections that a host opened, from `/proc/net/snmp`. */
export function activeOpens(content: string): number | undefined {
  const [names, values] = content
    .split("\n")
    .filter((line) => line.startsWith("Tcp: "))
    .map((line) => line.split(/\s+/));
  const value = values?.[names?.indexOf("ActiveOpens") ?? -1];
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined;
}

/** A counter between its readings, as a straight line; undefined outside of them. */
export function valueAt(points: readonly Point[], atNs: number): number | undefined {
  const next = points.findIndex((point) => point.atNs >= atNs);
  const [before, after] = [points[next - 1], points[next]];
  if (after === undefined) return undefined;
  if (after.atNs === atNs) return after.value;
  if (before === undefined) return undefined;
  const share = (atNs - before.atNs) / (after.atNs - before.atNs);
  return before.value + share * (after.value - before.value);
}
