/** The document of one capacity search in a bundle: every rate tried, and what it showed. */
import { z } from "zod";
import { probePurposes } from "./capacity.ts";
import { deploymentSchema } from "./deployment.ts";
import { loadSchema, treatmentSchema } from "./plan.ts";
import { recordSchema } from "./record.ts";

/** One rate that was tried. Its files are the same as those of a run. */
export const capacityProbeSchema = z.strictObject({
  /** Directory of its files inside the search's, e.g. `007-search-1500`. */
  directory: z.string().regex(/^[0-9]{3}-[a-z]+-[0-9]+$/),
  purpose: z.enum(probePurposes),
  rateQps: z.int().positive(),
  load: loadSchema,
  /** Absent if the probe broke off before there was anything to compute from. */
  measured: recordSchema
    .pick({
      generator: true,
      loadPlan: true,
      measuredFromNs: true,
      measuredToNs: true,
      probes: true,
    })
    .optional(),
  /** As it was decided on the spot, which the analysis decides again. */
  passed: z.boolean(),
  reasons: z.array(z.string()),
});
export type CapacityProbe = z.infer<typeof capacityProbeSchema>;

/** One search: a treatment, deployed once, and all rates that were tried on it, in order. */
export const capacitySearchSchema = z.strictObject({
  schema: z.literal("ztbench/capacity-search/1"),
  block: z.int().positive(),
  position: z.int().positive(),
  label: z.string(),
  treatment: treatmentSchema,
  deployment: deploymentSchema,
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  /** Why nothing more was tried. */
  ended: z.enum(["confirmed", "at most", "none holds", "broke off"]),
  probes: z.array(capacityProbeSchema),
  /** Files of the search, relative to its directory, with their sha256. */
  files: z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/)),
});
export type CapacitySearch = z.infer<typeof capacitySearchSchema>;
