/** The plan document: what a campaign measures, hashed before the first request. */
import { z } from "zod";
import { runtimeSchema } from "./deployment.ts";

const label = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lower case letters, digits and dashes");

export const drivers = ["vegeta", "vegeta-paced"] as const;

/** One thing to measure. Its label names rows and directories and is never parsed. */
export const treatmentSchema = z
  .strictObject({
    label,
    topology: z.string().min(1),
    runtime: runtimeSchema.default("native"),
    parameters: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
    driver: z.enum(drivers).default("vegeta-paced"),
    arrival: z.enum(["uniform", "poisson"]).default("uniform"),
  })
  .superRefine((treatment, context) => {
    if (treatment.driver === "vegeta" && treatment.arrival !== "uniform") {
      context.addIssue({
        code: "custom",
        path: ["arrival"],
        message: "must be uniform with driver vegeta, which knows no other",
      });
    }
  });
export type Treatment = z.infer<typeof treatmentSchema>;

export const loadSchema = z
  .strictObject({
    /** Requests per second, the same for every treatment. */
    rateQps: z.int("must be a whole number").positive("must be greater than 0").max(100_000),
    warmupSeconds: z.number().positive("must be greater than 0").max(3600),
    durationSeconds: z.number().positive("must be greater than 0").max(3600),
    timeoutSeconds: z.number().positive("must be greater than 0").max(60).default(5),
    /** TCP connections of the load driver, idle and at most. */
    connections: z.int().positive().max(10_000),
    workers: z.int().positive().max(10_000).default(64),
    maxWorkers: z.int().positive().max(100_000).default(4000),
    bodyBytes: z.int().nonnegative().max(1_048_576).default(256),
  })
  .superRefine((load, context) => {
    if (load.durationSeconds < load.warmupSeconds) {
      context.addIssue({
        code: "custom",
        path: ["durationSeconds"],
        message: `must not be shorter than warmupSeconds (${load.warmupSeconds})`,
      });
    }
    if (load.maxWorkers < load.workers) {
      context.addIssue({
        code: "custom",
        path: ["maxWorkers"],
        message: `must not be less than workers (${load.workers})`,
      });
    }
  });
export type LoadSettings = z.infer<typeof loadSchema>;

export const planSchema = z
  .strictObject({
    schema: z.literal("ztbench/plan/1"),
    name: label,
    /** What the result may be used for, for people; printed with it. */
    purpose: z.string().min(1),
    seed: z.int().nonnegative(),
    blocks: z.int().min(1).max(100),
    /** Label of the treatment that the others are compared with; it runs twice in each block. */
    baseline: label,
    treatments: z.array(treatmentSchema).min(1),
    load: loadSchema,
    /** Smallest ratio that matters, e.g. 0.05; used for "equivalent". */
    equivalenceMargin: z.number().gt(0).lt(1),
  })
  .superRefine((plan, context) => {
    const seen = new Map<string, number>();
    plan.treatments.forEach((treatment, index) => {
      const first = seen.get(treatment.label);
      if (first === undefined) seen.set(treatment.label, index);
      else {
        context.addIssue({
          code: "custom",
          path: ["treatments", index, "label"],
          message: `label is already used by treatments[${first}]`,
        });
      }
    });
    if (!seen.has(plan.baseline)) {
      context.addIssue({
        code: "custom",
        path: ["baseline"],
        message: `must be the label of a treatment (${[...seen.keys()].join(", ")})`,
      });
    }
  });
export type Plan = z.infer<typeof planSchema>;
