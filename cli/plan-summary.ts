/** What a user should know of a plan before it starts: how long it takes, what it may publish. */
import type { Plan, Publication } from "../contracts/plan.ts";
import { durationOf } from "../loadgen/duration.ts";
import { spellDuration } from "./progress.ts";

const meanings: Readonly<Record<Publication, string>> = {
  nothing: "nothing of its result may be published",
  internal: "its result is for internal use",
  results: "its result may be published, if testbed and bundle allow it",
};

/** Two lines; an estimate by the plan alone, which the first runs will correct. */
export function describePlan(plan: Plan): readonly string[] {
  const { runs, runSeconds, searches, searchSeconds, seconds } = durationOf(plan);
  const parts = [
    `${runs} runs in ${plan.blocks} ${plan.blocks === 1 ? "block" : "blocks"}, ` +
      `about ${spellDuration(runSeconds)}`,
    ...(searches === 0 ? [] : [`${searches} searches, about ${spellDuration(searchSeconds)}`]),
  ];
  const total = searches === 0 ? "" : `; ${spellDuration(seconds)} in all`;
  return [
    `plan ${plan.name}: ${parts.join("; ")}${total}`,
    `plan ${plan.name}: ${meanings[plan.publishes ?? "nothing"]}`,
  ];
}
