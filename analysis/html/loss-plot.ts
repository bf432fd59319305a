/** Loss of each treatment with its interval and with every block as a point, noise beside it. */
import * as Plot from "@observablehq/plot";
import type { Analysis } from "../analysis.ts";
import type { BlockPoint, LossMetricId } from "../blocks.ts";
import { formatChange, signed } from "../format.ts";
import type { RatioEstimate } from "../loss.ts";
import { type Markup, markup } from "./markup.ts";
import { figure } from "./plot.ts";
import type { SeriesStyle } from "./series.ts";

const titles: Readonly<Record<LossMetricId, string>> = {
  responseP50: "p50 latency",
  responseP99: "p99 latency",
  cpuPerRequest: "CPU per request",
};

type Row = {
  readonly name: string;
  readonly color: string;
  readonly ratio: RatioEstimate;
  readonly points: readonly BlockPoint[];
};

/** One plot a metric; all show the same rows in the same order. */
export function lossPlots(analysis: Analysis, styles: readonly SeriesStyle[]): readonly Markup[] {
  const ids: readonly LossMetricId[] = ["responseP50", "responseP99", "cpuPerRequest"];
  return ids.map((id) => lossPlot(id, rowsOf(analysis, id, styles), analysis));
}

function rowsOf(
  { comparison, stamp }: Analysis,
  id: LossMetricId,
  styles: readonly SeriesStyle[],
): readonly Row[] {
  const { losses, noise, furtherNoise = {} } = comparison;
  const colorOf = (label: string): string =>
    styles.find((style) => style.label === label)?.color ?? "var(--s0)";
  const noises = [[stamp.baseline, noise] as const, ...Object.entries(furtherNoise)];
  return [
    ...losses.map(({ label, ratios, points }) => ({
      name: label,
      color: colorOf(label),
      ratio: ratios[id],
      points: points[id],
    })),
    ...noises.map(([label, { ratios, points }]) => ({
      name: noises.length === 1 ? "A/A (noise)" : `A/A ${label}`,
      color: colorOf(label),
      ratio: ratios[id],
      points: points[id],
    })),
  ];
}

function lossPlot(id: LossMetricId, rows: readonly Row[], { stamp }: Analysis): Markup {
  const title = `Change of ${titles[id]}`;
  const drawn = rows.filter(({ ratio }) => ratio.kind !== "none");
  if (drawn.length === 0) {
    const reasons = rows.flatMap(({ ratio }) => (ratio.kind === "none" ? [ratio.reason] : []));
    return markup`<figure><figcaption><h3>${title}</h3></figcaption>
<p class="none">Not shown: ${[...new Set(reasons)].join("; ")}.</p></figure>
`;
  }
  const longest = Math.max(...rows.map(({ name }) => name.length));
  return figure(
    title,
    `Intervals and blocks of ${rows.map(({ name }) => name).join(", ")}; table above.`,
    {
      width: 410,
      height: 48 + 38 * rows.length,
      marginLeft: Math.min(200, 20 + 6.2 * longest),
      marginTop: 6,
      marginRight: 26,
      marginBottom: 38,
      x: {
        label: "change against the baseline, % →",
        labelAnchor: "center",
        grid: true,
        nice: true,
        ticks: 5,
        tickFormat: (change: number) => signed(change, Number.isInteger(change) ? 0 : 1),
      },
      y: { domain: rows.map(({ name }) => name), label: null, tickSize: 0 },
      marks: marksOf(rows, stamp.equivalenceMargin),
    },
  );
}

function marksOf(rows: readonly Row[], margin: number): Plot.Markish[] {
  const estimates = rows.flatMap(({ name, color, ratio }) =>
    ratio.kind === "none" ? [] : [{ name, color, ...bounds(ratio) }],
  );
  const blocks = rows.flatMap(({ name, color, points }) =>
    points.map(({ block, ratio }) => ({
      name,
      color,
      x: percent(ratio),
      title: `${name}, block ${block}: ${formatChange(ratio)} %`,
    })),
  );
  const absent = rows.flatMap(({ name, ratio }) =>
    ratio.kind === "none" ? [{ name, reason: ratio.reason }] : [],
  );
  const band = [{ from: percent(1 / (1 + margin)), to: percent(1 + margin) }];
  return [
    Plot.rect(band, { x1: "from", x2: "to", fill: "var(--line)", fillOpacity: 0.45 }),
    Plot.ruleX([0], { stroke: "var(--ink)", strokeOpacity: 0.7 }),
    Plot.dot(blocks, {
      x: "x",
      y: "name",
      dy: 8,
      r: 2.6,
      stroke: "color",
      fill: "var(--surface)",
      strokeWidth: 1,
      title: "title",
    }),
    Plot.ruleY(estimates, {
      x1: "low",
      x2: "high",
      y: "name",
      dy: -5,
      stroke: "color",
      strokeWidth: 3,
    }),
    Plot.dot(estimates, { x: "x", y: "name", dy: -5, r: 4.5, fill: "color", title: "title" }),
    Plot.text(absent, {
      x: () => 0,
      y: "name",
      text: "reason",
      textAnchor: "start",
      dx: 4,
      fill: "var(--muted)",
    }),
  ];
}

function bounds(ratio: Exclude<RatioEstimate, { kind: "none" }>) {
  const x = percent(ratio.ratio);
  if (ratio.kind === "point") {
    return { x, low: x, high: x, title: `${formatChange(ratio.ratio)} %, one block, no interval` };
  }
  const { low, high } = ratio;
  const interval = `${formatChange(low)} to ${formatChange(high)}`;
  return {
    x,
    low: percent(low),
    high: percent(high),
    title: `${formatChange(ratio.ratio)} % (95 % interval ${interval})`,
  };
}

function percent(ratio: number): number {
  return (ratio - 1) * 100;
}
