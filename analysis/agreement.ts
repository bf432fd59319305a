/**
 * Whether two campaigns agree: per treatment and metric, by losses and their intervals, and only
 * where the settings are the same; each that differs is named.
 */
import type { Analysis } from "./analysis.ts";
import { type LossMetricId, lossMetricIds } from "./blocks.ts";
import type { Loss } from "./comparison.ts";
import type { RatioEstimate } from "./loss.ts";
import { type CampaignSettings, type SettingDifference, settingDifferences } from "./settings.ts";

export type AgreementVerdict = "AGREE" | "DISAGREE" | "UNDERPOWERED" | "NOT COMPARABLE";

export type AgreementRow = {
  readonly label: string;
  readonly metric: LossMetricId;
  readonly verdict: AgreementVerdict;
  readonly a: RatioEstimate;
  readonly b: RatioEstimate;
  /** ln(ratio a) - ln(ratio b), where both have one. */
  readonly differenceLog?: number;
  /** What two campaigns of this spread may differ by: sqrt(h_a^2 + h_b^2), or ln 1.02. */
  readonly toleranceLog?: number;
  /** Why it is not comparable, or cannot be told. */
  readonly reason?: string;
};

export type Agreement = {
  readonly schema: "ztbench/agreement/1";
  readonly rows: readonly AgreementRow[];
  /** Settings of the campaigns that should be equal and are not. */
  readonly campaignDifferences: readonly SettingDifference[];
  /** The same of treatments, by label. */
  readonly treatmentDifferences: Readonly<Record<string, readonly SettingDifference[]>>;
  /** What else differs; it does not stand against a comparison, but a reader must know. */
  readonly told: readonly SettingDifference[];
  readonly conclusion: AgreementVerdict;
};

export type CampaignSide = { readonly analysis: Analysis; readonly settings: CampaignSettings };

/** Results of benchmarks that differ by less are not "materially different" (MLPerf's auditors). */
export const materialRatio = 1.02;

const missing = (side: string): RatioEstimate => ({ kind: "none", reason: `not in ${side}` });

/** Compares all treatments that either of two campaigns holds against a baseline. */
export function compareCampaigns(a: CampaignSide, b: CampaignSide): Agreement {
  const campaignDifferences = settingDifferences(a.settings.campaign, b.settings.campaign);
  const losses = (side: CampaignSide) => side.analysis.comparison.losses;
  const labels = [...new Set([...losses(a), ...losses(b)].map(({ label }) => label))];
  const differences = new Map(
    labels.map((label) => [label, differencesOf(label, a.settings, b.settings)]),
  );
  const margin = Math.min(a.analysis.stamp.equivalenceMargin, b.analysis.stamp.equivalenceMargin);
  const rows = labels.flatMap((label) => {
    const [lossA, lossB] = [a, b].map((side) => losses(side).find((l) => l.label === label));
    const settings = [...campaignDifferences, ...(differences.get(label) ?? [])];
    const keys = settings.map(({ key }) => key);
    return lossMetricIds.map((metric) => rowOf({ label, metric, lossA, lossB, keys, margin }));
  });
  return {
    schema: "ztbench/agreement/1",
    rows,
    campaignDifferences,
    treatmentDifferences: Object.fromEntries([...differences].filter(([, d]) => d.length > 0)),
    told: settingDifferences(a.settings.told, b.settings.told),
    conclusion: concludeFrom(rows),
  };
}

type Paired = {
  readonly label: string;
  readonly metric: LossMetricId;
  readonly lossA: Loss | undefined;
  readonly lossB: Loss | undefined;
  readonly keys: readonly string[];
  readonly margin: number;
};

function rowOf({ label, metric, lossA, lossB, keys, margin }: Paired): AgreementRow {
  const a = lossA?.ratios[metric] ?? missing("A");
  const b = lossB?.ratios[metric] ?? missing("B");
  const both = lossA !== undefined && lossB !== undefined;
  const base = { label, metric, a, b };
  if (both && keys.length > 0) {
    return { ...base, verdict: "NOT COMPARABLE", reason: otherSettings(keys) };
  }
  return { ...base, ...judgeAgreement(a, b, margin) };
}

/**
 * They agree if |ln a - ln b| <= sqrt(h_a^2 + h_b^2), h being half the interval of the logarithm,
 * or if they lie within 2 %. If that allows for more than what either of them found, and for more
 * than what matters, a campaign that found nothing would agree as well: then it cannot be told.
 *
 * @param margin smallest relative change that matters
 */
export function judgeAgreement(
  a: RatioEstimate,
  b: RatioEstimate,
  margin: number,
): Pick<AgreementRow, "verdict" | "differenceLog" | "toleranceLog" | "reason"> {
  if (a.kind === "none" || b.kind === "none") {
    const reason = a.kind === "none" ? a.reason : b.kind === "none" ? b.reason : "";
    return { verdict: "NOT COMPARABLE", reason };
  }
  const differenceLog = Math.log(a.ratio) - Math.log(b.ratio);
  if (a.kind === "point" || b.kind === "point") {
    return { verdict: "UNDERPOWERED", differenceLog, reason: "one block has no interval" };
  }
  const half = (e: { low: number; high: number }) => (Math.log(e.high) - Math.log(e.low)) / 2;
  const toleranceLog = Math.max(Math.hypot(half(a), half(b)), Math.log(materialRatio));
  const found = { differenceLog, toleranceLog };
  if (Math.abs(differenceLog) > toleranceLog) return { ...found, verdict: "DISAGREE" };
  const effects = [a, b].map(({ ratio }) => Math.abs(Math.log(ratio)));
  const blind = toleranceLog > Math.max(...effects, Math.log(1 + margin));
  return blind
    ? { ...found, verdict: "UNDERPOWERED", reason: "no loss at all would agree, too" }
    : { ...found, verdict: "AGREE" };
}

function differencesOf(
  label: string,
  a: CampaignSettings,
  b: CampaignSettings,
): readonly SettingDifference[] {
  const [own, other] = [a.treatments.get(label), b.treatments.get(label)];
  // Which of the two lacks it is told by its estimates.
  return own === undefined || other === undefined ? [] : settingDifferences(own, other);
}

/** A footnote has room for some; the list under the table has more, and --json has all. */
const keysTold = 6;

function otherSettings(keys: readonly string[]): string {
  const more = keys.length - keysTold;
  const told = keys.slice(0, keysTold).join(", ");
  return `other settings: ${told}${more > 0 ? `, and ${more} more` : ""}`;
}

/** The worst of all rows but those of which neither has a figure; nothing is not comparable. */
function concludeFrom(rows: readonly AgreementRow[]): AgreementVerdict {
  const order = ["NOT COMPARABLE", "DISAGREE", "UNDERPOWERED", "AGREE"] as const;
  const told = rows.filter(({ a, b }) => a.kind !== "none" || b.kind !== "none");
  return order.find((v) => told.some(({ verdict }) => verdict === v)) ?? "NOT COMPARABLE";
}
