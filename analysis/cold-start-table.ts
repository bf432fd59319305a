/** Cold starts as tables for people: how often they stormed, every start, one by seconds. */
import { type Cell, none, numberOf, value } from "./cell.ts";
import type { ColdStart, ColdStarts, ColdTreatment } from "./cold-start.ts";
import { Footnotes, formatCell } from "./format.ts";
import { median } from "./statistics.ts";
import { left, right, type Table } from "./tabular.ts";

/** All that is told of cold starts. */
export function coldStartTables(starts: ColdStarts): readonly Table[] {
  return [stormTable(starts), startsTable(starts), ...timelineTables(starts)];
}

/** How often a start was a storm, one row a treatment; the table that goes beside others. */
export function stormTable({ settings, treatments }: ColdStarts): Table {
  const notes = new Footnotes();
  const { stormFactor, sloMilliseconds } = settings;
  return {
    title: "Cold starts: full rate from the first request (median over starts [least–greatest])",
    columns: [
      left("treatment"),
      right("storms"),
      right("% [95 % CI]"),
      right("opened"),
      right("handshakes"),
      right("over SLO"),
      right("back s"),
    ],
    rows: treatments.map((treatment) => {
      const over = (read: (start: ColdStart) => Cell, range: boolean): string =>
        formatCell(middle(treatment.starts.map(({ start }) => read(start))), notes, range);
      return [
        treatment.label,
        stormsOf(treatment),
        probabilityOf(treatment),
        over((start) => start.opened, true),
        over((start) => start.handshakes, false),
        over((start) => start.overSlo, true),
        over((start) => secondsOf(start.recovery), true),
      ];
    }),
    notes: [
      ...notes.lines(),
      ...treatments.map(
        ({ label, topology, connectionLimit, declaredConnections, rateQps }) =>
          `${label}: ${topology} at ${rateQps}/s, connections ${connectionLimit}, ` +
          `a storm is more than ${stormFactor * declaredConnections} opened ` +
          `(${stormFactor} × ${declaredConnections} declared)`,
      ),
      "opened, handshakes: on the leg that has most; CI: Wilson's interval of the probability",
      `over SLO: responses above ${sloMilliseconds} ms, failed and unsent requests among them; ` +
        "back s: seconds until p50 is within twice that of the last second, and stays so",
      "cold starts are compared with cold starts only, never with steady rows",
      ...treatments.flatMap(({ label, notCounted }) =>
        notCounted.map(({ name, reason }) => `${label}: ${name} is not counted: ${reason}`),
      ),
    ],
  };
}

function stormsOf({ storms }: ColdTreatment): string {
  return storms === undefined ? "-" : `${storms.hits} of ${storms.n}`;
}

function probabilityOf({ storms }: ColdTreatment): string {
  if (storms === undefined) return "-";
  const percent = (share: number): string => (share * 100).toFixed(0);
  const { hits, n, low, high } = storms;
  return `${percent(hits / n)} [${percent(low)}–${percent(high)}]`;
}

/** A start without a figure is left out of the median, and the others stand for themselves. */
function middle(cells: readonly Cell[]): Cell {
  const [first] = cells;
  if (first === undefined) return none("no start");
  const known = cells.flatMap((cell) => (cell.kind === "value" ? [cell] : []));
  const [one] = known;
  if (one === undefined) return first;
  if (known.length < cells.length) {
    const absent = cells.find((cell) => cell.kind === "none");
    const reason = absent?.kind === "none" ? absent.reason : "not measured";
    return none(`${cells.length - known.length} of ${cells.length} starts: ${reason}`);
  }
  const numbers = known.map((cell) => cell.value);
  const range = { low: Math.min(...numbers), high: Math.max(...numbers), kind: "range" } as const;
  return value(median(numbers), one.unit, range);
}

/** Whole seconds as a plain number. */
function secondsOf(cell: Cell): Cell {
  return cell.kind === "none" ? cell : value(cell.value / 1e9, "count");
}

/** Every start that counts, one row each. */
export function startsTable({ treatments }: ColdStarts): Table {
  const notes = new Footnotes();
  return {
    title: "Every cold start",
    columns: [
      left("start"),
      left("storm"),
      right("opened"),
      right("handshakes"),
      right("resumed"),
      right("over SLO"),
      right("back s"),
      right("before"),
    ],
    rows: treatments.flatMap(({ starts }) =>
      starts.map(({ name, start }) => [
        name,
        start.storm === true ? "storm" : "no",
        ...[start.opened, start.handshakes, start.resumed, start.overSlo].map((cell) =>
          formatCell(cell, notes, false),
        ),
        formatCell(secondsOf(start.recovery), notes, false),
        formatCell(start.before.opened, notes, false),
      ]),
    ),
    notes: [
      ...notes.lines(),
      "before: connections opened by readiness and the positive probe, on the leg that has most",
      `the sampler took at most ${formatCell(worstObserver(treatments), notes, false)} of a CPU; ` +
        "what proxies take to answer it is in their own CPU time",
    ],
  };
}

function worstObserver(treatments: readonly ColdTreatment[]): Cell {
  const shares = treatments
    .flatMap(({ starts }) => starts.map(({ start }) => numberOf(start.observer)))
    .filter((share) => share !== undefined);
  return shares.length === 0 ? none("an unknown share") : value(Math.max(...shares), "share");
}

/** For each treatment the start that opened most connections, second by second. */
function timelineTables({ treatments }: ColdStarts): readonly Table[] {
  return treatments.flatMap(({ label, starts }) => {
    const rank = ({ start }: (typeof starts)[number]): number => numberOf(start.opened) ?? -1;
    const [most] = [...starts].sort((a, b) => rank(b) - rank(a));
    return most === undefined ? [] : [timelineTable(label, most.name, most.start)];
  });
}

function timelineTable(label: string, name: string, { seconds }: ColdStart): Table {
  const notes = new Footnotes();
  return {
    title: `${label} by seconds: ${name}, its start with most connections (latencies in ms)`,
    columns: [
      left("second"),
      ...["opened", "open", "handshakes", "proxy", "service", "generator", "p50", "p99"].map(right),
    ],
    rows: seconds.map(({ second, opened, active, handshakes, cores, p50, p99 }) => [
      String(second),
      ...[opened, active, handshakes, cores.proxy, cores.service, cores.generator, p50, p99].map(
        (cell) => formatCell(cell, notes, false),
      ),
    ]),
    notes: [
      ...notes.lines(),
      "open: at the end of the second; proxy, service, generator: CPU cores used; " +
        "p50, p99: of responses due in the second",
    ],
  };
}
