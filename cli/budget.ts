/** The verb `budget`: judges a bundle by limits that a document declares. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Analysis } from "../analysis/analysis.ts";
import { type BudgetOutcome, judgeBudget } from "../analysis/budget.ts";
import { renderBudget } from "../analysis/budget-table.ts";
import { renderBudgetJunit } from "../analysis/exports/budget-junit.ts";
import { analyse } from "../analysis/report.ts";
import { type Budget, type BudgetEntry, budgetSchema } from "../contracts/budget.ts";
import { parseDocument } from "../contracts/document.ts";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { isBaseline, loadOf, type Plan } from "../contracts/plan.ts";
import { readArguments, type Verb } from "./verb.ts";
import { readText } from "./workspace.ts";

const usage = `./ztbench budget BUNDLE FILE [--junit FILE] [--json]

  BUNDLE   what a campaign wrote
  FILE     a budget document, e.g. budgets/regress.yaml
  --junit  where to write the outcome for a CI system

Exit code 6 if a limit is broken, 7 if one could not be judged; at risk ends with 0.`;

export const budget: Verb = {
  summary: "judge a bundle by the limits of a budget document",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" }, junit: { type: "string" } } as const;
    const { values, positionals } = readArguments(argv, options, { least: 2, most: 2 }, usage);
    const [bundle = "", file = ""] = positionals;
    const document = readBudget(file);
    const report = judgeBudget(document, await analyse(path.resolve(bundle)));
    if (values.junit !== undefined) writeFileSync(values.junit, renderBudgetJunit(report));
    io.print(values.json === true ? JSON.stringify(report, null, 2) : renderBudget(report));
    return budgetExit(report.outcome);
  },
};

/**
 * Reads a budget document.
 *
 * @throws Failure `document` naming file, line and column of each problem
 */
export function readBudget(file: string): Budget {
  return parseDocument(budgetSchema, readText(file), file);
}

/**
 * What a budget asks for must be in the plan, or hours would pass before it says "not judged".
 *
 * @throws Failure `document` naming budget, treatment and what the plan has
 */
export function requireJudgeable({ name, budgets }: Budget, plan: Plan): void {
  const labels = plan.treatments.map(({ label }) => label);
  const problems = budgets.flatMap((entry) => {
    const over = "over" in entry && entry.over !== undefined ? [entry.over] : [];
    const rates = plan.treatments
      .filter(({ label }) => entry.treatments.includes(label))
      .map((treatment) => ({ label: treatment.label, rate: loadOf(plan, treatment).rateQps }));
    return [
      ...(entry.metric === "badPerRenewal" ? renewalProblems(entry, plan) : []),
      ...[...entry.treatments, ...over]
        .filter((label) => !labels.includes(label))
        .map((label) => `${entry.id}: treatment ${label} is not in plan ${plan.name}`),
      ...rates
        .filter(({ rate }) => rate !== entry.rateQps)
        .map(({ label, rate }) => `${entry.id}: ${label} has ${rate}/s, not ${entry.rateQps}/s`),
    ];
  });
  if (problems.length === 0) return;
  throw new Failure("document", `budget ${name}: ${problems.join("; ")}`, {
    hint: `treatments of plan ${plan.name}: ${labels.join(", ")}`,
  });
}

/** A renewal is judged by an objective, and beside a placebo. */
function renewalProblems({ id, treatments }: BudgetEntry, plan: Plan): readonly string[] {
  if (plan.rotation === undefined) {
    return [`${id}: plan ${plan.name} has no rotation.sloMilliseconds to judge by`];
  }
  return plan.treatments
    .filter(({ label }) => treatments.includes(label))
    .flatMap((treatment) => {
      const { label, parameters } = treatment;
      if (isBaseline(plan, label)) return [`${id}: ${label} is a placebo itself`];
      return "certificateSeconds" in parameters
        ? []
        : [`${id}: ${label} has no certificateSeconds, so that none is renewed`];
    });
}

/** The outcome of a campaign's own budget, with its exit code. */
export function judgeCampaign(
  document: Budget,
  analysis: Analysis,
): { readonly shown: string; readonly code: number } {
  const report = judgeBudget(document, analysis);
  return { shown: renderBudget(report), code: budgetExit(report.outcome) };
}

function budgetExit(outcome: BudgetOutcome): number {
  if (outcome === "breach") return exitCodes.budget;
  return outcome === "not judged" ? exitCodes.comparison : 0;
}
