/**
 * Certificates that proxies were given anew while a run was measured: how many were due, and what
 * came with them. Pure.
 */
import type { RunRecord } from "../contracts/record.ts";
import { type Cell, none, value } from "./cell.ts";
import type { GateInput } from "./gates/input.ts";
import { planSeconds } from "./gates/run-facts.ts";
import type { RequestShape } from "./request-shape.ts";
import { median } from "./statistics.ts";

/** Sidecars renew a certificate after this share of its life time, all of them alike. */
const renewedAfter = 0.5;
/** Until the next one is there: a proxy's agent makes a key beside the load and has it signed. */
const issueSeconds = 1;
/** Certificates end on whole seconds, so that one may last so much less. */
const roundingSeconds = 1;

/** How many renewals of one proxy a run may show. */
export type DueRenewals = { readonly least: number; readonly most: number };

/**
 * Renewals that must fall into the measured seconds, and those that can since the certificate was
 * made, at the earliest when the run began: 0 of both where certificates outlast the run. Where one
 * may fall into the run, one must be seen: else nobody would know which kind of run it was.
 *
 * @returns undefined if the topology declares no life time of certificates
 */
export function dueRenewals(
  record: Pick<RunRecord, "deployment" | "loadPlan" | "startedAt" | "finishedAt">,
): DueRenewals | undefined {
  const certificateSeconds = certificateSecondsOf(record);
  if (certificateSeconds === undefined) return undefined;
  const measured = planSeconds(record);
  const whole = (Date.parse(record.finishedAt) - Date.parse(record.startedAt)) / 1000;
  const [longest, shortest] = [
    certificateSeconds * renewedAfter + issueSeconds,
    (certificateSeconds - roundingSeconds) * renewedAfter,
  ];
  const most = Math.floor(Math.max(whole, measured) / shortest);
  return { least: Math.max(Math.floor(measured / longest), Math.min(most, 1)), most };
}

function certificateSecondsOf({ deployment }: Pick<RunRecord, "deployment">): number | undefined {
  const found = deployment.parameters["certificateSeconds"];
  return found === undefined ? undefined : Number(found);
}

export type RunRotation = {
  /** How long a certificate is valid. */
  readonly certificateSeconds: number;
  /** Certificates that each proxy was given, by its unit; see `ProxyFacts`. */
  readonly renewals: Readonly<Record<string, number>>;
  /** Connections and handshakes of the leg that uses the certificates. */
  readonly opened: Cell;
  readonly fullHandshakes: Cell;
  readonly resumedHandshakes: Cell;
  /** p99 of the worst second over that of the median one. */
  readonly worstSecond: Cell;
  /** Requests that failed, were never sent, or took longer than the plan's objective. */
  readonly bad: Cell;
};

/**
 * @param bad requests that do not keep the plan's objective; undefined if it has none
 * @returns undefined of a topology that has no such certificates
 */
export function rotationOf(
  { record, proxies, wire, shape }: Pick<GateInput, "record" | "proxies" | "wire" | "shape">,
  bad?: number,
): RunRotation | undefined {
  const certificateSeconds = certificateSecondsOf(record);
  if (certificateSeconds === undefined) return undefined;
  const counts = wire.map((leg) => leg.counts).find((of) => of.fullHandshakes !== undefined);
  const cell = (count: number | undefined): Cell =>
    count === undefined ? none("no proxy has counted its handshakes") : value(count, "count");
  return {
    certificateSeconds,
    renewals: Object.fromEntries(
      proxies.flatMap(({ unit, renewals }) =>
        renewals === undefined ? [] : [[unit, renewals] as const],
      ),
    ),
    opened: cell(counts?.opened),
    fullHandshakes: cell(counts?.fullHandshakes),
    resumedHandshakes: cell(counts?.resumedHandshakes),
    worstSecond: worstSecondOf(shape),
    bad: bad === undefined ? none("the plan has no objective for them") : value(bad, "count"),
  };
}

function worstSecondOf({ seconds }: Pick<RequestShape, "seconds">): Cell {
  const tails = seconds.map(({ p99Ns }) => p99Ns);
  if (tails.length === 0) return none("no second was measured");
  const ratio = Math.max(...tails) / median(tails);
  return Number.isFinite(ratio) ? value(ratio, "ratio") : none("a second has no p99");
}
