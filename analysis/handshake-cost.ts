/**
 * What opening a connection costs beside a request, with TLS and without it, from arms that differ
 * in how many requests a connection carries. Fitted in every block with the same weights, so that
 * intervals are those over blocks, as everywhere. Pure.
 */
import type { Ladder } from "../contracts/ladder.ts";
import { type BlockCosts, completeBlocks, estimate } from "./block-costs.ts";
import { isMeasured } from "./blocks.ts";
import { type Cell, none, numberOf, value } from "./cell.ts";
import { type ChurnFit, type ChurnPoint, crossover, fitChurn, handshakeOf } from "./handshake.ts";
import type { JudgedRun } from "./judged-run.ts";
import type { DifferenceEstimate } from "./loss.ts";
import { mean, meanInterval } from "./statistics.ts";

/** Costs that a fit is made of: both are means, which a sum over requests divides into. */
export const churnQuantities = ["meanNs", "cpuUs"] as const;
export type ChurnQuantity = (typeof churnQuantities)[number];

/** c_s and c_h of one kind of connection. */
export type ChurnCost = {
  /** A request on a connection that is there. */
  readonly steady: DifferenceEstimate;
  /** Opening a connection. */
  readonly opening: DifferenceEstimate;
  /** How far the arms lie from the line, see `ChurnFit`; far above 1: it is no line. */
  readonly misfit: number;
};

export type TlsCost = ChurnCost & {
  /** c_h with TLS less that without it. */
  readonly handshake: DifferenceEstimate;
  /** Requests a connection from which on opening it is below 5 % of a request's cost. */
  readonly crossover: Cell;
};

export type HandshakeCost =
  | {
      readonly kind: "fit";
      readonly tls: TlsCost;
      /** Where every handshake is a full one; absent if the plan has no such arms. */
      readonly full?: TlsCost;
      readonly plain: ChurnCost;
    }
  | { readonly kind: "none"; readonly reason: string };

export type ChurnArm = {
  /** As the plan says; 0: never closed. */
  readonly requestsPerConnection: number;
  readonly treatments: readonly ChurnTreatment[];
};

/** What one treatment of an arm really did, over all valid runs. */
export type ChurnTreatment = {
  readonly label: string;
  /** Requests that a connection between the proxies carried. */
  readonly carried: Cell;
  /** Share of handshakes that took up a session again; a full one costs more. Absent: no TLS. */
  readonly resumed?: Cell;
};

export type HandshakeCosts = {
  readonly arms: readonly ChurnArm[];
  /** Blocks in which every arm is valid. */
  readonly blocks: readonly number[];
  readonly costs: Readonly<Record<ChurnQuantity, HandshakeCost>>;
};

/** Undefined if the ladder has no such arms. */
export function handshakeCostsOf(
  { handshake: arms }: Ladder,
  planned: number,
  runs: readonly JudgedRun[],
): HandshakeCosts | undefined {
  if (arms === undefined) return undefined;
  const labels = arms.flatMap((arm) => kinds.map((kind) => labelOf(arm, kind)));
  const blocks = completeBlocks(planned, [...new Set(labels)], runs);
  const cost = (id: ChurnQuantity) => costOf(id, arms, [...blocks.values()]);
  return {
    arms: arms.map(({ requestsPerConnection, tls, full, plain }) => {
      const secured = [tls, ...(full === undefined ? [] : [full])].map((label) => ({
        label,
        carried: carriedBy(label, runs),
        resumed: resumedShareOf(label, runs),
      }));
      const treatments = [...secured, { label: plain, carried: carriedBy(plain, runs) }];
      return { requestsPerConnection, treatments };
    }),
    blocks: [...blocks.keys()],
    costs: { meanNs: cost("meanNs"), cpuUs: cost("cpuUs") },
  };
}

type Arms = NonNullable<Ladder["handshake"]>;
const kinds = ["tls", "full", "plain"] as const;
type Kind = (typeof kinds)[number];

/** Connections that are never closed shake no hands, full or not. */
const labelOf = (arm: Arms[number], kind: Kind): string => arm[kind] ?? arm.tls;

/** Costs of each arm in each block, in the order of the arms. */
type Series = readonly (readonly number[])[];

function costOf(id: ChurnQuantity, arms: Arms, blocks: readonly BlockCosts[]): HandshakeCost {
  if (blocks.length < 2) {
    const found = blocks.length === 0 ? "none" : "one";
    return none(`two blocks in which every arm is valid are needed, there is ${found}`);
  }
  const absent: string[] = [];
  const seriesOf = (kind: Kind): Series =>
    arms.map((arm) =>
      blocks.map((costs) => {
        const cell = costs.get(labelOf(arm, kind))?.[id] ?? none("not measured");
        if (cell.kind === "none") absent.push(`${labelOf(arm, kind)}: ${cell.reason}`);
        return numberOf(cell) ?? Number.NaN;
      }),
    );
  const hasFull = arms.some(({ full }) => full !== undefined);
  const series = {
    tls: seriesOf("tls"),
    plain: seriesOf("plain"),
    ...(hasFull && { full: seriesOf("full") }),
  };
  const [reason] = absent;
  if (reason !== undefined) return none(reason);
  const levels = levelsOf([...series.tls, ...series.plain]);
  const errors = Object.values(series).flatMap((own) => errorsOf(own, levels));
  if (!errors.every((error) => error > 0)) {
    return none("an arm does not vary over the blocks, so that it has no weight");
  }
  const fits = (own: Series): Fits => {
    const weights = errorsOf(own, levels);
    return {
      byBlock: blocks.map((_, block) => fitChurn(pointsOf(arms, own, weights, block))),
      whole: fitChurn(pointsOf(arms, own, weights)),
    };
  };
  const plain = fits(series.plain);
  return {
    kind: "fit",
    tls: tlsCostOf(fits(series.tls), plain),
    ...(series.full !== undefined && { full: tlsCostOf(fits(series.full), plain) }),
    plain: churnOf(plain),
  };
}

/** Of one kind of connection: of every block, and of the means of all. */
type Fits = { readonly byBlock: readonly ChurnFit[]; readonly whole: ChurnFit };

function tlsCostOf(fits: Fits, plain: Fits): TlsCost {
  const own = churnOf(fits);
  const differences = fits.byBlock.flatMap((fit, block) => {
    const other = plain.byBlock[block];
    return other === undefined ? [] : [handshakeOf(fit, other).cost];
  });
  return { ...own, handshake: estimate(differences), crossover: crossoverOf(own, fits.whole) };
}

/** Of one block, or of the means of all. */
function pointsOf(
  arms: Arms,
  costs: readonly (readonly number[])[],
  errors: readonly number[],
  block?: number,
): ChurnPoint[] {
  return arms.map(({ requestsPerConnection: n }, index) => {
    const own = costs[index] ?? [];
    return {
      requestsPerConnection: n === 0 ? Number.POSITIVE_INFINITY : n,
      cost: block === undefined ? mean(own) : (own[block] ?? Number.NaN),
      error: errors[index] ?? 0,
    };
  });
}

/** What a block does to all arms alike. */
function levelsOf(all: Series): readonly number[] {
  return (all[0] ?? []).map((_, block) => mean(all.map((arm) => arm[block] ?? Number.NaN)));
}

/** Standard error of each arm's mean, from its spread over the blocks once their levels are off. */
function errorsOf(arms: Series, levels: readonly number[]): readonly number[] {
  return arms.map((arm) => {
    const { sd, n } = meanInterval(arm.map((cost, block) => cost - (levels[block] ?? Number.NaN)));
    return sd / Math.sqrt(n);
  });
}

function churnOf({ byBlock, whole }: Fits): ChurnCost {
  return {
    steady: estimate(byBlock.map(({ steady }) => steady)),
    opening: estimate(byBlock.map(({ opening }) => opening)),
    misfit: whole.misfit,
  };
}

/** An opening that may cost nothing has no such count. */
function crossoverOf({ opening, steady }: ChurnCost, whole: ChurnFit): Cell {
  if (opening.kind !== "estimate" || opening.low <= 0) {
    return none("the interval of what opening costs holds 0");
  }
  if (steady.kind !== "estimate" || steady.low <= 0) {
    return none("the interval of what a request costs holds 0");
  }
  return value(Math.ceil(crossover(whole)), "count");
}

/** By the connecting proxy's own counts of what it opened and sent, between the same moments. */
function carriedBy(label: string, runs: readonly JudgedRun[]): Cell {
  let [sent, opened] = [0, 0];
  for (const run of runs.filter((one) => one.label === label && isMeasured(one))) {
    const counts = run.wire?.map((leg) => leg.counts).find((count) => count.opened !== undefined);
    if (counts?.opened === undefined || counts.requests === undefined) {
      return none("no proxy has counted its connections and requests");
    }
    opened += counts.opened;
    sent += counts.requests;
  }
  return opened === 0 ? none("none was opened") : value(sent / opened, "ratio");
}

/** By the connecting proxy's own counts, over all valid runs. */
function resumedShareOf(label: string, runs: readonly JudgedRun[]): Cell {
  let [full, resumed] = [0, 0];
  for (const run of runs.filter((one) => one.label === label && isMeasured(one))) {
    const counts = run.wire
      ?.map((leg) => leg.counts)
      .find((count) => count.fullHandshakes !== undefined);
    if (counts?.fullHandshakes === undefined) return none("no proxy has counted its handshakes");
    full += counts.fullHandshakes;
    resumed += counts.resumedHandshakes ?? 0;
  }
  return full + resumed === 0 ? none("no handshake") : value(resumed / (full + resumed), "ratio");
}
