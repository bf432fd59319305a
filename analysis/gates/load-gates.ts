/** Gates of the load: sent as planned, on time, evenly, with free workers, counted in full. */
import { numberOf } from "../cell.ts";
import type { Gate } from "./gate.ts";
import { byClass, checked, everywhere, fromCell, invalid, measuredAs } from "./gate.ts";
import { milliseconds, missing, percent, warn } from "./gate.ts";

function share(part: number, whole: number) {
  const found = whole === 0 ? 0 : part / whole;
  return measuredAs(found, `${part} of ${whole} (${percent(found)})`);
}

const sent: Gate = {
  id: "sent",
  shows: "requests sent of those planned",
  limits: everywhere("invalid", 0.995),
  wanted: (limit) => `>= ${percent(limit)}`,
  compare: "at least",
  judge: ({ latency }) => share(latency.sent, latency.planned),
};

const windows: Gate = {
  id: "windows",
  shows: "the same in the worst second",
  limits: everywhere("warn", 0.98),
  wanted: (limit) => `>= ${percent(limit)} in every second`,
  compare: "at least",
  judge: ({ shape }) => {
    // The command line may leave out its last request: a second of a few says nothing.
    const shares = shape.seconds.flatMap((second, index) =>
      second.planned < secondRequestsMin
        ? []
        : [{ index, share: second.sent / second.planned, ...second }],
    );
    const worst = shares.reduce<(typeof shares)[number] | undefined>(
      (least, one) => (least === undefined || one.share < least.share ? one : least),
      undefined,
    );
    if (worst === undefined) return missing("no second with enough requests");
    const { planned, index } = worst;
    return measuredAs(worst.share, `${worst.sent} of ${planned} in second ${index}`);
  },
};

/** One missing request of so many is 2 %. */
const secondRequestsMin = 50;

const goodput: Gate = {
  id: "goodput",
  shows: "requests answered with 2xx of those sent",
  limits: everywhere("invalid", 0.999),
  wanted: (limit) => `>= ${percent(limit)}`,
  compare: "at least",
  judge: ({ latency }) => share(latency.ok, latency.sent),
};

/** Limits on the lag p99 by driver: the command line waits on a timer of a millisecond. */
export const lagLimitsNs = {
  lab: { "vegeta-paced": 250_000, vegeta: 1_200_000 },
  metal: { "vegeta-paced": 100_000, vegeta: 1_200_000 },
} as const;
/** On metal a lag may also be this share of the response p99. */
const lagShareOfResponse = 0.1;

const lag: Gate = {
  id: "lag",
  shows:
    "how late the driver sent, p99; driver vegeta may be 1.2 ms late, on metal any driver a " +
    "tenth of the response p99",
  limits: byClass(warn(250_000), invalid(100_000)),
  wanted: (limit, input) =>
    `p99 <= ${milliseconds(limit)} with ${input?.record.loadPlan.driver ?? "vegeta-paced"}`,
  compare: "at most",
  limitOf: (_limit, { record, latency }) => {
    const { testbedClass } = record.deployment;
    const declaredNs = lagLimitsNs[testbedClass][record.loadPlan.driver];
    const responseNs = numberOf(latency.response.quantiles.p99) ?? 0;
    return Math.max(declaredNs, testbedClass === "metal" ? lagShareOfResponse * responseNs : 0);
  },
  judge: ({ latency }) => fromCell(latency.lag.quantiles.p99, (ns) => `p99 ${milliseconds(ns)}`),
};

/** Bounds of the variation of gaps by arrival process. */
export const gapVariation = { uniform: [0, 1.2], poisson: [0.8, 1.3] } as const;

const arrivals: Gate = {
  id: "arrivals",
  shows: "variation of the gaps between sends: 0 to 1.2 uniform, 0.8 to 1.3 poisson",
  limits: everywhere("warn"),
  wanted: (_limit, input) => {
    const bounds = gapVariation[input?.record.loadPlan.arrival ?? "uniform"];
    return input === undefined ? "as the arrival process has it" : `${bounds[0]} to ${bounds[1]}`;
  },
  judge: ({ record, shape }) => {
    const found = numberOf(shape.gapVariation);
    if (found === undefined) return missing("too few requests");
    const [low, high] = gapVariation[record.loadPlan.arrival];
    return checked(found >= low && found <= high, found.toFixed(2));
  },
};

const workers: Gate = {
  id: "workers",
  shows: "requests in flight, against the workers that there may be: at the cap the driver waits",
  limits: everywhere("invalid"),
  wanted: (_limit, input) => `< ${input?.record.load.maxWorkers ?? "maxWorkers"} in flight`,
  compare: "less than",
  limitOf: (_limit, { record }) => record.load.maxWorkers,
  judge: ({ shape }) => measuredAs(shape.inFlightMost, `${shape.inFlightMost} in flight at most`),
};

const clock: Gate = {
  id: "clock",
  shows:
    "least lag: a request that left long before it was due had another clock, and so had all that" +
    " are late alike from some second on",
  limits: everywhere("invalid", -1_000_000),
  wanted: (limit) => `no request more than ${milliseconds(-limit)} early`,
  compare: "at least",
  judge: ({ latency: { lagMinNs, clockStep } }) =>
    clockStep !== undefined && clockStep.ns > 0
      ? measuredAs(
          -clockStep.ns,
          `a step forward of ${milliseconds(clockStep.ns)} in second ${clockStep.second}`,
        )
      : measuredAs(lagMinNs, `${milliseconds(lagMinNs)} at least`),
};

const rows: Gate = {
  id: "rows",
  shows: "one row for each sequence number that was sent",
  limits: everywhere("invalid"),
  wanted: (_limit, input) =>
    input === undefined ? "one row each" : `${input.latency.seqMax + 1} rows, one each`,
  judge: ({ latency }) => checked(latency.sent === latency.seqMax + 1, `${latency.sent} rows`),
};

const overflow: Gate = {
  id: "overflow",
  shows: "responses beyond what the histogram holds",
  limits: everywhere("invalid"),
  wanted: String,
  compare: "at most",
  judge: ({ latency }) => measuredAs(latency.overflow, String(latency.overflow)),
};

const intervals: Gate = {
  id: "intervals",
  shows: "requests in the histograms of all seconds, against the rows",
  limits: everywhere("invalid"),
  wanted: (_limit, input) =>
    input === undefined ? "as many as rows" : `${input.latency.sent} in each way of counting`,
  judge: ({ latency, shape }) => {
    const { lag, response, overflow: lost, sent: all, ok } = latency;
    const bySecond = shape.seconds.reduce((total, second) => total + second.sent, 0);
    const passed =
      lag.count + lost === all &&
      bySecond === all &&
      response.count <= ok &&
      response.count + lost >= ok;
    return checked(passed, `${lag.count} in histograms, ${lost} beyond, ${bySecond} by second`);
  },
};

export const loadGates: readonly Gate[] = [
  sent,
  windows,
  goodput,
  lag,
  arrivals,
  workers,
  clock,
  rows,
  overflow,
  intervals,
];
