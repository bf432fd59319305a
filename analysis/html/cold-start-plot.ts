/** Cold starts on the page: how often they stormed, and the median of every start by seconds. */
import * as Plot from "@observablehq/plot";
import { numberOf } from "../cell.ts";
import type { ColdStarts } from "../cold-start.ts";
import { formatNumber } from "../format.ts";
import { type Markup, markup } from "./markup.ts";
import { figure } from "./plot.ts";
import { legend, type SeriesStyle } from "./series.ts";

/** Renders a line for every start; seconds without a median are left out. */
export function coldStartPlot(
  { treatments, settings }: ColdStarts,
  styles: readonly SeriesStyle[],
): Markup {
  const title = "Response p50 by second of every cold start";
  const lines = treatments.flatMap(({ label, starts }) =>
    starts.map(({ name, start }) => ({
      label,
      points: start.seconds.flatMap(({ second, p50 }) => {
        const ns = numberOf(p50);
        if (ns === undefined) return [];
        const told = `${name}, second ${second}: p50 ${formatNumber(ns, "ns")} ms`;
        return [{ x: second, y: ns / 1e6, title: told }];
      }),
    })),
  );
  if (lines.every(({ points }) => points.length === 0)) {
    return markup`<figure><figcaption><h3>${title}</h3></figcaption>
<p class="none">Not shown: no start has been counted.</p></figure>
`;
  }
  const used = styles.filter(({ label }) => lines.some((line) => line.label === label));
  const marks = lines.map(({ label, points }) => {
    const stroke = used.find((style) => style.label === label)?.color ?? "var(--ink)";
    return [
      Plot.line(points, { x: "x", y: "y", stroke, strokeWidth: 1.5, strokeOpacity: 0.8 }),
      Plot.dot(points, { x: "x", y: "y", r: 3, fill: stroke, fillOpacity: 0.5, title: "title" }),
    ];
  });
  const solid = used.map((style) => ({ ...style, dash: "none", border: "solid" as const }));
  return figure(
    title,
    `One line a start of ${used.map(({ label }) => label).join(", ")}; table above.`,
    {
      width: 760,
      height: 320,
      marginLeft: 52,
      marginBottom: 38,
      x: { label: "seconds after the first request →", labelAnchor: "center", interval: 1 },
      y: {
        type: "log",
        label: "↑ response p50, ms",
        grid: true,
        ticks: 5,
        tickFormat: (ms: number) => String(Number(ms.toPrecision(2))),
      },
      marks: [
        Plot.frame({ stroke: "var(--line)" }),
        Plot.ruleY([settings.sloMilliseconds], { stroke: "var(--ink)", strokeDasharray: "4 4" }),
        ...marks,
      ],
    },
    {
      legend: legend(solid),
      caption: `From the intended send time. Dashed: the SLO of ${settings.sloMilliseconds} ms.`,
    },
  );
}
