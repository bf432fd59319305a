/** Every run with its verdict, and the gates, probes, resources and raw files behind each. */
import type { RunDocument } from "../../contracts/record.ts";
import type { Analysis } from "../analysis.ts";
import type { BundleRun } from "../bundle.ts";
import { type Cell } from "../cell.ts";
import type { JudgedRun } from "../judged-run.ts";
import { formatNumber } from "../format.ts";
import { describeGate, type GateResult } from "../gates/gate.ts";
import type { Evidence } from "./evidence.ts";
import { type Content, details, fileLink, type Markup, markup, table } from "./markup.ts";
import { probeTable } from "./probes.ts";
import { wireTable } from "./wire.ts";

/** The table of all runs, then a closed section for each. */
export function runsSection(analysis: Analysis, evidence: Evidence): Markup {
  const byName = new Map(evidence.runs.map((run) => [run.name, run]));
  const sections = analysis.runs.map((run) => runDetails(run, byName.get(run.name)));
  const missing = analysis.notRun.map((key) => markup`<li>${key}</li>`);
  return markup`<section aria-labelledby="runs"><h2 id="runs">Runs</h2>
<p>A run that fails a gate is kept and shown, but is part of no number.</p>
<div class="long">${runTable(analysis)}</div>
${missing.length === 0 ? undefined : markup`<p>Planned, but not run:</p><ul>${missing}</ul>`}
<h3>Each run</h3>
<p class="note paper">Sections that were open when this was printed; the file itself holds all.</p>
${sections}</section>
`;
}

function runTable({ runs }: Analysis): Markup {
  const right = (title: string) => ({ title, align: "right" as const });
  const columns = [
    { title: "run" },
    right("block"),
    { title: "treatment" },
    { title: "verdict" },
    right("p50, ms"),
    right("p99, ms"),
    right("lag p99, ms"),
    right("CPU, µs/request"),
    right("sent"),
    right("failed"),
    { title: "why" },
  ];
  const rows = runs.map((run): readonly Content[] => [
    markup`<a href="#run-${run.run}">${run.run}</a>`,
    `${run.block}.${run.position}`,
    nameOf(run),
    verdictBadge(run.verdict),
    cell(run.latency?.response.quantiles.p50),
    cell(run.latency?.response.quantiles.p99),
    cell(run.latency?.lag.quantiles.p99),
    cell(run.resources?.cpuPerRequest),
    run.latency?.sent,
    run.latency?.failed,
    failedGates(run.gates).map(describeGate).join("; "),
  ]);
  return table("All runs in order of execution; block.position says where each ran", columns, rows);
}

/** Number without unit, or why there is none. */
function cell(found: Cell | undefined): Content {
  if (found === undefined) return markup`<span class="none">not measured</span>`;
  return found.kind === "none"
    ? markup`<span class="none">${found.reason}</span>`
    : formatNumber(found.value, found.unit);
}

function verdictBadge(verdict: string): Markup {
  return markup`<span class="badge ${verdict.toLowerCase()}">${verdict.toLowerCase()}</span>`;
}

function failedGates(gates: readonly GateResult[]): readonly GateResult[] {
  return gates.filter(({ outcome }) => outcome === "invalid" || outcome === "warn");
}

/** The baseline runs twice in each block. */
function nameOf({ label, arm }: JudgedRun): string {
  return arm === "b" ? `${label} (second)` : label;
}

function runDetails(run: JudgedRun, kept: BundleRun | undefined): Markup {
  const why = failedGates(run.gates).map(describeGate).join("; ");
  const title = `run ${run.run}, block ${run.block}: ${nameOf(run)} `;
  const reason = why === "" ? undefined : markup`<p class="reason">${why}</p>`;
  return details(
    [title, verdictBadge(run.verdict)],
    [
      reason,
      gateTable(run.gates),
      wireTable(run.wire ?? []),
      resourceTable(run),
      kept && evidenceOf(kept.record),
      kept && filesOf(kept),
    ],
    `run-${run.run}`,
  );
}

function gateTable(gates: readonly GateResult[]): Markup {
  return table(
    "Gates: what was measured and what was wanted",
    [{ title: "gate" }, { title: "outcome" }, { title: "measured" }, { title: "wanted" }],
    gates.map(({ id, outcome, measured, threshold }) => [
      id,
      markup`<span class="badge ${outcome}">${outcome}</span>`,
      measured,
      threshold,
    ]),
  );
}

function resourceTable({ resources }: JudgedRun): Content {
  if (resources === undefined) return undefined;
  const right = (title: string) => ({ title, align: "right" as const });
  return table(
    "Resources while requests were due",
    [
      { title: "unit" },
      { title: "host" },
      { title: "kind" },
      right("CPU, µs/request"),
      right("cores"),
      right("memory, MiB"),
      right("waited for a CPU"),
      right("restarts"),
    ],
    resources.units.map((use) => [
      use.unit,
      use.host,
      `${use.kind}${use.dataPlane || use.kind === "generator" ? "" : " (not counted)"}`,
      cell(use.cpuPerRequest),
      cell(use.cores),
      cell(use.memory),
      cell(use.runQueueWait),
      cell(use.restarts),
    ]),
  );
}

function evidenceOf(record: RunDocument): Content {
  const phases = Object.entries(record.phaseSeconds);
  const times = markup`<p class="note">${record.startedAt} – ${record.finishedAt}; ${phases
    .map(([phase, seconds]) => `${phase} ${seconds.toFixed(1)} s`)
    .join(", ")}</p>`;
  if (record.schema !== "ztbench/record/1") {
    return [markup`<p class="reason">Broke off: ${record.failure}</p>`, times];
  }
  const knobs = Object.entries(record.tuning).flatMap(([host, knobs]) =>
    Object.entries(knobs).map(([knob, outcome]) => [knob, host, outcome]),
  );
  return [
    probeTable("Probes before and after the load", record.deployment.probes, [record]),
    details(
      `tuning as read back on the hosts (${knobs.length} knobs)`,
      table("Tuning", [{ title: "knob" }, { title: "host" }, { title: "outcome" }], knobs),
    ),
    times,
  ];
}

function filesOf({ name, files }: BundleRun): Markup {
  const links = [...files].sort().map((file) => {
    return markup`<li>${fileLink(`runs/${name}/${file}`, file)}</li>
`;
  });
  return markup`<p>Raw files of this run:</p><ul class="files">${links}</ul>
`;
}
