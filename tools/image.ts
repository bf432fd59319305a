/**
 * What a container image is made of, and the documents that describe it: OCI image layout 1.0.0
 * with one layer, which is a plain tar, so that no compressor has a say in the digest. Pure.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { Failure } from "../contracts/failure.ts";

/** A file whose content is on this machine; directories above it come by themselves. */
export type ImageFile = {
  readonly kind: "file";
  /** Absolute path in the image. */
  readonly path: string;
  readonly source: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly executable: boolean;
};

export type ImageEntry =
  | ImageFile
  | { readonly kind: "text"; readonly path: string; readonly text: string }
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

export type Image = {
  /** Without a registry's host, e.g. `ztbench.local/envoy`. */
  readonly name: string;
  readonly tag: string;
  readonly entrypoint: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** `uid:gid`; absent: root. */
  readonly user?: string;
  readonly entries: readonly ImageEntry[];
};

/** Content under its digest, as registries and container runtimes name it. */
export type Blob = { readonly digest: string; readonly bytes: number };

const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
} as const;

/** All times of an image: what a file system says of them must not change its digest. */
export const epoch = new Date(0);

/**
 * Everything in the layer, in the order of the tar: sorted by path, each directory before what it
 * holds.
 *
 * @throws Failure `bug` if a path is not absolute and plain, or is there twice
 */
export function layerEntries(image: Image): readonly ImageEntry[] {
  const entries = new Map<string, ImageEntry>();
  for (const entry of image.entries) {
    if (!path.posix.isAbsolute(entry.path) || path.posix.normalize(entry.path) !== entry.path) {
      throw new Failure(
        "bug",
        `image ${image.name}: path ${entry.path}, absolute and plain wanted`,
      );
    }
    if (entries.has(entry.path)) {
      throw new Failure("bug", `image ${image.name}: ${entry.path} is there twice`);
    }
    entries.set(entry.path, entry);
  }
  for (const { path: inside } of image.entries) {
    let above = path.posix.dirname(inside);
    while (above !== "/") {
      if (!entries.has(above)) {
        entries.set(above, { kind: "directory", path: above, mode: 0o755 });
      }
      above = path.posix.dirname(above);
    }
  }
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** All that shapes the layer and the documents, for the key of a cache. */
export function determinants(image: Image): Record<string, unknown> {
  const contents = layerEntries(image).map((entry) =>
    entry.kind === "file"
      ? [entry.kind, entry.path, entry.sha256, entry.executable]
      : Object.values(entry),
  );
  const { name, tag, entrypoint, environment, user } = image;
  return { kind: "image", format: 1, name, tag, entrypoint, environment, user, contents };
}

export type ImageDocuments = {
  readonly manifestDigest: string;
  /** Files of the layout by path; the layer itself comes after them, under `layerPath`. */
  readonly files: ReadonlyMap<string, Buffer>;
  readonly layerPath: string;
};

/**
 * The documents around a layer. The index names the image twice, by tag and by digest, so that
 * pods may refer to it either way.
 */
export function imageDocuments(image: Image, layer: Blob, architecture: string): ImageDocuments {
  const platform = { architecture, os: "linux" };
  const config = json({
    ...platform,
    created: epoch.toISOString(),
    config: {
      Entrypoint: image.entrypoint,
      Env: Object.entries(image.environment).map(([name, value]) => `${name}=${value}`),
      ...(image.user === undefined ? {} : { User: image.user }),
    },
    rootfs: { type: "layers", diff_ids: [layer.digest] },
  });
  const manifest = json({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: descriptor(mediaTypes.config, blobOf(config)),
    layers: [descriptor(mediaTypes.layer, layer)],
  });
  const { digest } = blobOf(manifest);
  const named = (name: string) => ({
    ...descriptor(mediaTypes.manifest, blobOf(manifest)),
    platform,
    annotations: {
      "io.containerd.image.name": name,
      "org.opencontainers.image.ref.name": name,
    },
  });
  const index = json({
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [named(`${image.name}:${image.tag}`), named(`${image.name}@${digest}`)],
  });
  const blobs = [config, manifest].map((blob) => [blobPath(blobOf(blob).digest), blob] as const);
  const layout = json({ imageLayoutVersion: "1.0.0" });
  return {
    manifestDigest: digest,
    files: new Map([["oci-layout", layout], ["index.json", index], ...blobs]),
    layerPath: blobPath(layer.digest),
  };
}

/** Where a blob lies in the layout. */
export function blobPath(digest: string): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** The blob that the given bytes are. */
export function blobOf(content: Buffer): Blob {
  return { digest: `sha256:${sha256(content)}`, bytes: content.length };
}

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const descriptor = (mediaType: string, { digest, bytes }: Blob) => ({
  mediaType,
  digest,
  size: bytes,
});
