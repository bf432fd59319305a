/**
 * The images of the lab's cluster, made of programs that are installed anyway: no registry is
 * asked, and none could be, since their names have no registry's host.
 */
import { writeFile } from "node:fs/promises";
import { cacheKey, type CachedProgram } from "./cache.ts";
import { goProgram } from "./go-program.ts";
import { iptablesEntries, librariesOf } from "./host-files.ts";
import { determinants, type Image, type ImageEntry } from "./image.ts";
import { readImage, writeImage } from "./image-archive.ts";
import { type ImageIndex, imageIndexFile, type ImageName } from "./image-index.ts";
import { forImages, identity, ownVersion, type Recipe } from "./programs.ts";
import type { GoToolchain } from "./toolchain.ts";

/** A program that is in the cache. */
export type Ingredient = {
  readonly version: string;
  readonly source: string;
  readonly sha256: string;
  readonly bytes: number;
};

/** The program of that name, or undefined where it was not made. */
export type Pantry = (name: string) => Ingredient | undefined;

export type NamedImage = Image & { readonly id: ImageName };

/** Programs that images are made of; with all of them there, images are made. */
const ingredients = [
  ...["pause", "pilot-discovery", "pilot-agent", "envoy_bootstrap.json", "envoy"],
  ...["ztecho", "ztissuer", "ztnull"],
] as const;
type IngredientName = (typeof ingredients)[number];

const repository = "ztbench.local";
const environment = { PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/" };
const bin = "/usr/local/bin";
const nobody = "65534:65534";
/** Fixed by Istio: traffic of this user is not led to the sidecar again. */
const proxyUser = 1337;

/** What every image has: names of its users, and a place for temporary files. */
const foundation: readonly ImageEntry[] = [
  {
    kind: "text",
    path: "/etc/passwd",
    text: [
      "root:x:0:0:root:/:/sbin/nologin",
      `istio-proxy:x:${proxyUser}:${proxyUser}:sidecar:/var/lib/istio:/sbin/nologin`,
      "nobody:x:65534:65534:nobody:/:/sbin/nologin",
      "",
    ].join("\n"),
  },
  {
    kind: "text",
    path: "/etc/group",
    text: `root:x:0:\nistio-proxy:x:${proxyUser}:\nnogroup:x:65534:\n`,
  },
  { kind: "directory", path: "/tmp", mode: 0o1777 },
];

/** The first process of every pod; ours, since a runtime would fetch one otherwise. */
export async function pauseRecipe(root: string, go: GoToolchain): Promise<Recipe> {
  const directory = "tools/go/pause";
  return {
    ...identity({ name: "pause", version: await ownVersion(root) }, "ztbench"),
    provenance: `own code in ${directory}, built here with ${go.version}`,
    files: [forImages("pause")],
    groups: ["cluster"],
    task: "building pause",
    ...(await goProgram(root, go, { directory, package: ".", stamps: {}, from: "module" })),
  };
}

/** All images, or none where one of their programs was not made. */
export async function clusterImages(pantry: Pantry): Promise<readonly NamedImage[]> {
  const found = new Map(ingredients.map((name) => [name, pantry(name)] as const));
  if ([...found.values()].includes(undefined)) return [];
  const take = (name: IngredientName): Ingredient => {
    const ingredient = found.get(name);
    if (ingredient === undefined) throw new Error(`image: ${name} is not there`);
    return ingredient;
  };
  const libraries = await librariesOf(take("envoy").source);
  return composeImages(take, libraries, await iptablesEntries());
}

/** What goes where. `libraries` are those of Envoy; `iptables` brings its own. Pure. */
export function composeImages(
  take: (name: IngredientName) => Ingredient,
  libraries: readonly ImageEntry[],
  iptables: readonly ImageEntry[],
): readonly NamedImage[] {
  const put = (name: IngredientName, path: string, executable = true): ImageEntry => {
    const { source, sha256, bytes } = take(name);
    return { kind: "file", path, source, sha256, bytes, executable };
  };
  const image = (id: ImageName, of: IngredientName, entrypoint: string, rest: RestOfImage) => {
    const named = { id, name: `${repository}/${id}`, tag: take(of).version, environment };
    const { user, entries } = rest;
    const all = uniqueEntries([...foundation, put(of, entrypoint), ...entries]);
    return { ...named, entrypoint: [entrypoint], ...(user && { user }), entries: all };
  };
  const agent: RestOfImage = {
    // Without a user: as an init container it changes packet filters; pods choose otherwise.
    entries: [
      put("envoy", `${bin}/envoy`),
      put("envoy_bootstrap.json", "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json", false),
      ...libraries,
      ...iptables,
    ],
  };
  const others = [put("ztissuer", "/ztissuer"), put("ztnull", "/ztnull")];
  return [
    image("pause", "pause", "/pause", { user: nobody, entries: [] }),
    image("service", "ztecho", "/ztecho", { user: nobody, entries: others }),
    image("envoy", "envoy", `${bin}/envoy`, { user: nobody, entries: libraries }),
    image("proxyv2", "pilot-agent", `${bin}/pilot-agent`, agent),
    image("istiod", "pilot-discovery", `${bin}/pilot-discovery`, {
      user: `${proxyUser}:${proxyUser}`,
      entries: [],
    }),
  ];
}

type RestOfImage = { readonly user?: string; readonly entries: readonly ImageEntry[] };

/** Two programs may share a library; what is the same is put there once. */
function uniqueEntries(entries: readonly ImageEntry[]): readonly ImageEntry[] {
  return [...new Map(entries.map((entry) => [JSON.stringify(entry), entry])).values()];
}

/** How the archive of an image is made. */
export function imageRecipe(image: NamedImage, go: GoToolchain): Recipe {
  const { id, name, tag } = image;
  const { architecture } = go;
  const programs = image.entries.filter(({ kind }) => kind === "file").length;
  return {
    ...identity({ name: `image ${id}`, version: tag }, "ztbench"),
    provenance: `one layer of ${programs} files, written here`,
    files: [`images/${id}.tar`],
    groups: ["cluster"],
    task: `writing image ${name}:${tag}`,
    key: cacheKey({ ...determinants(image), architecture }),
    make: async (target) => {
      const digest = await writeImage(target, image, architecture);
      return `ztbench, manifest ${digest}`;
    },
  };
}

/** How the table of all images is made. */
export function imageIndexRecipe(
  images: readonly { readonly image: NamedImage; readonly cached: CachedProgram }[],
): Recipe {
  return {
    ...identity({ name: "image index", version: "1" }, "ztbench"),
    provenance: "what the images are and how pods name them",
    files: [`images/${imageIndexFile}`],
    groups: ["cluster"],
    task: "listing the images",
    key: cacheKey({ kind: "image index", format: 1, keys: images.map(({ cached }) => cached.key) }),
    make: async (target) => {
      const index: ImageIndex = { schema: "ztbench/images/1", images: [] };
      for (const { image, cached } of images) index.images.push(await indexed(image, cached));
      await writeFile(target, JSON.stringify(index, null, 2) + "\n");
      return "ztbench";
    },
  };
}

async function indexed(image: NamedImage, { file, bytes }: CachedProgram) {
  const { id, name, tag, entrypoint, entries } = image;
  const { digest } = await readImage(file);
  const contents = entries.flatMap((entry) =>
    entry.kind === "file" ? [{ path: entry.path, sha256: entry.sha256 }] : [],
  );
  const rest = { file: `${id}.tar`, bytes, entrypoint: [...entrypoint], contents };
  return { id, name, tag, digest, ...rest };
}
