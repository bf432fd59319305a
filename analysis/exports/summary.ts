/** The verdicts of a campaign in a few lines of Markdown, for the summary page of a CI job. */
import type { Analysis } from "../analysis.ts";
import type { Loss } from "../comparison.ts";
import type { LossMetricId } from "../blocks.ts";
import { Footnotes, formatRatio, formatVerdict } from "../format.ts";
import { escape, renderTable } from "../markdown.ts";
import { judgementsOf, stampLines } from "../table.ts";
import type { Table } from "../tabular.ts";

/** More lines than this belong into the report. */
const judgementsMax = 10;

/** Renders verdict table, stamp and warnings; the rest is in loss.md. */
export function renderSummary(analysis: Analysis): string {
  const { stamp } = analysis;
  const judgements = judgementsOf(analysis);
  const shown = judgements.slice(0, judgementsMax);
  const more = judgements.length - shown.length;
  return [
    `## ztbench: ${escape(stamp.plan)}\n`,
    ...(stamp.banner === undefined ? [] : [`> **${escape(stamp.banner)}**\n`]),
    renderTable(verdictTable(analysis)),
    ...(shown.length === 0
      ? []
      : [
          `<details><summary>${judgements.length} runs left out or warned about</summary>\n`,
          ...shown.map((line) => `- ${escape(line)}`),
          ...(more === 0 ? [] : [`- and ${more} more, see loss.md`]),
          "\n</details>\n",
        ]),
    stampLines(stamp)
      .map((line) => `${escape(line)}  \n`)
      .join(""),
  ].join("\n");
}

function verdictTable({ comparison, stamp }: Analysis): Table {
  const notes = new Footnotes();
  const rate = stamp.ratesQps === undefined ? `${stamp.rateQps}/s` : "equal rates";
  const left = (title: string) => ({ title, align: "left" as const });
  const right = (title: string) => ({ title, align: "right" as const });
  const cells = (ratios: Loss["ratios"]) =>
    (["responseP50", "responseP99", "cpuPerRequest"] satisfies LossMetricId[]).map((id) =>
      formatRatio(ratios[id], notes),
    );
  const noises = Object.entries({ [stamp.baseline]: comparison.noise, ...comparison.furtherNoise });
  return {
    title: `Cost against ${stamp.ratesQps === undefined ? stamp.baseline : "baseline"} at ${rate}`,
    columns: [
      left("treatment"),
      right("p50"),
      right("p99"),
      right("CPU per request"),
      left("verdict on p99"),
    ],
    rows: [
      ...comparison.losses.map(({ label, ratios }) => [
        label,
        ...cells(ratios),
        formatVerdict(ratios.responseP99),
      ]),
      ...noises.map(([label, { ratios }]) => [
        `A/A ${label}`,
        ...cells(ratios),
        formatVerdict(ratios.responseP99),
      ]),
    ],
    notes: [...notes.lines(), "with 95 % intervals; A/A is what noise alone does"],
  };
}
