/**
 * Judges runs before any number of theirs is used: each gate compares a measured value with a
 * declared threshold. An invalid run is shown with its reason and never averaged.
 */
import type { RunDocument } from "../../contracts/record.ts";
import { type Gate, type GateId, gateNumbers, type GateResult, type Limit } from "./gate.ts";
import { settingOf } from "./gate.ts";
import type { GateInput } from "./input.ts";
import { isCold } from "./run-facts.ts";
import { gates } from "./table.ts";

/**
 * What a cold start does to requests is its result: were it to make starts invalid, those that
 * storm would be missing from the count of storms.
 */
const resultsOfColdStart: readonly GateId[] = [
  ...(["sent", "goodput", "overflow", "lag", "workers", "generator"] as const),
  ...(["generator-core", "generator-wait", "proxy-errors"] as const),
  ...(["retransmits", "listen-drops", "tcp-timeouts"] as const),
];

/** Applies every gate to a run, in a fixed order. */
export function judgeRun(input: GateInput): readonly GateResult[] {
  return gates.map((gate) => {
    const result = judgeGate(gate, input);
    const spared = isCold(input.record) && resultsOfColdStart.includes(gate.id);
    return spared && result.outcome === "invalid" ? { ...result, outcome: "warn" } : result;
  });
}

function judgeGate(gate: Gate, input: GateInput): GateResult {
  const { testbedClass, runtime } = input.record.deployment;
  const declared = gate.limits[settingOf(testbedClass, runtime)];
  const head = { number: gateNumbers[gate.id], id: gate.id } as const;
  if ("absent" in declared) {
    return { ...head, ...unavailable(declared.absent), threshold: "no limit declared here" };
  }
  const value = gate.limitOf?.(declared.value, input) ?? declared.value;
  const threshold = gate.wanted(value, input);
  const finding = gate.judge(input);
  switch (finding.kind) {
    case "missing":
      return { ...head, ...unavailable(finding.reason), threshold };
    case "checked": {
      const outcome = finding.passed ? "pass" : declared.severity;
      return { ...head, outcome, measured: finding.measured, threshold };
    }
    case "measured": {
      const outcome = outcomeOf(gate, finding.value, { ...declared, value });
      return { ...head, outcome, measured: finding.measured, threshold };
    }
  }
}

function unavailable(reason: string) {
  return { outcome: "unavailable", measured: `not available here: ${reason}` } as const;
}

function outcomeOf({ compare, id }: Gate, found: number, limit: Limit): GateResult["outcome"] {
  if (holds(compare, id, found, limit.value)) return "pass";
  const { worse } = limit;
  return worse !== undefined && !holds(compare, id, found, worse) ? "invalid" : limit.severity;
}

function holds(compare: Gate["compare"], id: GateId, found: number, limit: number): boolean {
  switch (compare) {
    case "at most":
      return found <= limit;
    case "less than":
      return found < limit;
    case "at least":
      return found >= limit;
    case undefined:
      throw new Error(`gate ${id}: measures, so it must say how it compares`);
  }
}

/** The one gate that a run without measurement fails. */
export function judgeBrokenRun(record: RunDocument): readonly GateResult[] {
  return [
    {
      number: gateNumbers.completed,
      id: "completed",
      outcome: "invalid",
      measured: record.failure ?? "no rows",
      threshold: "to its end",
    },
  ];
}
