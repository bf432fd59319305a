/** The answer of a campaign in one sentence of plain words. */
import type { Analysis } from "../analysis.ts";
import type { Loss } from "../comparison.ts";
import type { LossMetricId } from "../blocks.ts";
import { formatChange } from "../format.ts";
import type { RatioEstimate } from "../loss.ts";

const quantiles = { responseP99: "p99", responseP50: "p50" } as const;
type LatencyMetricId = keyof typeof quantiles & LossMetricId;

/** The quantile that the sentence is about: p99, or p50 where no treatment has a p99. */
export function headlineMetric({ comparison: { losses } }: Analysis): LatencyMetricId {
  return losses.some(({ ratios }) => ratios.responseP99.kind !== "none")
    ? "responseP99"
    : "responseP50";
}

/** One sentence that says which treatments are slower, faster, equal or undecided. */
export function headline(analysis: Analysis): string {
  const { comparison, stamp } = analysis;
  const metric = headlineMetric(analysis);
  const named = comparison.losses.map((loss) => ({ loss, ratio: loss.ratios[metric] }));
  if (named.length === 0) return `Only ${stamp.baseline} was measured, so nothing is compared.`;
  if (named.every(({ ratio }) => ratio.kind === "none")) {
    return "No verdict: not one treatment has a complete block of valid runs.";
  }
  const quantile = quantiles[metric];
  const where = stamp.ratesQps === undefined ? `At ${stamp.rateQps} requests/s` : "At equal rates";
  const clauses = clausesOf(named, analysis);
  const isEstimated = named.some(({ ratio }) => ratio.kind === "estimate");
  const bounds = isEstimated ? " Ranges are 95 % intervals." : "";
  return `${where}, ${quantile} latency ${clauses.join("; it ")}.${bounds}`;
}

type Named = { readonly loss: Loss; readonly ratio: RatioEstimate };

function clausesOf(named: readonly Named[], { stamp }: Analysis): string[] {
  const of = (verdict: string): Named[] =>
    named
      .filter(({ ratio }) => ratio.kind === "estimate" && ratio.verdict === verdict)
      .sort((a, b) => sizeOf(b.ratio) - sizeOf(a.ratio));
  const margin = `±${(stamp.equivalenceMargin * 100).toFixed(0)} %`;
  const labels = (some: readonly Named[]): string => list(some.map(({ loss }) => loss.label));
  const changes = (some: readonly Named[]): string =>
    list(some.map(({ loss, ratio }) => `by ${percent(ratio)} with ${loss.label}`));
  const [losses, gains] = [of("loss"), of("gain")];
  const [equal, open] = [of("equivalent"), of("inconclusive")];
  const points = named.filter(({ ratio }) => ratio.kind === "point");
  const missing = named.filter(({ ratio }) => ratio.kind === "none");
  return [
    ...(losses.length > 0 ? [`rises ${changes(losses)}`] : []),
    ...(gains.length > 0 ? [`falls ${changes(gains)}`] : []),
    ...(equal.length > 0
      ? [`stays within ${margin} of ${stamp.baseline} with ${labels(equal)}`]
      : []),
    ...(open.length > 0 ? [`is undecided for ${labels(open)}`] : []),
    ...(points.length > 0 ? [`has no verdict from a single block: ${shown(points)}`] : []),
    ...(missing.length > 0 ? [`has no result for ${list(missing.map(unmeasured))}`] : []),
  ];
}

function unmeasured({ loss, ratio }: Named): string {
  return ratio.kind === "none" ? `${loss.label} (${ratio.reason})` : loss.label;
}

function shown(points: readonly Named[]): string {
  return list(
    points.map(({ loss, ratio }) => `${formatChange(sizeOf(ratio))} % with ${loss.label}`),
  );
}

function sizeOf(ratio: RatioEstimate): number {
  return ratio.kind === "none" ? 1 : ratio.ratio;
}

/** Both ends of the interval, the smaller change first: a point alone would claim too much. */
function percent(ratio: RatioEstimate): string {
  const ends = ratio.kind === "estimate" ? [ratio.low, ratio.high] : [sizeOf(ratio)];
  if (sizeOf(ratio) < 1) ends.reverse();
  return `${ends.map((end) => formatChange(end).replace(/^[+-]/, "")).join(" to ")} %`;
}

/** `a`, `a and b`, `a, b and c`. */
export function list(items: readonly string[]): string {
  const last = items.at(-1) ?? "";
  return items.length < 2 ? last : `${items.slice(0, -1).join(", ")} and ${last}`;
}
