/** What the installer does: obtains every program, then places them in the checkout. */
import { mkdir } from "node:fs/promises";
import { Failure } from "../contracts/failure.ts";
import { type CachedProgram, lookUp, obtain, prune } from "./cache.ts";
import { chartRecipes } from "./charts.ts";
import { chooseRecipes } from "./choice.ts";
import { type Placement, placePrograms } from "./checkout.ts";
import { forgetRefusal, upstreamPlugin } from "./command-plugin.ts";
import { installPackages, missingPackages } from "./debian.ts";
import type { PackagePurpose } from "./debian-packages.ts";
import { imageNames } from "./image-index.ts";
import {
  clusterImages,
  imageIndexRecipe,
  imageRecipe,
  type Ingredient,
  pauseRecipe,
} from "./images.ts";
import { istioRecipes, podControlPlane } from "./istio.ts";
import { kubernetesRecipes } from "./kubernetes.ts";
import { type ListingRow, renderListing } from "./listing.ts";
import { readToolsManifest, type ToolsManifest } from "./manifest.ts";
import { pluginFiles, toolPaths } from "./paths.ts";
import {
  envoyRecipe,
  type ProgramGroup,
  pulumiRecipes,
  type Recipe,
  serviceRecipes,
  standInRecipe,
  vegetaRecipe,
} from "./programs.ts";
import type { Progress } from "./progress.ts";
import { checkNode, findGo, type GoToolchain } from "./toolchain.ts";
import { versions } from "./versions.ts";

export type Options = {
  readonly list: boolean;
  readonly json: boolean;
  readonly withoutLab: boolean;
  readonly withTests: boolean;
  readonly withCluster: boolean;
  readonly retryUpstream: boolean;
};

export type Installer = {
  readonly root: string;
  readonly cache: string;
  readonly platform: string;
  readonly progress: Progress;
};

const commandPlugin = (platform: string) => ({
  name: "command",
  version: versions["pulumi-resource-command"].version,
  platform,
});

/**
 * Installs everything into the checkout.
 *
 * @throws Failure `testbed` naming all that could not be had
 */
export async function install(installer: Installer, options: Options): Promise<ToolsManifest> {
  const { root, cache, platform } = installer;
  checkNode();
  if (options.retryUpstream) await forgetRefusal(cache, commandPlugin(platform));
  const paths = toolPaths(root);
  await Promise.all([paths.bin, paths.hostBin].map((d) => mkdir(d, { recursive: true })));
  // Compiling keeps the processors busy and fetching the network, so both go on at once.
  const lanes = await Promise.allSettled([compile(installer, options), fetch(installer, options)]);
  const failures = lanes.flatMap((lane): unknown[] =>
    lane.status === "rejected" ? [lane.reason] : [],
  );
  if (failures.length > 0) throw joinFailures(failures);
  const programs = lanes.flatMap((lane) => (lane.status === "fulfilled" ? lane.value : []));
  const placements = [...programs, ...(await images(installer, programs))];
  const header = { schema: "ztbench/tools/1", set: "lab", platform } as const;
  const manifest = await placePrograms(root, placements, header);
  await prune(cache, Date.now());
  return manifest;
}

async function fetch(installer: Installer, options: Options): Promise<readonly Placement[]> {
  await installPackages(purposes(options), installer.progress);
  return [await obtained(installer, envoyRecipe(installer.platform))];
}

async function compile(installer: Installer, options: Options): Promise<readonly Placement[]> {
  const { root } = installer;
  const go = await findGo();
  const istio = await chosen(installer, options, await istioRecipes(root, go));
  const recipes = [
    await vegetaRecipe(root, go),
    ...(await serviceRecipes(root, go)),
    ...(await pulumiRecipes(root, go)),
    // Where images are made, this is, too: it takes a second.
    ...(istio.some(({ name }) => name === podControlPlane) ? [await pauseRecipe(root, go)] : []),
    // Last, since they take longest: whatever fails before is then known early.
    ...istio,
    ...(await chartRecipes(root, go)),
    ...(await chosen(installer, options, await kubernetesRecipes(root, go))),
  ];
  const placements: Placement[] = [];
  for (const recipe of recipes) placements.push(await obtained(installer, recipe));
  const cli = placements.find((p) => p.program.name === "pulumi");
  if (cli === undefined) throw new Failure("bug", "pulumi: no recipe");
  placements.push(await placedCommandPlugin(installer, cli.source, await standInRecipe(root, go)));
  return placements;
}

/** The images of the cluster and their table, where their programs were made. */
async function images(
  installer: Installer,
  programs: readonly Placement[],
): Promise<readonly Placement[]> {
  const go = await findGo();
  const made = await clusterImages((name) => {
    const found = programs.find(({ program }) => program.name === name);
    return found && { ...found.program, source: found.source };
  });
  if (made.length === 0) return [];
  const placements: Placement[] = [];
  const cached = [];
  for (const image of made) {
    const recipe = imageRecipe(image, go);
    const archive = await fromCache(installer, recipe);
    placements.push(placement(recipe, archive));
    cached.push({ image, cached: archive });
  }
  return [...placements, await obtained(installer, imageIndexRecipe(cached))];
}

/** Recipes of this run; what is left out although the checkout has it is named. */
async function chosen(
  { root, cache, progress }: Installer,
  options: Options,
  recipes: readonly Recipe[],
): Promise<readonly Recipe[]> {
  const asked = new Set<ProgramGroup>([
    ...(options.withTests ? (["tests"] as const) : []),
    ...(options.withCluster ? (["cluster"] as const) : []),
  ]);
  const before = await readToolsManifest(root).catch(() => undefined);
  const names = new Set(before?.programs.map(({ name }) => name));
  const cached = new Set<string>();
  for (const { key } of recipes) if ((await lookUp(cache, key)) !== undefined) cached.add(key);
  const { wanted, dropped } = chooseRecipes(recipes, asked, names, cached);
  for (const { name, groups } of dropped) {
    progress(`${name} has changed and is left out: --with-${groups?.[0] ?? ""} makes it`);
  }
  return wanted;
}

async function placedCommandPlugin(
  installer: Installer,
  pulumi: string,
  standIn: Recipe,
): Promise<Placement> {
  const plugin = commandPlugin(installer.platform);
  const found = await upstreamPlugin(installer.cache, plugin, pulumi, installer.progress);
  if (found === undefined) return obtained(installer, standIn);
  const { name, version } = standIn;
  const provenance = "fetched by pulumi plugin install; digest recorded, not pinned";
  return placement(
    { name, version, author: "upstream", provenance, files: [pluginFiles.command] },
    found,
  );
}

async function obtained(installer: Installer, recipe: Recipe): Promise<Placement> {
  return placement(recipe, await fromCache(installer, recipe));
}

async function fromCache(installer: Installer, recipe: Recipe): Promise<CachedProgram> {
  const { cache, progress } = installer;
  const make = async (target: string) => {
    progress(recipe.task);
    return recipe.make(target);
  };
  const onWait = () => {
    progress(`${recipe.name}: another run is making it, waiting`);
  };
  return obtain(cache, recipe.key, make, onWait);
}

function placement(
  recipe: Pick<Recipe, "name" | "version" | "author" | "provenance" | "files">,
  cached: CachedProgram,
): Placement {
  const { name, version, author, provenance, files } = recipe;
  const { key, sha256, bytes } = cached;
  const program = { name, version, sha256, author, provenance, bytes, key, files: [...files] };
  return { program, source: cached.file };
}

function purposes(options: Options): readonly PackagePurpose[] {
  return [
    "tools",
    ...(options.withoutLab ? [] : (["lab"] as const)),
    ...(options.withTests ? (["test"] as const) : []),
  ];
}

/** One failure that says everything; anything that is not a Failure is a bug and goes first. */
function joinFailures(reasons: readonly unknown[]): unknown {
  const failures = reasons.filter((reason) => reason instanceof Failure);
  const [first] = failures;
  if (first === undefined || failures.length < reasons.length || failures.length === 1) {
    return reasons.find((reason) => !(reason instanceof Failure)) ?? first;
  }
  const hints = failures.flatMap((failure) => failure.hint ?? []);
  return new Failure(first.code, failures.map((failure) => failure.message).join("\n"), {
    hint: hints.join("\n"),
    cause: first,
  });
}

/** What `--list` shows: each program and whether the cache has it. Changes nothing. */
export async function list(installer: Installer, options: Options): Promise<string> {
  const { root, cache, platform } = installer;
  const go = await findGo();
  const recipes = [
    ...(await pulumiRecipes(root, go)),
    await standInRecipe(root, go),
    await vegetaRecipe(root, go),
    envoyRecipe(platform),
    ...(await istioRecipes(root, go)),
    ...(await chartRecipes(root, go)),
    ...(await serviceRecipes(root, go)),
    await pauseRecipe(root, go),
    ...(await kubernetesRecipes(root, go)),
  ];
  const rows = await Promise.all(recipes.map((recipe) => rowOf(cache, recipe)));
  rows.push(...(await imageRows(cache, recipes, go)));
  const missing = (await missingPackages(purposes(options))).map((p) => p.name);
  if (options.json) return JSON.stringify({ programs: rows, missingPackages: missing }, null, 2);
  return renderListing(rows, missing);
}

/** Keys of images follow from their programs, so they are known once those are there. */
async function imageRows(
  cache: string,
  recipes: readonly Recipe[],
  go: GoToolchain,
): Promise<ListingRow[]> {
  const cached = new Map<string, Ingredient>();
  for (const { name, version, key } of recipes) {
    const found = await lookUp(cache, key);
    if (found !== undefined) cached.set(name, { ...found, version, source: found.file });
  }
  const made = await clusterImages((name) => cached.get(name));
  if (made.length === 0) {
    const unknown = { version: "", author: "ztbench", provenance: "written here" };
    return imageNames.map((id) => ({ name: `image ${id}`, ...unknown, state: "to be made" }));
  }
  const recipesOfImages = made.map((image) => imageRecipe(image, go));
  return Promise.all(recipesOfImages.map((recipe) => rowOf(cache, recipe)));
}

async function rowOf(cache: string, recipe: Recipe): Promise<ListingRow> {
  const { name, version, author, provenance, key } = recipe;
  const isCached = (await lookUp(cache, key)) !== undefined;
  return { name, version, author, provenance, state: isCached ? "cached" : "to be made" };
}
