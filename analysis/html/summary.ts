/** The first screen: the answer in a sentence, the table behind it, what it was measured on. */
import type { Analysis } from "../analysis.ts";
import type { Cell } from "../cell.ts";
import { type Blocks, type LossMetricId, lossMetricIds } from "../blocks.ts";
import { type Loss } from "../comparison.ts";
import { formatChange, formatNumber, signed } from "../format.ts";
import { describeGate } from "../gates/gate.ts";
import type { DifferenceEstimate, RatioEstimate } from "../loss.ts";
import { deploymentOf, describePath, type Evidence } from "./evidence.ts";
import { type Content, type Markup, markup, unbroken } from "./markup.ts";
import { stampList } from "./stamp.ts";
import { headline } from "./verdict.ts";

const metricTitles: Readonly<Record<LossMetricId, string>> = {
  responseP50: "p50 latency",
  responseP99: "p99 latency",
  cpuPerRequest: "CPU per request",
};

const marks: Readonly<Record<string, string>> = {
  loss: "▲",
  gain: "▼",
  equivalent: "=",
  inconclusive: "?",
};

/** Headline, banner, table and stamp. */
export function summary(analysis: Analysis, evidence: Evidence): Markup {
  const { stamp } = analysis;
  return markup`<header>
<p class="kicker">ztbench · ${stamp.plan} · ${stamp.date}</p>
<h1>${unbroken(headline(analysis))}</h1>
<p class="lead">${purpose(analysis)}</p>
${notices(analysis)}</header>
<div class="summary">
<section aria-labelledby="cost"><h2 id="cost">Cost against ${against(analysis)}</h2>
${costTable(analysis, evidence)}
${readingNotes(analysis)}</section>
<aside aria-labelledby="measured"><h2 id="measured">Measured</h2>
${stampList(analysis, evidence)}</aside>
</div>
`;
}

function purpose({ stamp, comparison }: Analysis): Content {
  const treatments = comparison.treatments.length - 1;
  const ways = treatments === 1 ? "One way" : `${treatments} ways`;
  return markup`${ways} of authenticating service-to-service requests, each against
<b>${stamp.baseline}</b> in the same ${stamp.blocks === 1 ? "block" : `${stamp.blocks} blocks`}.
Purpose: ${stamp.purpose}.`;
}

function against({ stamp }: Analysis): string {
  return stamp.ratesQps === undefined
    ? `${stamp.baseline} at ${stamp.rateQps} requests/s`
    : "the baseline of the same rate";
}

/** What a reader must know before any number. */
function notices(analysis: Analysis): Markup {
  const { stamp, comparison, runs, notRun } = analysis;
  const invalid = runs.filter(({ verdict }) => verdict === "INVALID").length;
  const warned = runs.filter(({ verdict }) => verdict === "WARN").length;
  const biased = lossMetricIds.filter((id) => {
    const ratio = comparison.noise.ratios[id];
    return ratio.kind === "estimate" && (ratio.low > 1 || ratio.high < 1);
  });
  const bias = biased.map((id) => metricTitles[id]).join(", ");
  const items: Content[] = [
    ...(stamp.banner === undefined ? [] : [markup`<li class="strong">${stamp.banner}</li>`]),
    ...(biased.length === 0
      ? []
      : [markup`<li class="strong">biased: the baseline differs from itself in ${bias}</li>`]),
    ...analysis.campaignGates
      .filter(({ outcome }) => outcome === "invalid" || outcome === "warn")
      .map((gate) => markup`<li class="strong">campaign: ${describeGate(gate)}</li>`),
    ...(invalid === 0
      ? []
      : [markup`<li><a href="#runs">${plural(invalid, "run")} invalid</a>, in no number</li>`]),
    ...(warned === 0
      ? []
      : [markup`<li><a href="#runs">${plural(warned, "run")}</a> with a warning</li>`]),
    ...(notRun.length === 0
      ? []
      : [markup`<li>${plural(notRun.length, "planned run")} not run</li>`]),
    ...stamp.warnings.map((warning) => markup`<li>${warning}</li>`),
  ];
  return items.length === 0
    ? markup``
    : markup`<ul class="notices" aria-label="Notices">${items}</ul>
`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function costTable(analysis: Analysis, evidence: Evidence): Markup {
  const { comparison } = analysis;
  const { losses, noise, furtherNoise = {}, treatments } = comparison;
  const baselines = treatments.filter(({ label }) => !losses.some((loss) => loss.label === label));
  const noises = [[analysis.stamp.baseline, noise] as const, ...Object.entries(furtherNoise)];
  const rows: Markup[] = [
    ...baselines.map(({ label, metrics, runs }) =>
      row(
        "baseline",
        [label, path(evidence, label)],
        lossMetricIds.map((id) => absolute(metrics[id])),
        markup`<span title="valid runs of planned ones">${runs.valid}/${runs.planned} runs</span>`,
      ),
    ),
    ...losses.map((loss) =>
      row(
        "treatment",
        [loss.label, path(evidence, loss.label)],
        lossMetricIds.map((id) => relative(loss, id)),
        blocksOf(loss.blocks),
      ),
    ),
    ...noises.map(([label, { ratios, blocks }]) =>
      row(
        "noise",
        [`A/A`, markup`<span class="path">second ${label}: noise alone</span>`],
        lossMetricIds.map((id) => change(ratios[id])),
        blocksOf(blocks),
      ),
    ),
  ];
  const heads = lossMetricIds.map((id) => markup`<th scope="col">${metricTitles[id]}</th>`);
  return markup`<div class="scroll" tabindex="0"><table class="cost">
<caption class="hidden">Change with its 95 % interval, difference, verdict</caption>
<thead><tr><th scope="col">treatment</th>${heads}<th scope="col">blocks</th></tr></thead>
<tbody>${rows}</tbody></table></div>
`;
}

function row(kind: string, name: Content, cells: readonly Content[], blocks: Content): Markup {
  const columns = cells.map((cell, i) => {
    const id = lossMetricIds[i];
    const label = id === undefined ? "" : metricTitles[id];
    return markup`<td data-label="${label}"><div>${cell}</div></td>`;
  });
  return markup`<tr class="${kind}"><th scope="row">${name}</th>${columns}
<td data-label="blocks"><div>${blocks}</div></td></tr>
`;
}

function path(evidence: Evidence, label: string): Content {
  const deployment = deploymentOf(evidence, label);
  return deployment && markup`<span class="path">${describePath(deployment)}</span>`;
}

function blocksOf({ complete, dropped }: Blocks): string {
  return `${complete}/${complete + dropped.length}`;
}

/** What the baseline itself takes: median over its runs, with least and greatest. */
function absolute(cell: Cell): Content {
  if (cell.kind === "none") return none(cell.reason);
  const unit = cell.unit === "ns" ? "ms" : "µs";
  const { interval } = cell;
  const shown = (number: number): string => formatNumber(number, cell.unit);
  return [
    markup`<b>${shown(cell.value)} ${unit}</b>`,
    interval && range(`runs ${shown(interval.low)}–${shown(interval.high)}`),
  ];
}

function range(text: string): Markup {
  return markup`<span class="range">${text}</span>`;
}

function relative(loss: Loss, id: LossMetricId): Content {
  const ratio = loss.ratios[id];
  return ratio.kind === "none"
    ? none(ratio.reason)
    : [change(ratio), difference(loss.differences[id], id === "cpuPerRequest" ? 1 : 1000)];
}

function change(ratio: RatioEstimate): Content {
  switch (ratio.kind) {
    case "none":
      return none(ratio.reason);
    case "point":
      return [
        markup`<b>${formatChange(ratio.ratio)} %</b> ${badge("inconclusive")}`,
        range(`${ratio.reason}, no interval`),
      ];
    case "estimate": {
      const bounds = `[${formatChange(ratio.low)}, ${formatChange(ratio.high)}] %`;
      return [markup`<b>${formatChange(ratio.ratio)} %</b> ${badge(ratio.verdict)}`, range(bounds)];
    }
  }
}

function badge(verdict: string): Markup {
  return markup`<span class="badge ${verdict}"><span aria-hidden="true">${marks[verdict]}</span>
${verdict}</span>`;
}

function difference(estimate: DifferenceEstimate, scale: number): Content {
  if (estimate.kind === "none") return none(estimate.reason);
  const shown = (number: number): string => signed(number / scale, 0);
  const interval =
    estimate.kind === "point" ? "" : ` [${shown(estimate.low)}, ${shown(estimate.high)}]`;
  return range(`${shown(estimate.mean)} µs${interval}`);
}

function none(reason: string): Markup {
  return markup`<span class="none">${reason}</span>`;
}

function readingNotes({ stamp }: Analysis): Markup {
  const margin = `±${(stamp.equivalenceMargin * 100).toFixed(0)} %`;
  return markup`<p class="note"><b>loss</b>, <b>gain</b>: the whole interval lies beyond ${margin}.
<b>equivalent</b>: it lies within. <b>inconclusive</b>: it crosses the edge, more blocks are needed.
Latency counts from when a request was due to be sent, not from when it left.</p>
`;
}
