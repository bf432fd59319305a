/** The record of what is installed in a checkout: which programs, from where, with which digest. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import { toolPaths } from "./paths.ts";

const programSchema = z.strictObject({
  name: z.string(),
  version: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Who wrote the code: a Pulumi plugin is either `upstream` or `stand-in`. */
  author: z.enum(["upstream", "stand-in", "ztbench"]),
  /** How it came to be here, for people. */
  provenance: z.string(),
  bytes: z.int().positive(),
  /** Key of its cache entry. */
  key: z.string(),
  /** Where it is in the checkout, relative to the tools directory. */
  files: z.array(z.string()).min(1),
});
export type InstalledProgram = z.infer<typeof programSchema>;

export const toolsManifestSchema = z.strictObject({
  schema: z.literal("ztbench/tools/1"),
  set: z.enum(["lab", "era"]),
  platform: z.string(),
  programs: z.array(programSchema),
});
export type ToolsManifest = z.infer<typeof toolsManifestSchema>;

/**
 * The manifest of the checkout at `root`.
 *
 * @throws Failure `testbed` if the tools are not installed there
 */
export async function readToolsManifest(root: string): Promise<ToolsManifest> {
  const { manifest } = toolPaths(root);
  const hint = "install the tools: make tools";
  const text = await readFile(manifest, "utf8").catch((cause: unknown) => {
    throw new Failure("testbed", `${manifest}: tools are not installed`, { hint, cause });
  });
  const parsed = toolsManifestSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Failure("testbed", `${manifest}: not a manifest of this version of ztbench`, { hint });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
