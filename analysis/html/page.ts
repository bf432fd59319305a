/**
 * The page for people: one HTML file that holds everything it shows, asks nothing of a network and
 * runs no script, so that it can be mailed, archived and printed.
 */
import type { Analysis } from "../analysis.ts";
import { layerTables } from "../attribution-table.ts";
import { capacityTable, searchesTable } from "../capacity-table.ts";
import { startsTable, stormTable } from "../cold-start-table.ts";
import { rotationTable } from "../rotation-table.ts";
import { comparisonTables } from "../table.ts";
import type { Table } from "../tabular.ts";
import { coldStartPlot } from "./cold-start-plot.ts";
import { cpuPlot } from "./cpu-plot.ts";
import type { Evidence } from "./evidence.ts";
import { lossPlots } from "./loss-plot.ts";
import { type Content, Markup, markup, table } from "./markup.ts";
import { percentilePlot } from "./percentile-plot.ts";
import { runsSection } from "./runs.ts";
import { type SeriesStyle, stylesOf } from "./series.ts";
import { sourcesSection } from "./sources.ts";
import { styleSheet } from "./style.ts";
import { summary } from "./summary.ts";
import { topologiesSection } from "./topologies.ts";

/** Nothing may be fetched or run; style elements are the page's own. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/**
 * Renders the page of a campaign.
 *
 * @param analysis what was computed
 * @param evidence documents of the bundle that are shown as they are
 * @returns a whole HTML document; links are relative to the bundle's directory
 */
export function renderHtml(analysis: Analysis, evidence: Evidence): string {
  const { stamp, comparison } = analysis;
  const styles = stylesOf(
    comparison.treatments.map(({ label }) => label),
    stamp.baseline,
  );
  const document = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${stamp.plan} · ztbench report</title>
<style>${new Markup(styleSheet)}</style>
</head>
<body>
<main>
${summary(analysis, evidence)}
${coldStartSection(analysis, styles)}
${plots(analysis, styles)}
${rotationSection(analysis)}
${capacitySection(analysis)}
${layersSection(analysis)}
${furtherSection(evidence)}
${topologiesSection(analysis, evidence)}
${runsSection(analysis, evidence)}
${sourcesSection(evidence)}
</main>
</body>
</html>
`;
  return document.text;
}

function coldStartSection({ coldStarts }: Analysis, styles: readonly SeriesStyle[]): Content {
  if (coldStarts === undefined) return undefined;
  return markup`<section aria-labelledby="cold"><h2 id="cold">Cold starts</h2>
${plainTable(stormTable(coldStarts))}
${coldStartPlot(coldStarts, styles)}
<details><summary>Every start</summary>${plainTable(startsTable(coldStarts))}</details></section>
`;
}

function rotationSection({ rotations }: Analysis): Content {
  if (rotations === undefined) return undefined;
  return markup`<section aria-labelledby="rotations"><h2 id="rotations">Renewed certificates</h2>
${plainTable(rotationTable(rotations))}</section>
`;
}

function capacitySection({ capacities }: Analysis): Content {
  if (capacities === undefined) return undefined;
  return markup`<section aria-labelledby="capacity"><h2 id="capacity">Capacity</h2>
${plainTable(capacityTable(capacities))}
<details><summary>Every search</summary>${plainTable(searchesTable(capacities))}</details></section>
`;
}

function layersSection({ attribution }: Analysis): Content {
  if (attribution === undefined) return undefined;
  return markup`<section aria-labelledby="layers"><h2 id="layers">Layers of cost</h2>
${layerTables(attribution).map(plainTable)}</section>
`;
}

function plots(analysis: Analysis, styles: readonly SeriesStyle[]): Markup {
  const { comparison, curves } = analysis;
  const [, latency, load, matrix] = comparisonTables(analysis, "wide");
  return markup`<section aria-labelledby="blocks"><h2 id="blocks">Every block, with intervals</h2>
<div class="plots three">${lossPlots(analysis, styles)}</div>
<p class="note">Thick line: 95 % interval; dot: estimate; small circles: single blocks. Grey band:
changes that do not matter by the plan. A/A: the baseline's second run against its first.</p>
</section>
<section aria-labelledby="latency"><h2 id="latency">Latency</h2>
<div class="plots two">
${percentilePlot({
  title: "Response by percentile",
  axis: "response, ms",
  caption:
    "From the intended send time; histograms of all valid runs added up. " +
    "A line ends where fewer than 100 requests lie beyond, or where they failed.",
  curves: curves.map(({ label, response }) => ({ label, points: response })),
  styles,
})}
${percentilePlot({
  title: "Generator lag by percentile",
  axis: "lag, ms",
  caption:
    "How late the load driver sent. It is part of every response beside it; " +
    "if it is not the same for all treatments, the comparison is not fair.",
  curves: curves.map(({ label, lag }) => ({ label, points: lag })),
  styles,
})}
</div>
${latency && plainTable(latency)}</section>
<section aria-labelledby="cpu"><h2 id="cpu">CPU</h2>
<div class="plots cpu">${cpuPlot(comparison.treatments)}
<div>${load && plainTable(load)}</div></div></section>
<section aria-labelledby="resources"><h2 id="resources">Connections and resources</h2>
${matrix && plainTable(matrix)}</section>
`;
}

function furtherSection({ furtherTables = [] }: Evidence): Content {
  if (furtherTables.length === 0) return undefined;
  return markup`<section aria-labelledby="further"><h2 id="further">Other figures</h2>
${furtherTables.map(plainTable)}</section>
`;
}

function plainTable({ title, columns, rows, notes }: Table): Markup {
  return markup`${table(title, columns, rows)}
<ul class="note">${notes.map((line) => markup`<li>${line}</li>`)}</ul>
`;
}
