/** The comparison as CSV, one number a row, for spreadsheets and scripts. */
import type { Cell } from "./cell.ts";
import { lossMetricIds } from "./blocks.ts";
import { metricIds } from "./judged-run.ts";
import { matrixIds } from "./matrix.ts";
import type { DifferenceEstimate, RatioEstimate } from "./loss.ts";
import type { Analysis } from "./analysis.ts";

const header = [
  "table",
  "treatment",
  "metric",
  "unit",
  "value",
  "low",
  "high",
  "interval",
  "n",
  "verdict",
  "reason",
] as const;

type Row = Partial<Record<(typeof header)[number], string | number>>;

/** Renders all cells, RFC 4180; a cell without a number has its reason instead. */
export function renderCsv({ comparison, runs, stamp }: Analysis): string {
  const { treatments, losses, noise, furtherNoise } = comparison;
  const rows: Row[] = [
    ...treatments.flatMap(({ label, metrics, matrix, cpuPerRequestByKind, runs: { valid } }) => [
      ...metricIds.map((id) => cellRow("summary", label, id, metrics[id], valid)),
      ...matrixIds.map((id) => cellRow("matrix", label, id, matrix[id], valid)),
      ...Object.entries(cpuPerRequestByKind).map(([kind, cell]) =>
        cellRow("summary", label, `cpuPerRequest.${kind}`, cell, valid),
      ),
    ]),
    ...losses.flatMap((loss) => [
      ...lossMetricIds.map((id) => ratioRow("loss", loss.label, id, loss.ratios[id])),
      ...lossMetricIds.map((id) =>
        differenceRow(loss.label, id, id === "cpuPerRequest" ? "us" : "ns", loss.differences[id]),
      ),
      differenceRow(loss.label, "cores", "cores", loss.coresDifference),
      ratioRow("loss", loss.label, "throughput", loss.throughput),
    ]),
    ...Object.entries({ [stamp.baseline]: noise, ...furtherNoise }).flatMap(([label, { ratios }]) =>
      lossMetricIds.map((id) => ratioRow("noise", label, id, ratios[id])),
    ),
    ...runs.map(({ name, verdict, gates }) => ({
      table: "run",
      treatment: name,
      verdict,
      reason: gates
        .filter(({ outcome }) => outcome === "invalid" || outcome === "warn")
        .map(({ id, measured }) => `${id}: ${measured}`)
        .join("; "),
    })),
  ];
  return [header.join(","), ...rows.map(renderRow), ""].join("\n");
}

function cellRow(table: string, treatment: string, metric: string, cell: Cell, n: number): Row {
  if (cell.kind === "none") return { table, treatment, metric, reason: cell.reason };
  const { value, unit, interval } = cell;
  return {
    table,
    treatment,
    metric,
    unit,
    value,
    n,
    ...(interval && { low: interval.low, high: interval.high, interval: interval.kind }),
  };
}

function ratioRow(table: string, treatment: string, metric: string, ratio: RatioEstimate): Row {
  const row = { table, treatment, metric, unit: "ratio" };
  if (ratio.kind === "none") return { ...row, reason: ratio.reason };
  const shared = { ...row, value: ratio.ratio, n: ratio.pairs, verdict: ratio.verdict };
  if (ratio.kind === "point") return { ...shared, reason: ratio.reason };
  return { ...shared, low: ratio.low, high: ratio.high, interval: "confidence95" };
}

function differenceRow(
  treatment: string,
  metric: string,
  unit: string,
  difference: DifferenceEstimate,
): Row {
  const row = { table: "difference", treatment, metric, unit };
  if (difference.kind === "none") return { ...row, reason: difference.reason };
  const shared = { ...row, value: difference.mean, n: difference.pairs };
  if (difference.kind === "point") return { ...shared, reason: "one block" };
  return { ...shared, low: difference.low, high: difference.high, interval: "confidence95" };
}

function renderRow(row: Row): string {
  return header.map((name) => quote(String(row[name] ?? ""))).join(",");
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
