/** Runs as JUnit XML, for CI systems: a run is a test case, its gates say how it went. */
import type { Analysis } from "../analysis.ts";
import { cellKey } from "../bundle.ts";
import type { JudgedRun } from "../judged-run.ts";
import { describeGate, type GateResult } from "../gates/gate.ts";
import { stampLines } from "../table.ts";
import { escapeXml } from "./xml.ts";

/**
 * Renders every planned run: invalid ones fail with the gates that did, or are skipped where the
 * campaign repeated them with success; those never run are skipped, too. Warnings and gates without
 * a source are printed with the case.
 */
export function renderJunit(analysis: Analysis): string {
  const { stamp, runs, notRun } = analysis;
  const invalid = runs.filter(({ verdict }) => verdict === "INVALID");
  const repeated = invalid.filter((run) => repeatOf(run, runs) !== undefined).length;
  const counts =
    `tests="${runs.length + notRun.length}" failures="${invalid.length - repeated}" errors="0" ` +
    `skipped="${notRun.length + repeated}"`;
  const name = `ztbench ${stamp.plan}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escapeXml(name)}" ${counts}>`,
    `  <testsuite name="${escapeXml(name)}" ${counts}>`,
    "    <properties>",
    ...stampLines(stamp).map(
      (line, index) => `      <property name="stamp.${index + 1}" value="${escapeXml(line)}"/>`,
    ),
    "    </properties>",
    ...runs.flatMap((run) => renderCase(stamp.plan, run, runs)),
    ...notRun.flatMap((key) => [
      `    <testcase classname="${escapeXml(stamp.plan)}" name="${escapeXml(key)}">`,
      '      <skipped message="planned, not run"/>',
      "    </testcase>",
    ]),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

/** The later run that took the place of an invalid one, if it is not invalid itself. */
function repeatOf(run: JudgedRun, runs: readonly JudgedRun[]): JudgedRun | undefined {
  return runs.find(
    (other) =>
      cellKey(other) === cellKey(run) && other.run > run.run && other.verdict !== "INVALID",
  );
}

function renderCase(plan: string, run: JudgedRun, runs: readonly JudgedRun[]): string[] {
  const of = (outcome: GateResult["outcome"]) =>
    run.gates.filter((gate) => gate.outcome === outcome);
  const failed = of("invalid");
  const told = [
    ...of("warn").map((gate) => `warning: ${describeGate(gate)}`),
    ...unjudged(of("unavailable")),
  ];
  const classname = `${plan}.${run.label}`;
  const head = `testcase classname="${escapeXml(classname)}" name="${escapeXml(run.name)}"`;
  const body = [
    ...(run.verdict === "INVALID" ? [renderInvalid(failed, repeatOf(run, runs))] : []),
    ...(told.length > 0 ? [`      <system-out>${escapeXml(told.join("\n"))}</system-out>`] : []),
  ];
  return body.length === 0 ? [`    <${head}/>`] : [`    <${head}>`, ...body, "    </testcase>"];
}

/** Gates without a source, a line for each reason: some of them concern many. */
function unjudged(gates: readonly GateResult[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { id, measured } of gates) {
    byReason.set(measured, [...(byReason.get(measured) ?? []), id]);
  }
  return [...byReason].map(([reason, ids]) => `not judged: ${ids.join(", ")}: ${reason}`);
}

function renderInvalid(failed: readonly GateResult[], repeat: JudgedRun | undefined): string {
  const gates = failed.map(describeGate).join("; ");
  if (repeat === undefined) {
    const type = failed.map(({ id }) => id).join(" ");
    return `      <failure type="${escapeXml(type)}" message="${escapeXml(gates)}"/>`;
  }
  return `      <skipped message="${escapeXml(`repeated as ${repeat.name}: ${gates}`)}"/>`;
}
