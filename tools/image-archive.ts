/** Writes an image as a tar of an OCI layout, and reads such a tar without a container runtime. */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header, pack, type Pack } from "tar-stream";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import {
  type Blob,
  blobPath,
  epoch,
  type Image,
  imageDocuments,
  type ImageEntry,
  layerEntries,
} from "./image.ts";

/**
 * Writes `image` to the file `target`. The same contents always give the same bytes.
 *
 * @param architecture as Go names it, e.g. `amd64`
 * @returns the digest of the image's manifest, by which pods name it
 */
export async function writeImage(
  target: string,
  image: Image,
  architecture: string,
): Promise<string> {
  const layerFile = `${target}.layer`;
  try {
    const layer = await writeLayer(layerFile, layerEntries(image));
    const documents = imageDocuments(image, layer, architecture);
    await writeTar(target, async (tar) => {
      for (const [name, content] of documents.files) {
        await addEntry(tar, { name, mode: 0o644, size: content.length }, Readable.from([content]));
      }
      const header = { name: documents.layerPath, mode: 0o644, size: layer.bytes };
      await addEntry(tar, header, createReadStream(layerFile));
    });
    return documents.manifestDigest;
  } finally {
    await rm(layerFile, { force: true });
  }
}

async function writeLayer(target: string, entries: readonly ImageEntry[]): Promise<Blob> {
  await writeTar(target, async (tar) => {
    for (const entry of entries) await addLayerEntry(tar, entry);
  });
  const hash = createHash("sha256");
  await pipeline(createReadStream(target), hash);
  return { digest: `sha256:${hash.digest("hex")}`, bytes: (await stat(target)).size };
}

async function addLayerEntry(tar: Pack, entry: ImageEntry): Promise<void> {
  const name = entry.path.slice(1);
  switch (entry.kind) {
    case "directory":
      return addEntry(tar, { name: `${name}/`, type: "directory", mode: entry.mode, size: 0 });
    case "link":
      return addEntry(tar, { name, type: "symlink", linkname: entry.target, size: 0 });
    case "text": {
      const content = Buffer.from(entry.text);
      const header = { name, mode: 0o644, size: content.length };
      return addEntry(tar, header, Readable.from([content]));
    }
    case "file": {
      const header = { name, mode: entry.executable ? 0o755 : 0o644, size: entry.bytes };
      return addEntry(tar, header, createReadStream(entry.source));
    }
  }
}

async function writeTar(target: string, fill: (tar: Pack) => Promise<void>): Promise<void> {
  const tar = pack();
  const written = pipeline(tar, createWriteStream(target));
  try {
    await fill(tar);
    tar.finalize();
  } catch (error) {
    tar.destroy(error instanceof Error ? error : new Error(String(error)));
    await written.catch(() => undefined); // the cause is thrown below
    throw error;
  }
  await written;
}

/** Owner, group and time are always the same. */
async function addEntry(
  tar: Pack,
  header: Pick<Header, "name" | "size"> & Partial<Header>,
  content?: Readable,
): Promise<void> {
  const fixed = { uid: 0, gid: 0, uname: "", gname: "", mtime: epoch };
  const full = { mode: 0o777, ...header, ...fixed };
  if (content === undefined) {
    tar.entry(full);
    return;
  }
  await pipeline(content, tar.entry(full));
}

const descriptorSchema = z.object({
  digest: z.string(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const indexSchema = z.object({ manifests: z.array(descriptorSchema).min(1) });
const manifestSchema = z.object({ config: descriptorSchema, layers: z.array(descriptorSchema) });
const configSchema = z.object({
  config: z.object({ Entrypoint: z.array(z.string()), User: z.string().optional() }),
});

/** What a container runtime would find in an archive. */
export type FoundImage = {
  /** The names that the archive gives it, each with tag or digest. */
  readonly names: readonly string[];
  readonly digest: string;
  readonly entrypoint: readonly string[];
  readonly user?: string;
  /** Digest of every layer. */
  readonly layers: readonly string[];
};

/**
 * Reads the documents of an archive and checks each blob against its digest.
 *
 * @throws Failure `testbed` if it is not such an archive, or a blob is damaged or missing
 */
export async function readImage(file: string): Promise<FoundImage> {
  const documents = await readDocuments(file);
  const read = (name: string): unknown => {
    const content = documents.get(name);
    if (content === undefined) throw new Failure("testbed", `${file}: no ${name} in it`);
    return JSON.parse(content.toString());
  };
  const { manifests } = indexSchema.parse(read("index.json"));
  const digest = manifests[0]?.digest ?? "";
  const manifest = manifestSchema.parse(read(blobPath(digest)));
  const { config } = configSchema.parse(read(blobPath(manifest.config.digest)));
  const layers = manifest.layers.map((layer) => layer.digest);
  const missing = layers.find((layer) => !documents.has(blobPath(layer)));
  if (missing !== undefined) throw new Failure("testbed", `${file}: layer ${missing} is missing`);
  return {
    names: manifests.map(({ annotations }) => annotations?.["io.containerd.image.name"] ?? ""),
    digest,
    entrypoint: config.Entrypoint,
    ...(config.User === undefined ? {} : { user: config.User }),
    layers,
  };
}

/** No document is longer; what is longer is a layer, of which only the digest is kept. */
const documentBytes = 64 * 1024;

/** Every file of the layout by name; layers come without their content. */
async function readDocuments(file: string): Promise<ReadonlyMap<string, Buffer>> {
  const reader = extract();
  const found = new Map<string, Buffer>();
  const feeding = pipeline(createReadStream(file), reader);
  const reading = (async () => {
    for await (const entry of reader) {
      const { name, size } = entry.header;
      const hash = createHash("sha256");
      const parts: Buffer[] = [];
      for await (const part of entry as AsyncIterable<Buffer>) {
        hash.update(part);
        if (size <= documentBytes) parts.push(part);
      }
      const digest = `sha256:${hash.digest("hex")}`;
      if (name.startsWith("blobs/") && name !== blobPath(digest)) {
        throw new Failure("testbed", `${file}: ${name} is damaged, its content has ${digest}`);
      }
      found.set(name, Buffer.concat(parts));
    }
  })();
  const [fed, read] = await Promise.allSettled([feeding, reading]);
  if (read.status === "rejected") throw read.reason;
  if (fed.status === "rejected") {
    throw new Failure("testbed", `${file}: cannot be read`, { cause: fed.reason });
  }
  return found;
}
