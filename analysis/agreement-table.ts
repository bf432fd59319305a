/** The agreement of two campaigns as text for a terminal and as JSON. */
import type { Agreement, AgreementRow } from "./agreement.ts";
import type { LossMetricId } from "./blocks.ts";
import { Footnotes, formatChange, formatRatio } from "./format.ts";
import type { SettingDifference } from "./settings.ts";
import { left, right, type Table } from "./tabular.ts";
import { joinBlocks, layOut } from "./text.ts";

const titles: Readonly<Record<LossMetricId, string>> = {
  responseP50: "p50",
  responseP99: "p99",
  cpuPerRequest: "CPU",
};

/** More lines than this about builds and facts hide the rest; JSON has them all. */
const toldMax = 30;

/** Renders verdicts, then every setting that differs; at most 100 columns wide. */
export function renderAgreement(agreement: Agreement): string {
  const { campaignDifferences, treatmentDifferences, told } = agreement;
  const blocks = [
    layOut(agreementTable(agreement)),
    ...settingLines("Settings that differ and stand against a comparison", campaignDifferences),
    ...Object.entries(treatmentDifferences).flatMap(([label, differences]) =>
      settingLines(`The same, of ${label} alone`, differences),
    ),
    ...settingLines("What else differs", told),
    [`conclusion: ${agreement.conclusion}`],
  ];
  return joinBlocks(blocks);
}

function settingLines(title: string, differences: readonly SettingDifference[]): string[][] {
  if (differences.length === 0) return [];
  const shown = differences.slice(0, toldMax);
  const more = differences.length - shown.length;
  const lines = shown.map(({ key, a, b }) => `  ${key}: ${a} in A, ${b} in B`);
  return [[title, ...lines, ...(more > 0 ? [`  and ${more} more, see --json`] : [])]];
}

function agreementTable({ rows }: Agreement): Table {
  const notes = new Footnotes();
  return {
    title: "Losses of two campaigns against their own baselines",
    columns: [
      left("treatment"),
      left("metric"),
      right("A"),
      right("B"),
      right("apart"),
      right("may be"),
      left("verdict"),
    ],
    rows: rows.map((row) => [
      row.label,
      titles[row.metric],
      formatRatio(row.a, notes),
      formatRatio(row.b, notes),
      row.differenceLog === undefined ? "" : percent(Math.abs(row.differenceLog)),
      row.toleranceLog === undefined ? "" : percent(row.toleranceLog),
      verdictOf(row, notes),
    ]),
    notes: [
      ...notes.lines(),
      "apart: ratio of the two losses; may be: what their intervals, or 2 %, allow for",
      "UNDERPOWERED: within that, but so wide that a campaign without any loss would be, too",
    ],
  };
}

function verdictOf({ verdict, reason, a, b }: AgreementRow, notes: Footnotes): string {
  // A missing figure already points to its reason.
  if (reason === undefined || a.kind === "none" || b.kind === "none") return verdict;
  return `${verdict} ${notes.reference(reason)}`;
}

function percent(log: number): string {
  return `${formatChange(Math.exp(log)).replace("+", "")} %`;
}
