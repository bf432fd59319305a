/** Judged budgets as JUnit XML: each entry and treatment is a test case. */
import type { BudgetReport, BudgetResult } from "../budget.ts";
import { describeResult } from "../budget-table.ts";
import { escapeXml } from "./xml.ts";

/**
 * A breach is a failure, what could not be judged an error, what is at risk is skipped: it asks for
 * more blocks, not for a red build.
 */
export function renderBudgetJunit({ budget, results }: BudgetReport): string {
  const count = (outcome: BudgetResult["outcome"]) =>
    results.filter((result) => result.outcome === outcome).length;
  const counts =
    `tests="${results.length}" failures="${count("breach")}" errors="${count("not judged")}" ` +
    `skipped="${count("at risk")}"`;
  const name = escapeXml(`ztbench budget ${budget}`);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${name}" ${counts}>`,
    `  <testsuite name="${name}" ${counts}>`,
    ...results.flatMap((result) => renderCase(budget, result)),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

const elements = { breach: "failure", "not judged": "error", "at risk": "skipped" } as const;

function renderCase(budget: string, result: BudgetResult): string[] {
  const { id, treatment, outcome } = result;
  const [suite, name] = [escapeXml(`budget.${budget}`), escapeXml(`${id} ${treatment}`)];
  const head = `testcase classname="${suite}" name="${name}"`;
  if (outcome === "pass") {
    const out = `      <system-out>${escapeXml(describeResult(result))}</system-out>`;
    return [`    <${head}>`, out, "    </testcase>"];
  }
  const message = `message="${escapeXml(describeResult(result))}"`;
  const type = outcome === "at risk" ? "" : ` type="${escapeXml(outcome)}"`;
  return [`    <${head}>`, `      <${elements[outcome]}${type} ${message}/>`, "    </testcase>"];
}
