/** Judged budgets as text for a terminal. */
import type { BudgetReport, BudgetResult } from "./budget.ts";
import type { Unit } from "./cell.ts";
import { Footnotes } from "./format.ts";
import { left, right, type Table } from "./tabular.ts";
import { joinBlocks, layOut } from "./text.ts";

/** One row an entry and treatment, at most 100 columns wide. */
export function renderBudget(report: BudgetReport): string {
  const head = [`${report.budget}: ${report.purpose}`];
  return joinBlocks([head, layOut(budgetTable(report)), [`conclusion: ${report.outcome}`]]);
}

function budgetTable({ results }: BudgetReport): Table {
  const notes = new Footnotes();
  return {
    title: "Budgets, judged on the interval",
    columns: [
      left("budget"),
      left("treatment"),
      left("what"),
      right("limit"),
      right("measured"),
      right("used"),
      left("outcome"),
    ],
    rows: results.map((result) => [
      result.id,
      result.treatment,
      whatOf(result),
      showIn(result.unit, result.limit),
      measuredOf(result),
      result.used === undefined ? "" : `${(result.used * 100).toFixed(0)} %`,
      outcomeOf(result, notes),
    ]),
    notes: [
      ...notes.lines(),
      "used: upper end of the interval over the limit",
      "pass: the whole interval keeps the limit; breach: all of it lies above; at risk: between",
    ],
  };
}

/** One line for people, also for CI systems. */
export function describeResult(result: BudgetResult): string {
  const { treatment, unit, limit, outcome, reason, blocksNeeded } = result;
  const measured = measuredOf(result);
  return [
    `${treatment}: ${whatOf(result)} may be ${showIn(unit, limit)}`,
    ...(measured === "" ? [] : [`measured ${measured}`]),
    `${outcome}${reason === undefined ? "" : ` (${reason})`}`,
    ...(blocksNeeded === undefined ? [] : [`${blocksNeeded} blocks would decide`]),
  ].join(", ");
}

function whatOf({ metric, quantile, over }: BudgetResult): string {
  const against = over === undefined ? "" : ` over ${over}`;
  return `${metric}${quantile === undefined ? "" : ` ${quantile}`}${against}`;
}

function measuredOf({ unit, centre, low, high }: BudgetResult): string {
  if (centre === undefined || low === undefined || high === undefined) return "";
  return `${showIn(unit, centre)} [${showIn(unit, low)}, ${showIn(unit, high)}]`;
}

function outcomeOf({ outcome, reason, blocks, blocksNeeded }: BudgetResult, notes: Footnotes) {
  if (reason !== undefined) return `${outcome} ${notes.reference(reason)}`;
  return blocksNeeded === undefined
    ? outcome
    : `${outcome}: ${blocksNeeded} blocks, not ${blocks ?? 0}`;
}

function showIn(unit: Unit, number: number): string {
  if (unit === "share") return `${(number * 100).toFixed(Math.abs(number) < 0.01 ? 3 : 1)} %`;
  if (unit === "count") return number.toFixed(1);
  return unit === "cores" ? number.toFixed(3) : `${number.toFixed(1)} µs`;
}
