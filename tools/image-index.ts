/** The table of images that the installer writes: which files hold them and how pods name them. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import { toolPaths } from "./paths.ts";

export const imageNames = ["pause", "service", "envoy", "proxyv2", "istiod"] as const;
export type ImageName = (typeof imageNames)[number];

const imageSchema = z.strictObject({
  /** Short name; the file is called by it, too. */
  id: z.enum(imageNames),
  /** Without a registry's host, so that no runtime can look for it elsewhere. */
  name: z.string(),
  tag: z.string(),
  /** Digest of the image's manifest. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  /** Name of the archive beside the table. */
  file: z.string(),
  bytes: z.int().positive(),
  entrypoint: z.array(z.string()).min(1),
  /** Every file in the image. */
  contents: z.array(z.strictObject({ path: z.string(), sha256: z.string() })),
});
export type IndexedImage = z.infer<typeof imageSchema>;

export const imageIndexSchema = z.strictObject({
  schema: z.literal("ztbench/images/1"),
  images: z.array(imageSchema),
});
export type ImageIndex = z.infer<typeof imageIndexSchema>;

export const imageIndexFile = "index.json";

/** How pods name an image: by digest, so that no other can be meant. */
export function imageReference({ name, digest }: Pick<IndexedImage, "name" | "digest">): string {
  return `${name}@${digest}`;
}

/** The image of that short name. */
export function imageOf(index: ImageIndex, id: ImageName): IndexedImage {
  const found = index.images.find((image) => image.id === id);
  if (found === undefined) throw new Failure("bug", `images: no ${id} in the table`);
  return found;
}

/**
 * The table of the checkout at `root`.
 *
 * @throws Failure `testbed` if its images were not made
 */
export async function readImageIndex(root: string): Promise<ImageIndex> {
  const file = path.join(toolPaths(root).images, imageIndexFile);
  const hint = "make the images: node --import tsx tools/install.ts --with-cluster";
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new Failure("testbed", `${file}: images were not made`, { hint, cause });
  });
  const parsed = imageIndexSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Failure("testbed", `${file}: not a table of this version of ztbench`, { hint });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
