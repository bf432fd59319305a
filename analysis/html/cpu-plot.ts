/** CPU time of a request, stacked by the kind of unit that spends it. */
import * as Plot from "@observablehq/plot";
import { numberOf } from "../cell.ts";
import type { Treatment } from "../comparison.ts";
import { formatNumber } from "../format.ts";
import { type Markup, markup } from "./markup.ts";
import { figure } from "./plot.ts";
import { legend } from "./series.ts";

/** Kinds have colours of their own, which are not those of treatments. */
const kindColors: Readonly<Record<string, string>> = {
  service: "var(--k1)",
  proxy: "var(--k2)",
  issuer: "var(--k3)",
  control: "var(--k4)",
};
const otherColor = "var(--s0)";

/** Renders the medians over valid runs; treatments without any are named. */
export function cpuPlot(treatments: readonly Treatment[]): Markup {
  const title = "CPU time per request of the data plane";
  const parts = treatments.flatMap(({ label, cpuPerRequestByKind }) =>
    Object.entries(cpuPerRequestByKind).flatMap(([kind, cell]) => {
      const us = numberOf(cell);
      return us === undefined ? [] : [{ label, kind, us }];
    }),
  );
  if (parts.length === 0) {
    return markup`<figure><figcaption><h3>${title}</h3></figcaption>
<p class="none">Not shown: no valid run has samples of CPU time.</p></figure>
`;
  }
  const kinds = [...new Set(parts.map(({ kind }) => kind))].sort();
  const colorOf = (kind: string): string => kindColors[kind] ?? otherColor;
  const stacked = kinds.flatMap((kind) => parts.filter((part) => part.kind === kind));
  const data = stacked.map((part) => ({
    ...part,
    title: `${part.label}, ${part.kind}: ${formatNumber(part.us, "us")} µs per request`,
  }));
  const totals = treatments.map(({ label }) => {
    const own = parts.filter((part) => part.label === label);
    const us = own.reduce((total, part) => total + part.us, 0);
    return { label, us, text: own.length === 0 ? "no valid run" : `${formatNumber(us, "us")} µs` };
  });
  const longest = Math.max(...treatments.map(({ label }) => label.length));
  return figure(
    title,
    `Bars of ${treatments.map(({ label }) => label).join(", ")}; table below.`,
    {
      width: 520,
      height: 48 + 32 * treatments.length,
      marginLeft: Math.min(200, 20 + 6.2 * longest),
      marginTop: 6,
      marginRight: 70,
      marginBottom: 38,
      x: { label: "µs of CPU time per request →", labelAnchor: "center", grid: true, ticks: 6 },
      y: { domain: treatments.map(({ label }) => label), label: null, tickSize: 0 },
      marks: [
        Plot.barX(data, {
          x: "us",
          y: "label",
          fill: (part: { kind: string }) => colorOf(part.kind),
          order: kinds,
          z: "kind",
          title: "title",
          insetTop: 2,
          insetBottom: 2,
        }),
        Plot.text(totals, { x: "us", y: "label", text: "text", textAnchor: "start", dx: 5 }),
        Plot.ruleX([0], { stroke: "var(--ink)" }),
      ],
    },
    {
      legend: legend(
        kinds.map((kind) => ({ label: kind, color: colorOf(kind), dash: "none", border: "solid" })),
      ),
      caption: "Each part is the median over valid runs; issuer and control plane are not counted.",
    },
  );
}
