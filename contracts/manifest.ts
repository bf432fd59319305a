/** The manifest of a bundle: what was planned, on what it ran, and in which order. */
import { z } from "zod";
import { tuningProfiles } from "./testbed.ts";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const programSchema = z.strictObject({
  name: z.string(),
  version: z.string(),
  /** The version that the articles ran, of programs that are measured or measure. */
  articles: z.string().optional(),
  sha256,
  /** Where it came from, e.g. "stand-in" against "upstream" for the command provider. */
  provenance: z.string(),
});
export type Program = z.infer<typeof programSchema>;

export const manifestSchema = z.strictObject({
  schema: z.literal("ztbench/manifest/1"),
  campaign: z.string(),
  createdAt: z.iso.datetime(),
  planSha256: sha256,
  seed: z.int().nonnegative(),
  /** Version set of the third-party programs; `own`: a choice of versions that is none of them. */
  versionSet: z.enum(["lab", "era", "current", "own"]),
  programs: z.array(programSchema),
  /** Commit of ztbench and whether its work tree had changes. */
  commit: z.string(),
  dirty: z.boolean(),
  testbed: z.strictObject({
    name: z.string(),
    class: z.enum(["lab", "metal"]),
    instance: z.string().optional(),
    scheduling: z.enum(["rr", "other"]),
    /** Absent in bundles that were written before it was recorded. */
    tuningProfile: z.enum(tuningProfiles).optional(),
  }),
  /** Raw facts of each host as text the host printed: name of the fact to text. */
  facts: z.record(z.string(), z.record(z.string(), z.string())),
  /** The planned order: one entry a run. */
  order: z.array(
    z.strictObject({
      run: z.int().positive(),
      block: z.int().positive(),
      position: z.int().positive(),
      label: z.string(),
      arm: z.enum(["a", "b"]),
    }),
  ),
  /** Tuning as read back at the end of each block: host to knob to outcome and value seen. */
  readbacks: z
    .array(
      z.strictObject({
        block: z.int().positive(),
        at: z.iso.datetime(),
        tuning: z.record(z.string(), z.record(z.string(), z.string())),
      }),
    )
    .optional(),
  /** Where the plan's stopping rule ended the campaign: later blocks were not to be run. */
  stopped: z.strictObject({ afterBlock: z.int().positive(), because: z.string() }).optional(),
  /** Things a reader must know, e.g. that SCHED_RR was not to be had. */
  warnings: z.array(z.string()),
});
export type Manifest = z.infer<typeof manifestSchema>;
