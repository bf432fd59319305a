/**
 * Connections and handshakes of a run as its proxies counted them, over time. Each is that of the
 * one listener or cluster that has most: the two ends of a leg count the same connections, so a
 * sum would count them twice.
 */
import type { Point, Sample } from "./samples.ts";

/**
 * `opened`: connections ever opened; `active`: open now; `handshakes`: TLS handshakes, those that
 * resumed a session (`resumed`) among them.
 */
export const countNames = ["opened", "active", "handshakes", "resumed"] as const;
export type CountName = (typeof countNames)[number];

/** Counts of each listener and cluster by the name of its counter. */
export type Counters = Readonly<Record<CountName, ReadonlyMap<string, number>>>;

/** Text of a proxy's `/stats`, one `name: value` a line, to the counters of the data path. */
export function countersOf(text: string): Counters {
  const counters = {
    opened: new Map<string, number>(),
    active: new Map<string, number>(),
    handshakes: new Map<string, number>(),
    resumed: new Map<string, number>(),
  };
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(": ");
    const [name, value] = [line.slice(0, at), Number(line.slice(at + 2))];
    const count = at === -1 || !Number.isFinite(value) ? undefined : countNamed(name);
    if (count !== undefined) counters[count].set(name, value);
  }
  return counters;
}

/** Administration and control plane of a proxy are not load; its threads are counted in sum. */
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

export type TimedCounters = Counters & { readonly atNs: number };

/** Readings over time of each proxy that was scraped, by the name of its unit. */
export type ProxyTimelines = ReadonlyMap<string, readonly TimedCounters[]>;

const scrapePrefix = "scrape ";

/** Cuts the scrapes out of the samples of all hosts; those that failed are left out. */
export function proxyTimelines(samples: Iterable<readonly Sample[]>): ProxyTimelines {
  const timelines = new Map<string, TimedCounters[]>();
  for (const host of samples) {
    for (const { source, atNs, content } of host) {
      if (!source.startsWith(scrapePrefix) || source.endsWith(" error")) continue;
      const unit = source.slice(scrapePrefix.length);
      const own = timelines.get(unit) ?? [];
      own.push({ atNs, ...countersOf(content) });
      timelines.set(unit, own);
    }
  }
  return timelines;
}

/**
 * By how much the counter that grew most did so between two moments, each told by the last reading
 * at or before it. Without `fromNs`: what the greatest had come to.
 *
 * @returns undefined if no proxy was asked by then
 */
export function greatestGrowth(
  timelines: ProxyTimelines,
  name: CountName,
  fromNs: number | undefined,
  toNs: number,
): number | undefined {
  const growths = [...timelines.values()].flatMap((readings) => {
    const last = (ns: number) => readings.findLast(({ atNs }) => atNs <= ns);
    const [before, after] = [fromNs === undefined ? undefined : last(fromNs), last(toNs)];
    if (after === undefined || (fromNs !== undefined && before === undefined)) return [];
    // A counter that was never counted up is not printed; a proxy may have none at all.
    const grown = [...after[name]].map(([counter, n]) => n - (before?.[name].get(counter) ?? 0));
    return [grown.reduce((most, n) => Math.max(most, n), 0)];
  });
  return growths.length === 0 ? undefined : Math.max(...growths);
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
