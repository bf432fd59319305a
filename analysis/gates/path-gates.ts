/** Gates of the request path: its connections, its proxies, and whether it still authenticates. */
import type { RunRecord } from "../../contracts/record.ts";
import { numberOf } from "../cell.ts";
import { dueRenewals } from "../rotation.ts";
import { handshakesOf, wireProblems } from "../wire.ts";
import { byClass, checked, everywhere, type Finding, type Gate, invalid } from "./gate.ts";
import { fromCell, measuredAs, missing, warn } from "./gate.ts";
import { closesConnections, isCold, planSeconds } from "./run-facts.ts";

/**
 * Before a steady run the driver's connections stand, over HTTP/2 exactly as many as declared if
 * the driver is ours (the command line has one); before a cold start there is none.
 */
function connectionBounds({ treatment, load, deployment }: RunRecord): [number, number] {
  const exact = deployment.entry.http === "2" && treatment.driver === "vegeta-paced";
  if (treatment.condition === "cold-start") return [0, 0];
  return [exact ? load.connections : 1, load.connections];
}

const connections: Gate = {
  id: "connections",
  shows: "connections of the driver to the entry when measuring begins, against the plan's",
  limits: everywhere("invalid"),
  wanted: (_limit, input) => {
    if (input === undefined) return "those of the plan";
    const [least, most] = connectionBounds(input.record);
    return least === most ? `${most} established` : `${least} to ${most} established`;
  },
  judge: ({ record, connections: found }) => {
    const [least, most] = connectionBounds(record);
    const count = numberOf(found.established);
    if (count === undefined) return fromCell(found.established, String);
    const meanwhile = numberOf(found.opened);
    const more = meanwhile === undefined ? "" : `, ${meanwhile} opened by its host while measured`;
    return checked(count >= least && count <= most, `${count} established${more}`);
  },
};

const onPurpose = "the treatment closes connections after so many requests";

/** What a steady run opens while it is measured, a second. */
const newConnections: Gate = {
  id: "new-connections",
  shows: "connections that the driver's host opens to anywhere while a steady run is measured",
  limits: byClass(warn(5), invalid(1)),
  wanted: (limit) => `< ${limit} a second`,
  compare: "less than",
  judge: ({ record, connections: { opened } }) => {
    if (isCold(record)) return missing("a cold start opens what it needs");
    if (closesConnections(record)) return missing(onPurpose);
    return fromCell(
      opened.kind === "none" ? opened : { ...opened, value: opened.value / planSeconds(record) },
      (rate) => `${rate.toFixed(2)} a second`,
    );
  },
};

const wire: Gate = {
  id: "wire",
  shows: "HTTP version, TLS version, cipher, group and names of every leg, against the topology's",
  limits: everywhere("invalid"),
  wanted: () => "every leg as the topology says",
  judge: ({ wire: legs }) => {
    if (legs.length === 0) return missing("nothing has seen the legs");
    const problems = wireProblems(legs);
    return checked(problems.length === 0, problems.join("; ") || "as it says");
  },
};

const handshakes: Gate = {
  id: "handshakes",
  shows: "TLS handshakes of a leg while a steady run is measured",
  // A stall of a lab's shared CPUs lets a pool of HTTP/1.1 grow once, as it does the driver's.
  limits: byClass(warn(5), invalid(1)),
  wanted: (limit) => `< ${limit} a second on every leg`,
  compare: "less than",
  judge: ({ record, wire: legs }) => {
    if (isCold(record)) return missing("a cold start shakes the hands it needs");
    if (closesConnections(record)) return missing(onPurpose);
    const counts = handshakesOf(legs);
    if (counts.length === 0) return missing("no proxy counts handshakes on this path");
    const most = Math.max(...counts);
    return measuredAs(most / planSeconds(record), `${most} on the leg with most`);
  },
};

const sessions: Gate = {
  id: "sessions",
  shows: "TLS sessions that were taken up again where each handshake is to be a full one",
  limits: everywhere("invalid"),
  wanted: () => "none where each handshake is to be a full one",
  judge: ({ record, wire: legs }) => {
    if (Number(record.deployment.parameters["sessionResumption"] ?? 1) === 1) {
      return missing("this treatment may take up sessions again, or has none");
    }
    const found = legs.flatMap(
      ({ counts: { fullHandshakes: full, resumedHandshakes: resumed } }) =>
        full === undefined || resumed === undefined ? [] : [{ full, resumed }],
    );
    if (found.length === 0) return checked(false, "no proxy on this path counts them");
    const full = found.reduce((sum, leg) => sum + leg.full, 0);
    const resumed = found.reduce((sum, leg) => sum + leg.resumed, 0);
    return checked(resumed === 0, `${resumed} taken up again, ${full} full`);
  },
};

const noProxy = "no proxy on this path was asked for its counters";

/** Without it a rotation that never took place would look as cheap as one that costs nothing. */
const rotations: Gate = {
  id: "rotations",
  shows: "certificates that each proxy was given while measured, against how long they last",
  limits: everywhere("invalid"),
  wanted: (_limit, input) => {
    const due = input === undefined ? undefined : dueRenewals(input.record);
    if (due === undefined) return "as many as fall due, none if none does";
    const { least, most } = due;
    return most === 0 ? "none" : `${least} to ${most} by each proxy`;
  },
  judge: ({ record, proxies }) => {
    const due = dueRenewals(record);
    if (due === undefined) return missing("the topology has no certificates that are renewed");
    const uncounted = proxies.every(({ renewals }) => renewals === undefined);
    if (uncounted && due.least === 0) return missing("no proxy on this path counts them");
    if (uncounted) return checked(false, "no proxy on this path counts them");
    const counts = proxies.map(({ unit, renewals = 0 }) => ({ unit, renewals }));
    const passed = counts.every(({ renewals: n }) => n >= due.least && n <= due.most);
    return checked(passed, counts.map(({ unit, renewals }) => `${unit} ${renewals}`).join(", "));
  },
};

const proxyErrors: Gate = {
  id: "proxy-errors",
  shows:
    "overflows, refused connections, retries, time-outs, 5xx and ejections that proxies counted",
  limits: everywhere("invalid"),
  wanted: () => "none",
  judge: ({ proxies }) => {
    if (proxies.length === 0) return missing(noProxy);
    const found = proxies.flatMap(({ unit, errors }) =>
      Object.entries(errors).map(([name, count]) => `${unit} ${name} ${count}`),
    );
    return checked(found.length === 0, found.join(", ") || "none");
  },
};

const proxyWorkers: Gate = {
  id: "proxy-workers",
  shows: "connections of a proxy's busiest worker over the mean of its workers",
  limits: byClass(warn(1.6), warn(1.25, 1.6)),
  wanted: (limit) => `<= ${limit}`,
  compare: "at most",
  judge: ({ proxies }) => {
    const known = proxies.filter(({ workers }) => workers.some((count) => count > 0));
    if (known.length === 0) return missing(noProxy);
    const shared = known.filter(({ workers }) => workers.length > 1);
    if (shared.length === 0) return missing("every proxy here has one worker");
    const ratios = shared.map(({ unit, workers }) => {
      const mean = workers.reduce((sum, count) => sum + count, 0) / workers.length;
      return { unit, ratio: Math.max(...workers) / mean };
    });
    const worst = ratios.reduce((a, b) => (b.ratio > a.ratio ? b : a));
    return measuredAs(worst.ratio, `${worst.ratio.toFixed(2)} in ${worst.unit}`);
  },
};

const restarts: Gate = {
  id: "restarts",
  shows: "units whose processes are others than at the sample before",
  limits: everywhere("invalid"),
  wanted: () => "no unit changes its process",
  judge: ({ resources }) => {
    const deployed = resources.units.filter(({ kind }) => kind !== "generator");
    const restarted = deployed.filter(({ restarts: count }) => (numberOf(count) ?? 0) > 0);
    const unknown = deployed.find(({ restarts: count }) => count.kind === "none");
    if (restarted.length === 0 && unknown?.restarts.kind === "none") {
      return missing(unknown.restarts.reason);
    }
    return checked(
      restarted.length === 0,
      restarted.map(({ unit }) => unit).join(", ") || "none did",
    );
  },
};

const digest: Gate = {
  id: "digest",
  shows: "what was rendered onto the hosts, against the treatment's first run",
  limits: everywhere("invalid"),
  wanted: (_limit, input) =>
    input === undefined
      ? "as at first"
      : `${input.reference.configurationDigest.slice(0, 12)}, as at first`,
  judge: ({ record, reference }) => {
    const { configurationDigest } = record.deployment;
    const passed = configurationDigest === reference.configurationDigest;
    return checked(passed, configurationDigest.slice(0, 12));
  },
};

const probes: Gate = {
  id: "probes",
  shows: "requests that must pass and requests that must be refused, before and after the load",
  limits: everywhere("invalid"),
  wanted: () => "all pass, before and after",
  judge: ({ record }) => {
    const { before, after } = record.probes;
    const expected = record.deployment.probes.map(({ id }) => id);
    // Before a cold start only those are asked that show the path.
    const asked = record.deployment.probes
      .filter(({ kind }) => kind === "positive" || !isCold(record))
      .map(({ id }) => id);
    const failed = [
      ...failedProbes(asked, before.results).map((id) => `${id} before`),
      ...failedProbes(expected, after.results).map((id) => `${id} after`),
    ];
    const total = `${asked.length} before, ${expected.length} after`;
    return checked(failed.length === 0, failed.join(", ") || total);
  },
};

type ProbeOutcome = RunRecord["probes"]["before"]["results"][number];

/** Probes that failed or were not asked at all. */
function failedProbes(expected: readonly string[], results: readonly ProbeOutcome[]): string[] {
  const passed = new Set(results.filter((r) => r.passed).map(({ id }) => id));
  const failed = results.filter((r) => !r.passed).map(({ id }) => id);
  return [...new Set([...expected.filter((id) => !passed.has(id)), ...failed])];
}

const bodies: Gate = {
  id: "bodies",
  shows:
    "answers on connections of their own after the load: all there, alike, and of the plan's size",
  limits: everywhere("invalid"),
  wanted: (_limit, input) => `one body${input === undefined ? "" : bodySize(input.record)}`,
  judge: ({ record, connect }): Finding => {
    if (connect === undefined) return missing("no series of connections was sent");
    const { bytes, bodies: different, failures, asked } = connect;
    const sizes = Object.keys(bytes);
    const size = record.deployment.parameters["bodyBytes"];
    const passed =
      failures.length === 0 &&
      different === 1 &&
      (size === undefined || (sizes.length === 1 && sizes[0] === String(size)));
    const shown = `${different} of ${sizes.join(" or ") || "no"} bytes in ${asked} answers`;
    return checked(passed, [shown, ...failures.slice(0, 1)].join(", "));
  },
};

function bodySize({ deployment }: RunRecord): string {
  const size = deployment.parameters["bodyBytes"];
  return size === undefined ? "" : ` of ${size} bytes`;
}

export const pathGates: readonly Gate[] = [
  connections,
  newConnections,
  wire,
  handshakes,
  sessions,
  rotations,
  proxyErrors,
  restarts,
  digest,
  proxyWorkers,
  probes,
  bodies,
];
