/** Latency by percentile, one line a treatment, the tail stretched so that it can be read. */
import * as Plot from "@observablehq/plot";
import type { CurvePoint } from "../curve.ts";
import { formatNumber } from "../format.ts";
import { type Markup, markup } from "./markup.ts";
import { figure } from "./plot.ts";
import { legend, type SeriesStyle } from "./series.ts";

const ticks = [0, 50, 90, 99, 99.9] as const;

export type PercentilePlot = {
  readonly title: string;
  readonly axis: string;
  readonly caption: string;
  readonly curves: readonly { readonly label: string; readonly points: readonly CurvePoint[] }[];
  readonly styles: readonly SeriesStyle[];
};

/** Renders the curves, or the reason that there is none. */
export function percentilePlot({ title, axis, caption, curves, styles }: PercentilePlot): Markup {
  const drawn = curves.filter(({ points }) => points.length > 0);
  if (drawn.length === 0) {
    return markup`<figure><figcaption><h3>${title}</h3></figcaption>
<p class="none">No curve: no treatment has enough requests in valid runs.</p></figure>
`;
  }
  const used = styles.filter(({ label }) => drawn.some((curve) => curve.label === label));
  const marks = used.map(({ label, color, dash }) => {
    const points = drawn.find((curve) => curve.label === label)?.points ?? [];
    const data = points.map(({ percentile, ns }) => ({
      x: scaled(percentile),
      y: millisecondsOf(ns),
      title: `${label}, p${percentile}: ${formatNumber(ns, "ns")} ms`,
    }));
    return [
      Plot.line(data, { x: "x", y: "y", stroke: color, strokeWidth: 2, strokeDasharray: dash }),
      Plot.dot(data, { x: "x", y: "y", r: 5, fill: color, fillOpacity: 0, title: "title" }),
    ];
  });
  const description = `Lines of ${used.map(({ label }) => label).join(", ")}; table below.`;
  return figure(
    title,
    description,
    {
      width: 520,
      height: 300,
      marginLeft: 52,
      marginRight: 24,
      marginBottom: 38,
      x: {
        type: "log",
        domain: [1, 1000],
        ticks: ticks.map(scaled),
        tickFormat: (x: number) => (x === 1 ? "fastest" : `p${percentileAt(x)}`),
        label: "percentile of requests →",
        labelAnchor: "center",
        grid: true,
      },
      y: {
        type: "log",
        label: `↑ ${axis}`,
        grid: true,
        ticks: logTicks(drawn.flatMap(({ points }) => points.map(({ ns }) => millisecondsOf(ns)))),
        tickFormat: (ms: number) => String(Number(ms.toPrecision(2))),
      },
      marks: [Plot.frame({ stroke: "var(--line)" }), ...marks],
    },
    { legend: legend(used), caption },
  );
}

/** p99 stands as far from p90 as p90 from the fastest. */
function scaled(percentile: number): number {
  return Math.round(1e6 / (1 - percentile / 100)) / 1e6;
}

function percentileAt(x: number): number | undefined {
  return ticks.find((tick) => scaled(tick) === x);
}

/** A value of zero has no place on a logarithmic scale, and less than 1 µs none in this plot. */
function millisecondsOf(ns: number): number {
  return Math.max(ns, 1000) / 1e6;
}

/** Round numbers within the range of the values: 1, 2, 5, or more of them in a short range. */
function logTicks(values: readonly number[]): number[] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const steps = high / low > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  const ticks: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade += 1) {
    for (const step of steps) {
      const tick = Number((step * 10 ** decade).toPrecision(2));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}
