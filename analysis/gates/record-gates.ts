/** Gates of what a run says of itself: that it ended, was the planned one, and settled. */
import { loadOf } from "../../contracts/plan.ts";
import { isAmiss } from "../../contracts/record.ts";
import { cutSecondsMin, mannKendall, startupLength, trendSecondsMin } from "../steady.ts";
import { checked, everywhere, type Finding, type Gate } from "./gate.ts";
import { measuredAs, missing, percent } from "./gate.ts";
import type { GateInput } from "./input.ts";
import { differences, isCold } from "./run-facts.ts";

const completed: Gate = {
  id: "completed",
  shows: "the run went on to its end",
  limits: everywhere("invalid"),
  wanted: () => "to its end",
  judge: ({ record }) => checked(record.failure === undefined, record.failure ?? "to its end"),
};

const plan: Gate = {
  id: "plan",
  shows: "treatment and load of the record, against the plan that was hashed before it",
  limits: everywhere("invalid"),
  wanted: () => "as planned",
  judge: ({ record, plan: whole }) => {
    const planned = whole.treatments.find(({ label }) => label === record.label);
    const load = planned === undefined ? whole.load : loadOf(whole, planned);
    const differing = [
      ...differences(planned ?? {}, record.treatment, "treatment"),
      ...differences(load, record.load, "load"),
      ...(record.loadPlan.rateQps === load.rateQps ? [] : ["loadPlan.rateQps"]),
      ...(record.loadPlan.driver === planned?.driver ? [] : ["loadPlan.driver"]),
      ...(record.loadPlan.arrival === planned?.arrival ? [] : ["loadPlan.arrival"]),
    ];
    return checked(differing.length === 0, differing.join(", ") || "as planned");
  },
};

const tuning: Gate = {
  id: "tuning",
  shows:
    "tuning read back before the block: the profile's knobs and no others turned, none drifted, " +
    "and as before the first block",
  limits: everywhere("invalid"),
  wanted: () => "as the profile says and as at first",
  judge: ({ record, reference }) => {
    const changed = Object.keys({ ...reference.tuning, ...record.tuning }).flatMap((host) =>
      differences(reference.tuning[host] ?? {}, record.tuning[host] ?? {}, host),
    );
    const amiss = Object.entries(record.tuning).flatMap(([host, knobs]) =>
      Object.entries(knobs)
        .filter(([, outcome]) => isAmiss(outcome))
        .map(([knob, outcome]) => `${host}.${knob} ${outcome}`),
    );
    const found = [...changed, ...amiss];
    return checked(found.length === 0, found.join(", ") || "as wanted");
  },
};

const tuningAfter: Gate = {
  id: "tuning-after",
  shows: "tuning read back after the block, against the readback before it",
  limits: everywhere("invalid"),
  wanted: () => "as before the block",
  judge: ({ record, tuningAfter: later }) => {
    if (later === undefined) return missing("the block was not read back at its end");
    const changed = Object.keys({ ...record.tuning, ...later }).flatMap((host) => {
      const [was, is] = [record.tuning[host] ?? {}, later[host] ?? {}];
      return Object.keys({ ...was, ...is })
        .filter((knob) => was[knob] !== is[knob])
        .map((knob) => `${host}.${knob} was ${was[knob] ?? "absent"}, is ${is[knob] ?? "absent"}`);
    });
    return checked(changed.length === 0, changed.join(", ") || "as before the block");
  },
};

/** Why steadiness cannot be judged, if so. */
function unjudged({ record, shape }: GateInput, least: number): Finding | undefined {
  if (isCold(record)) return missing("a cold start is not meant to be steady");
  const { length } = shape.seconds;
  if (length < least) return missing(`run too short, ${length} s of ${least} s`);
  return undefined;
}

function cutOf({ shape }: GateInput): number {
  // A second without a median is as bad as the longest time-out.
  const logs = shape.seconds.map(({ p50Ns }) => Math.log(Math.min(p50Ns, 60e9)));
  return startupLength(logs) ?? 0;
}

const settled: Gate = {
  id: "settled",
  shows: "where the start-up of the run ends, by MSER-5 on the medians of its seconds",
  limits: everywhere("invalid", 0.5),
  wanted: (limit) => `within ${percent(limit)} of the run`,
  compare: "at most",
  judge: (input) => {
    const found = unjudged(input, cutSecondsMin);
    if (found !== undefined) return found;
    const cut = cutOf(input);
    const { length } = input.shape.seconds;
    return measuredAs(cut / length, `after ${cut} s of ${length} s`);
  },
};

const trend: Gate = {
  id: "trend",
  shows: "drift of the p99 of seconds after the start-up, by Mann-Kendall, |Z|",
  limits: everywhere("invalid", 2.58),
  wanted: (limit) => `|Z| <= ${limit}`,
  compare: "at most",
  judge: (input) => {
    const found = unjudged(input, trendSecondsMin);
    if (found !== undefined) return found;
    const cut = cutOf(input);
    const rest = input.shape.seconds.slice(cut).map(({ p99Ns }) => p99Ns);
    if (rest.length < trendSecondsMin) {
      return missing(`${rest.length} s after the start-up, of ${trendSecondsMin} s`);
    }
    const { z } = mannKendall(rest);
    return measuredAs(Math.abs(z), `Z ${z.toFixed(2)} over ${rest.length} s`);
  },
};

export const recordGates: readonly Gate[] = [completed, plan, tuning, tuningAfter, settled, trend];
