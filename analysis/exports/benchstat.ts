/**
 * The valid runs as Go benchmark text, for benchstat: one line a run, so that it does its own
 * statistics. `benchstat -col /treatment -row .name -ignore /arm FILE` compares treatments,
 * `benchstat OLD NEW` two campaigns.
 */
import type { Analysis } from "../analysis.ts";
import { type Cell, numberOf } from "../cell.ts";
import { type JudgedRun, type MetricId, metricsOf } from "../judged-run.ts";

type Column = {
  readonly id: MetricId;
  readonly unit: string;
  /** From the unit of the cell to that of the column. */
  readonly factor: number;
  readonly better: "lower" | "higher";
};

/** Nanoseconds throughout: benchstat scales them itself. A `/op` is a request. */
const columns: readonly Column[] = [
  { id: "responseP50", unit: "p50-ns", factor: 1, better: "lower" },
  { id: "responseP95", unit: "p95-ns", factor: 1, better: "lower" },
  { id: "responseP99", unit: "p99-ns", factor: 1, better: "lower" },
  { id: "responseP999", unit: "p99.9-ns", factor: 1, better: "lower" },
  { id: "serviceP50", unit: "service-p50-ns", factor: 1, better: "lower" },
  { id: "serviceP99", unit: "service-p99-ns", factor: 1, better: "lower" },
  { id: "lagP99", unit: "lag-p99-ns", factor: 1, better: "lower" },
  { id: "cpuPerRequest", unit: "cpu-ns/op", factor: 1000, better: "lower" },
  { id: "cores", unit: "cores", factor: 1, better: "lower" },
  { id: "sentShare", unit: "sent-share", factor: 1, better: "higher" },
  { id: "failedShare", unit: "failed-share", factor: 1, better: "lower" },
];

/**
 * Renders valid runs, the baseline's first, since benchstat compares with what it meets first.
 * What a run has no number for is left out of its line. Invalid runs are named in comments only,
 * since benchstat would average them.
 */
export function renderBenchstat({ stamp, runs, comparison }: Analysis): string {
  const labels = [stamp.baseline, ...comparison.treatments.map(({ label }) => label)];
  const place = ({ label }: JudgedRun): number => labels.indexOf(label);
  const ordered = runs.toSorted((a, b) => place(a) - place(b));
  const lines = ordered.map((run) => renderRun(run) ?? comment(run));
  return [
    ...configuration(stamp),
    "",
    ...columns.map(({ unit, better }) => `Unit ${unit} better=${better}`),
    "",
    ...lines,
    "",
  ].join("\n");
}

/** Keys that benchstat shows above its tables and keeps campaigns apart by. */
function configuration(stamp: Analysis["stamp"]): string[] {
  const pairs: readonly (readonly [string, string])[] = [
    ["plan", stamp.plan],
    ["testbed", `${stamp.testbed} (${stamp.testbedClass})`],
    ["version-set", stamp.versionSet],
    ["driver", stamp.drivers.join(" ")],
    ["rate-qps", (stamp.ratesQps ?? [stamp.rateQps]).join(" ")],
  ];
  return pairs.map(([key, value]) => `${key}: ${value.replace(/\s+/g, " ")}`);
}

function renderRun(run: JudgedRun): string | undefined {
  const { verdict, latency, resources } = run;
  if (verdict === "INVALID" || latency === undefined || resources === undefined) return undefined;
  const metrics = metricsOf(latency, resources);
  const values = columns.flatMap(({ id, unit, factor }) => {
    const number = scaled(metrics[id], factor);
    return number === undefined ? [] : [`${number} ${unit}`];
  });
  // The arm comes last, since `-1000` at the end of a name would be taken for GOMAXPROCS.
  const name = `BenchmarkZtbench/treatment=${run.label}/arm=${run.arm}`;
  return [name, latency.sent, ...values].join("\t");
}

/** Nothing in it may look like a benchmark, a unit or a `key: value` line. */
function comment({ name, verdict }: JudgedRun): string {
  return `# ${name} is left out, it is ${verdict}`;
}

/** Rounded to what the histogram resolves, so that lines stay readable. */
function scaled(cell: Cell, factor: number): number | undefined {
  const number = numberOf(cell);
  return number === undefined ? undefined : Number((number * factor).toPrecision(7));
}
