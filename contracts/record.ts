/** The record of one run: its facts, written once when the run ends and never edited. */
import { z } from "zod";
import { deploymentSchema, probeResultsSchema } from "./deployment.ts";
import { loadSchema, treatmentSchema } from "./plan.ts";

/** Wall-clock nanoseconds since 1970 exceed safe integers, so they travel as decimal text. */
export const instantNsSchema = z.string().regex(/^\d{16,20}$/, "must be nanoseconds since 1970");

/** What the load driver planned; `startNs` is when offset 0 was due. */
export const loadPlanSchema = z.strictObject({
  schema: z.literal("ztbench/load-plan/1"),
  driver: z.enum(["vegeta", "vegeta-paced"]),
  arrival: z.enum(["uniform", "poisson"]),
  rateQps: z.int().positive(),
  /** Whole nanoseconds between planned requests (uniform), floor(1e9 / rate). */
  intervalNs: z.int().positive().max(1_000_000_000),
  /** At most what the highest rate gives in the longest run: memory is laid out for it. */
  planned: z.int().positive().max(360_000_000),
  /** Absent for the CLI, which does not tell: then it is estimated from the rows. */
  startNs: instantNsSchema.optional(),
  seed: z.int().nonnegative().optional(),
  /** File of planned offsets beside this one, for arrivals that are not uniform. */
  offsetsFile: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be the name of a file, without a directory")
    .optional(),
});
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** Whether a knob, as it was read back, is not as the testbed's tuning profile has it. */
export function isAmiss(outcome: string): boolean {
  return /^(drifted|untuned|leftover)\b/.test(outcome);
}

export const recordSchema = z.strictObject({
  schema: z.literal("ztbench/record/1"),
  /** Order of execution in the campaign, from 1. */
  run: z.int().positive(),
  block: z.int().positive(),
  position: z.int().positive(),
  /** Label of the treatment; the baseline's second run of a block has arm "b". */
  label: z.string(),
  arm: z.enum(["a", "b"]),
  treatment: treatmentSchema,
  load: loadSchema,
  deployment: deploymentSchema,
  /** Names of host-side unit and its host, whose CPU is the generator's. */
  generator: z.strictObject({ unit: z.string(), host: z.string(), cpus: z.string() }),
  loadPlan: loadPlanSchema,
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  /** Clock readings on the client host just before and after the measured load. */
  measuredFromNs: instantNsSchema,
  measuredToNs: instantNsSchema,
  /** Seconds of each phase, as measured by the campaign. */
  phaseSeconds: z.record(z.string(), z.number().nonnegative()),
  probes: z.strictObject({ before: probeResultsSchema, after: probeResultsSchema }),
  /** Tuning readback of the block's start, per host: knob id to outcome and value seen. */
  tuning: z.record(z.string(), z.record(z.string(), z.string())),
  /** Files of this run, relative to its directory, with their sha256. */
  files: z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/)),
  /** Why the run broke off, if it did; what was measured until then is kept. */
  failure: z.string().optional(),
});
export type RunRecord = z.infer<typeof recordSchema>;

/**
 * A run that broke off before its load was done, so that there is nothing to compute from. It lies
 * in record.json like any other; files kept with it are for people.
 */
export const failedRunSchema = recordSchema
  .pick({
    run: true,
    block: true,
    position: true,
    label: true,
    arm: true,
    treatment: true,
    load: true,
    startedAt: true,
    finishedAt: true,
    phaseSeconds: true,
    files: true,
  })
  .extend({
    schema: z.literal("ztbench/failed-run/1"),
    failure: z.string().min(1),
    /** What the probes saw, if the run got that far. */
    probes: z.strictObject({ before: probeResultsSchema }).optional(),
  });
export type FailedRun = z.infer<typeof failedRunSchema>;

/** What a bundle's record.json may be. */
export const runDocumentSchema = z.discriminatedUnion("schema", [recordSchema, failedRunSchema]);
export type RunDocument = z.infer<typeof runDocumentSchema>;
