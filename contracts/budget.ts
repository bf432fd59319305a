/** The budget document: what a treatment may cost, judged on intervals and never on points. */
import { z } from "zod";

const id = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,59}$/, "must be lower case letters, digits and dashes");

const label = z.string().min(1);

/** What every entry says, whatever it limits. */
const common = {
  id,
  /** Labels of treatments that each must keep it. */
  treatments: z.array(label).min(1).max(100),
  /** A cost is one at a rate: an entry judges no other. */
  rateQps: z.int().positive().max(100_000),
  /** Of the two-sided interval over blocks. */
  confidence: z.number().gt(0.5, "must be greater than 0.5").lt(1, "must be less than 1"),
};

const share = z.number("must be a number").gt(-1, "must be greater than -1").max(1000);
const quantile = z.enum(["p50", "p99"]);

/**
 * One rung of a ladder over another, instead of over the baseline. Only what adds up has layers:
 * means and CPU; differences of quantiles are no shares of one.
 */
const over = label.optional();

export const budgetEntrySchema = z.discriminatedUnion("metric", [
  /** Response at a quantile against the baseline; 0.3 allows 30 % more. */
  z.strictObject({
    ...common,
    metric: z.literal("latencyLoss"),
    quantile,
    limitShare: share,
  }),
  z.strictObject({
    ...common,
    metric: z.literal("latencyDifference"),
    quantile,
    limitMicroseconds: z.number(),
  }),
  z.strictObject({
    ...common,
    metric: z.literal("meanLatencyDifference"),
    over,
    limitMicroseconds: z.number(),
  }),
  z.strictObject({ ...common, metric: z.literal("cpuLoss"), limitShare: share }),
  /** CPU time of the data plane per request. */
  z.strictObject({
    ...common,
    metric: z.literal("cpuDifference"),
    over,
    limitMicroseconds: z.number(),
  }),
  z.strictObject({ ...common, metric: z.literal("coresDifference"), over, limitCores: z.number() }),
  /** Requests that failed or were never sent, of all that were planned; invalid runs count. */
  z.strictObject({
    ...common,
    metric: z.literal("failedShare"),
    limitShare: z.number().min(0).max(1),
  }),
  /** Requests that one renewal of a certificate makes bad, by the plan's objective for them. */
  z.strictObject({
    ...common,
    metric: z.literal("badPerRenewal"),
    limitRequests: z.number().nonnegative("must not be negative"),
  }),
  /** Capacity under the plan's objective against the baseline's. */
  z.strictObject({
    ...common,
    metric: z.literal("throughputLoss"),
    limitShare: share.lt(1, "must be less than 1, which is all of it"),
  }),
]);
export type BudgetEntry = z.infer<typeof budgetEntrySchema>;

export const budgetSchema = z
  .strictObject({
    schema: z.literal("ztbench/budget/1"),
    name: id,
    /** Why these limits, for people. */
    purpose: z.string().min(1),
    /** Limits of a lab say nothing of metal, nor the reverse. */
    testbedClass: z.enum(["lab", "metal"]),
    budgets: z.array(budgetEntrySchema).min(1).max(200),
  })
  .superRefine(({ budgets }, context) => {
    const seen = new Set<string>();
    budgets.forEach((entry, index) => {
      const complain = (key: string, message: string) => {
        context.addIssue({ code: "custom", path: ["budgets", index, key], message });
      };
      if (seen.has(entry.id)) complain("id", "id is already used by another budget");
      seen.add(entry.id);
      if (new Set(entry.treatments).size < entry.treatments.length) {
        complain("treatments", "must name each treatment once");
      }
      const fixed = entry.metric === "failedShare" || entry.metric === "badPerRenewal";
      if (fixed && entry.confidence !== 0.95) {
        complain("confidence", `must be 0.95 for ${entry.metric}`);
      }
      if ("over" in entry && entry.over !== undefined && entry.treatments.includes(entry.over)) {
        complain("over", "must not be one of its own treatments");
      }
    });
  });
export type Budget = z.infer<typeof budgetSchema>;
