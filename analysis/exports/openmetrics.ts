/** The comparison as OpenMetrics text, for Prometheus and whatever else reads it. */
import type { Analysis } from "../analysis.ts";
import { type Cell, numberOf } from "../cell.ts";
import { type LossMetricId, lossMetricIds } from "../blocks.ts";
import { type MetricId } from "../judged-run.ts";
import { type Treatment } from "../comparison.ts";
import type { RatioEstimate } from "../loss.ts";

type Labels = Readonly<Record<string, string>>;
type Sample = { readonly suffix?: string; readonly labels: Labels; readonly value: number };
type Family = {
  /** Ends in its unit, as the format wants. */
  readonly name: string;
  readonly type: "gauge" | "info";
  readonly unit?: string;
  readonly help: string;
  readonly samples: readonly Sample[];
};

/** Renders what has a number; what has none has no sample. Ends with `# EOF`. */
export function renderOpenMetrics(analysis: Analysis): string {
  const families = [
    campaignFamily(analysis),
    ...latencyFamilies(analysis.comparison.treatments),
    ...loadFamilies(analysis.comparison.treatments),
    runsFamily(analysis),
    lossFamily(analysis),
  ].filter(({ samples }) => samples.length > 0);
  return [...families.flatMap(renderFamily), "# EOF", ""].join("\n");
}

function campaignFamily({ stamp }: Analysis): Family {
  const { plan, testbed, testbedClass, versionSet, commit, date, planSha256 } = stamp;
  return {
    name: "ztbench_campaign",
    type: "info",
    help: "What was measured, when and on what.",
    samples: [
      {
        suffix: "_info",
        labels: {
          plan,
          testbed,
          testbed_class: testbedClass,
          version_set: versionSet,
          commit,
          date,
          plan_sha256: planSha256,
          comparable_to_bare_metal: testbedClass === "metal" ? "yes" : "no",
        },
        value: 1,
      },
    ],
  };
}

const quantiles = { P50: "0.5", P95: "0.95", P99: "0.99", P999: "0.999" } as const;

function latencyFamilies(treatments: readonly Treatment[]): Family[] {
  const series = [
    ["response", "Latency from the intended send time, median over valid runs."],
    ["service", "Latency as the load driver reports it, median over valid runs."],
    ["lag", "How late the load driver sent, median over valid runs."],
  ] as const;
  return series.map(([name, help]) => ({
    name: `ztbench_${name}_seconds`,
    type: "gauge",
    unit: "seconds",
    help,
    samples: treatments.flatMap((treatment) =>
      Object.entries(quantiles).flatMap(([key, quantile]) => {
        const cell = (treatment.metrics as Readonly<Record<string, Cell>>)[`${name}${key}`];
        return cell === undefined ? [] : sampleOf(cell, 1e-9, { ...labelsOf(treatment), quantile });
      }),
    ),
  }));
}

function loadFamilies(treatments: readonly Treatment[]): Family[] {
  const family = (
    id: MetricId,
    name: string,
    unit: string,
    factor: number,
    help: string,
  ): Family => ({
    name: `ztbench_${name}_${unit}`,
    type: "gauge",
    unit,
    help,
    samples: treatments.flatMap((t) => sampleOf(t.metrics[id], factor, labelsOf(t))),
  });
  return [
    family("cpuPerRequest", "cpu_per_request", "seconds", 1e-6, "CPU time of the data plane."),
    family("cores", "data_plane", "cores", 1, "CPUs that the data plane kept busy."),
    family("generatorShare", "generator_busy", "ratio", 1, "Of the load driver's own CPUs."),
    family("sentShare", "sent", "ratio", 1, "Requests sent of those planned."),
    family("failedShare", "failed", "ratio", 1, "Requests failed of those sent."),
  ];
}

function runsFamily({ comparison, runs }: Analysis): Family {
  return {
    name: "ztbench_runs",
    type: "gauge",
    help: "Runs by verdict; invalid ones take no part in any other metric.",
    samples: comparison.treatments.flatMap((treatment) =>
      (["VALID", "WARN", "INVALID"] as const).map((verdict) => ({
        labels: { ...labelsOf(treatment), verdict: verdict.toLowerCase() },
        value: runs.filter((run) => run.label === treatment.label && run.verdict === verdict)
          .length,
      })),
    ),
  };
}

const lossNames: Readonly<Record<LossMetricId, string>> = {
  responseP50: "response_p50",
  responseP99: "response_p99",
  cpuPerRequest: "cpu_per_request",
};

function lossFamily({ comparison }: Analysis): Family {
  return {
    name: "ztbench_loss_ratio",
    type: "gauge",
    unit: "ratio",
    help: "Treatment over baseline at equal rate, less one; low and high bound the 95 % interval.",
    samples: comparison.losses.flatMap(({ label, ratios }) =>
      lossMetricIds.flatMap((id) =>
        boundsOf(ratios[id]).map(([bound, ratio]) => ({
          labels: { treatment: label, metric: lossNames[id], bound },
          value: Number((ratio - 1).toPrecision(9)),
        })),
      ),
    ),
  };
}

function boundsOf(estimate: RatioEstimate): [string, number][] {
  if (estimate.kind === "none") return [];
  const point: [string, number] = ["estimate", estimate.ratio];
  if (estimate.kind === "point") return [point];
  return [point, ["low", estimate.low], ["high", estimate.high]];
}

function labelsOf({ label, topology, driver, rateQps }: Treatment): Labels {
  return { treatment: label, topology, driver, rate_qps: String(rateQps) };
}

function sampleOf(cell: Cell, factor: number, labels: Labels): Sample[] {
  const number = numberOf(cell);
  return number === undefined ? [] : [{ labels, value: Number((number * factor).toPrecision(9)) }];
}

function renderFamily({ name, type, unit, help, samples }: Family): string[] {
  return [
    `# TYPE ${name} ${type}`,
    ...(unit === undefined ? [] : [`# UNIT ${name} ${unit}`]),
    `# HELP ${name} ${escape(help)}`,
    ...samples.map(({ suffix = "", labels, value }) => {
      const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escape(text)}"`);
      return `${name}${suffix}{${pairs.join(",")}} ${value}`;
    }),
  ];
}

function escape(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
