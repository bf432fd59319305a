/** The tables for people, as rows of text; the renderers only lay them out. */
import { type Blocks, type LossMetricId, lossMetricIds } from "./blocks.ts";
import { type Comparison, type Loss, type Treatment } from "./comparison.ts";
import { type MetricId } from "./judged-run.ts";
import { type Noise } from "./noise.ts";
import { none } from "./cell.ts";
import { costTables } from "./attribution-table.ts";
import { capacityTable } from "./capacity-table.ts";
import { stormTable } from "./cold-start-table.ts";
import {
  Footnotes,
  formatCell,
  formatDifference,
  formatRatio,
  formatThroughputLoss,
  formatVerdict,
  formatChange,
} from "./format.ts";
import { describeGate, verdictOf } from "./gates/gate.ts";
import type { RatioEstimate } from "./loss.ts";
import { matrixTable } from "./matrix-table.ts";
import { rotationTable } from "./rotation-table.ts";
import type { Analysis } from "./analysis.ts";
import { describeWarming, type Stamp } from "./stamp.ts";
import { left, right, type Table } from "./tabular.ts";

/** How much room there is: `narrow` leaves out the ranges of secondary columns. */
export type Width = "narrow" | "wide";

/** All tables, the answer first; of cold starts only where there are any, before all others. */
export function tablesOf(analysis: Analysis, width: Width): readonly Table[] {
  const { coldStarts } = analysis;
  const storms = coldStarts === undefined ? [] : [stormTable(coldStarts)];
  const capacities = analysis.capacities === undefined ? [] : [capacityTable(analysis.capacities)];
  const layers = analysis.attribution === undefined ? [] : costTables(analysis.attribution);
  const renewals = analysis.rotations === undefined ? [] : [rotationTable(analysis.rotations)];
  return [...storms, ...comparisonTables(analysis, width), ...renewals, ...layers, ...capacities];
}

/** Loss, latency, load, connections and resources. */
export function comparisonTables(analysis: Analysis, width: Width): readonly Table[] {
  const { comparison, stamp } = analysis;
  return [
    lossTable(comparison, stamp),
    latencyTable(comparison.treatments, width),
    loadTable(comparison.treatments, analysis.softirq),
    matrixTable(comparison.treatments, width),
  ];
}

const metricTitles: Readonly<Record<LossMetricId, string>> = {
  responseP50: "p50",
  responseP99: "p99",
  cpuPerRequest: "CPU",
};

function lossTable(comparison: Comparison, stamp: Stamp): Table {
  const { losses, noise, furtherNoise = {} } = comparison;
  const notes = new Footnotes();
  const several = stamp.ratesQps !== undefined;
  const noises: readonly [string, Noise][] = [
    [several ? `A/A ${stamp.baseline}` : "A/A", noise],
    ...Object.entries(furtherNoise).map(([label, n]): [string, Noise] => [`A/A ${label}`, n]),
  ];
  const rows = losses.flatMap((loss) => lossRows(loss, notes));
  return {
    title:
      (several
        ? "Cost against the baseline of the same rate "
        : `Cost against ${stamp.baseline} at ${stamp.rateQps} requests/s `) +
      `(95 % interval over ${stamp.blocks} paired ${stamp.blocks === 1 ? "block" : "blocks"})`,
    columns: [
      left("treatment"),
      left("metric"),
      right("loss"),
      right("difference"),
      left("verdict"),
      right("MDE"),
      right("blocks"),
    ],
    rows: [...rows, ...noises.flatMap(([label, n]) => noiseRows(label, n, notes))],
    notes: [
      ...notes.lines(),
      `equivalent: the interval lies within ±${(stamp.equivalenceMargin * 100).toFixed(0)} %; ` +
        "MDE: minimum detectable effect, the least loss that so many blocks would show",
      "A/A: second run of the baseline against the first, what noise alone does",
      ...(several ? [] : baselineNotes(losses, stamp)),
      ...coldNotes(comparison.treatments),
      ...biasNotes(noise),
      ...droppedNotes([...losses, ...noises.map(([label, { blocks }]) => ({ label, blocks }))]),
      ...(stamp.ratesQps ?? []).map((rate) => rateNote(rate, comparison.treatments)),
    ],
  };
}

function lossRows(loss: Loss, notes: Footnotes): string[][] {
  const { ratios, differences, coresDifference, blocks } = loss;
  const rows = lossMetricIds.map((id) => {
    const isCpu = id === "cpuPerRequest";
    const difference = formatDifference(differences[id], isCpu ? 1 : 1000, 0, notes);
    return metricRow(id === "responseP50" ? loss.label : "", id, ratios[id], {
      difference: difference.startsWith("-") && difference.includes("(") ? "" : `${difference} µs`,
      blocks,
    });
  });
  const cores = formatDifference(coresDifference, 1, 3, notes);
  return [
    ...rows,
    ["", "cores", "", cores, "", "", ""],
    [
      "",
      "throughput",
      formatThroughputLoss(loss.throughput, notes),
      "",
      verdictOfCapacity(loss.throughput),
      "",
      "",
    ],
  ];

  function metricRow(
    label: string,
    id: LossMetricId,
    ratio: RatioEstimate,
    shown: { difference: string; blocks: Blocks },
  ): string[] {
    return [
      label,
      metricTitles[id],
      formatRatio(ratio, notes),
      shown.difference,
      formatVerdict(ratio),
      detectable(ratio),
      blocksOf(shown.blocks),
    ];
  }
}

/** Less capacity is a loss, as more latency is. */
function verdictOfCapacity(ratio: RatioEstimate): string {
  const verdict = formatVerdict(ratio);
  if (verdict === "-") return "";
  return verdict === "loss" ? "gain" : verdict === "gain" ? "loss" : verdict;
}

/** The title names the plan's baseline; some may be compared with another of the same rate. */
function baselineNotes(losses: readonly Loss[], stamp: Stamp): string[] {
  return losses
    .filter(({ baseline }) => baseline !== stamp.baseline)
    .map(({ label, baseline }) => `${label}: against ${baseline}`);
}

/** A mean over starts of which some storm is no cost that anybody pays each time. */
function coldNotes(treatments: readonly Treatment[]): string[] {
  const labels = treatments.filter((t) => t.condition === "cold-start").map(({ label }) => label);
  return labels.length === 0
    ? []
    : [`${labels.join(", ")}: cold starts; a storm is chance per start, no steady cost`];
}

/** Labels are never parsed, so the rate of each is told. */
function rateNote(rateQps: number, treatments: readonly Treatment[]): string {
  const labels = treatments.filter((t) => t.rateQps === rateQps).map(({ label }) => label);
  return `${rateQps}/s: ${labels.join(", ")}`;
}

function noiseRows(label: string, { ratios, blocks }: Noise, notes: Footnotes): string[][] {
  return lossMetricIds.map((id, index) => [
    index === 0 ? label : "",
    metricTitles[id],
    formatRatio(ratios[id], notes),
    "",
    formatVerdict(ratios[id]),
    detectable(ratios[id]),
    blocksOf(blocks),
  ]);
}

function detectable(ratio: RatioEstimate): string {
  return ratio.kind === "estimate" ? `${formatChange(ratio.detectableRatio)} %` : "";
}

function blocksOf({ complete, dropped }: Blocks): string {
  return `${complete}/${complete + dropped.length}`;
}

/** Noise has no side; an interval beside 1 means that order or drift moved the results. */
function biasNotes({ ratios }: Noise): string[] {
  const biased = lossMetricIds.filter((id) => {
    const ratio = ratios[id];
    return ratio.kind === "estimate" && (ratio.low > 1 || ratio.high < 1);
  });
  const titles = biased.map((id) => metricTitles[id]).join(", ");
  return biased.length === 0
    ? []
    : [`warning: A/A differs from 1 for ${titles}: order or drift biased this campaign`];
}

function droppedNotes(all: readonly { label: string; blocks: Blocks }[]): string[] {
  return all.flatMap(({ label, blocks }) => {
    const missing = [...new Set(blocks.dropped.map(({ lacks }) => lacks))];
    return missing.map((lacks) => {
      const numbers = blocks.dropped.filter((d) => d.lacks === lacks).map(({ block }) => block);
      const subject = numbers.length === 1 ? "block" : "blocks";
      return `${label}: ${subject} ${numbers.join(", ")} left out for lack of ${lacks}`;
    });
  });
}

function latencyTable(treatments: readonly Treatment[], width: Width): Table {
  const notes = new Footnotes();
  const wide = width === "wide";
  const columns: readonly { title: string; id: MetricId; range: boolean }[] = [
    { title: "p50", id: "responseP50", range: true },
    { title: "p95", id: "responseP95", range: wide },
    { title: "p99", id: "responseP99", range: true },
    { title: "p99.9", id: "responseP999", range: wide },
    { title: "max", id: "responseMax", range: wide },
    { title: "service p99", id: "serviceP99", range: wide },
    { title: "lag p99", id: "lagP99", range: wide },
  ];
  return {
    title: "Response from the intended send time, ms (median over runs [least–greatest])",
    columns: [left("treatment"), ...columns.map(({ title }) => right(title))],
    rows: treatments.map(({ label, metrics }) => [
      label,
      ...columns.map(({ id, range }) => formatCell(metrics[id], notes, range)),
    ]),
    notes: [
      ...notes.lines(),
      "service: as the driver reports it; lag: how late the driver sent; response = lag + service",
      "failed and unsent requests rank above all answers; max is that of the answers",
    ],
  };
}

function loadTable(treatments: readonly Treatment[], softirq: string): Table {
  const notes = new Footnotes();
  const kinds = [...new Set(treatments.flatMap((t) => Object.keys(t.cpuPerRequestByKind)))].sort();
  return {
    title: "Load carried and CPU time of the data plane, µs per request",
    columns: [
      left("treatment"),
      right("CPU"),
      ...kinds.map((kind) => right(kind)),
      right("generator"),
      right("conns"),
      right("sent"),
      right("errors"),
      right("valid runs"),
    ],
    rows: treatments.map(({ label, metrics, cpuPerRequestByKind, connections, requests, runs }) => [
      label,
      formatCell(metrics.cpuPerRequest, notes, true),
      ...kinds.map((kind) =>
        kind in cpuPerRequestByKind || runs.valid === 0
          ? formatCell(cpuPerRequestByKind[kind] ?? none("no valid run"), notes, false)
          : "",
      ),
      formatCell(metrics.generatorShare, notes, false),
      formatCell(connections, notes, false),
      formatCell(metrics.sentShare, notes, false),
      runs.valid === 0 ? "" : `${requests.failed} of ${requests.sent}`,
      `${runs.valid}/${runs.planned}`,
    ]),
    notes: [
      ...notes.lines(),
      "conns: established to the entry when measuring began, as the kernel of the load host told",
      `generator: busy share of its own CPUs; ${softirq}`,
    ],
  };
}

/** Runs that are not used, or used with a warning, each with the gates it failed. */
export function judgementsOf(analysis: Analysis): readonly string[] {
  const judged = analysis.runs
    .filter(({ verdict }) => verdict !== "VALID")
    .map(({ name, verdict, gates }) => {
      const failed = gates.filter(({ outcome }) => outcome === "invalid" || outcome === "warn");
      return `${verdict} ${name}: ${failed.map(describeGate).join("; ")}`;
    });
  const campaign = analysis.campaignGates
    .filter(({ outcome }) => outcome === "invalid" || outcome === "warn")
    .map((gate) => `${verdictOf([gate])} campaign: ${describeGate(gate)}`);
  return [...campaign, ...judged, ...analysis.notRun.map((key) => `NOT RUN ${key}`)];
}

/** What the numbers were measured on and with. */
export function stampLines(stamp: Stamp): readonly string[] {
  const rates = stamp.ratesQps?.join(", ") ?? String(stamp.rateQps);
  const commit = `${stamp.commit.slice(0, 12)}${stamp.dirty ? " with local changes" : ""}`;
  const tuning = stamp.tuningProfile === undefined ? "" : `tuning ${stamp.tuningProfile}, `;
  return [
    `${stamp.date}, testbed ${stamp.testbed} (${stamp.testbedClass}), ` +
      `${tuning}scheduling ${stamp.scheduling}, commit ${commit}`,
    `version set ${stamp.versionSet}: ${stamp.versions.join(", ") || "no program is recorded"}`,
    `driver ${stamp.drivers.join(", ")}, arrival ${stamp.arrivals.join(", ")}, ` +
      `${rates}/s for ${stamp.durationSeconds} s ${describeWarming(stamp)}, ` +
      `${stamp.connections} connections`,
    `${stamp.blocks} ${stamp.blocks === 1 ? "block" : "blocks"} in seeded random order ` +
      `(seed ${stamp.seed}), plan sha256 ${stamp.planSha256.slice(0, 12)}`,
    ...(stamp.standIns.length === 0
      ? []
      : [`stand-ins (upstream: not exercised here): ${stamp.standIns.join(", ")}`]),
    ...stamp.warnings.map((warning) => `warning: ${warning}`),
  ];
}
