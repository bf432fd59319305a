/**
 * The command provider: upstream's plugin where the Pulumi CLI can fetch it, else our stand-in.
 * A refusal is remembered for a day, so that runs without a way out stay quick.
 */
import { copyFile, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { $ } from "zx";
import { cacheKey, type CachedProgram, lookUp, obtain } from "./cache.ts";
import type { Progress } from "./progress.ts";

export type UpstreamPlugin = {
  /** Name of the provider, e.g. `command`. */
  readonly name: string;
  readonly version: string;
  readonly platform: string;
};

const attemptTimeout = "30s";
const rememberedForMs = 24 * 3600 * 1000;

/** Forgets that the plugin could not be fetched, so that the next run tries again. */
export async function forgetRefusal(root: string, plugin: UpstreamPlugin): Promise<void> {
  await rm(refusalFile(root, plugin), { force: true });
}

/** Whether a refusal of the given time (ms since the epoch) still counts. */
export function isRemembered(refusedAtMs: number, nowMs: number): boolean {
  return nowMs >= refusedAtMs && nowMs - refusedAtMs < rememberedForMs;
}

/**
 * Upstream's plugin from the cache or, in bounded time, from Pulumi's servers.
 *
 * @param pulumi path of the Pulumi CLI
 * @returns undefined if it cannot be had here
 */
export async function upstreamPlugin(
  root: string,
  plugin: UpstreamPlugin,
  pulumi: string,
  progress: Progress,
): Promise<CachedProgram | undefined> {
  const key = cacheKey({ kind: "upstream plugin", ...plugin });
  const known = await lookUp(root, key);
  if (known !== undefined) return known;
  if (await isRefused(root, plugin)) return undefined;
  progress(`trying upstream's plugin ${plugin.name} ${plugin.version} (at most ${attemptTimeout})`);
  try {
    return await obtain(
      root,
      key,
      async (target) => {
        if (await isRefused(root, plugin)) throw new Error("another run could not fetch it");
        return fetchPlugin(plugin, pulumi, target);
      },
      () => {
        progress("another run is trying that: waiting");
      },
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const file = refusalFile(root, plugin);
    await mkdir(path.dirname(file), { recursive: true });
    if (!(await isRefused(root, plugin))) await writeFile(file, reason + "\n");
    progress(`upstream's plugin cannot be had here (${reason}): using ours`);
    return undefined;
  }
}

async function isRefused(root: string, plugin: UpstreamPlugin): Promise<boolean> {
  const found = await stat(refusalFile(root, plugin)).catch(() => undefined);
  return found !== undefined && isRemembered(found.mtimeMs, Date.now());
}

async function fetchPlugin(
  plugin: UpstreamPlugin,
  pulumi: string,
  target: string,
): Promise<string> {
  const home = await mkdtemp(path.join(path.dirname(target), "home-"));
  try {
    const env = { ...process.env, PULUMI_HOME: home, PULUMI_SKIP_UPDATE_CHECK: "true" };
    const spawn = $({ quiet: true, nothrow: true, timeout: attemptTimeout, env, cwd: home });
    const run = await spawn`${pulumi} plugin install resource ${plugin.name} ${plugin.version}`;
    if (run.exitCode !== 0) {
      const said = run.stderr.trim().split("\n").at(-1) ?? "";
      const reason = said.replace(/^error: /, "").replace("downloading from : ", "");
      throw new Error(reason === "" ? `no answer within ${attemptTimeout}` : reason);
    }
    const folder = `resource-${plugin.name}-v${plugin.version}`;
    await copyFile(path.join(home, "plugins", folder, `pulumi-resource-${plugin.name}`), target);
    return "pulumi plugin install";
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function refusalFile(root: string, { name, version, platform }: UpstreamPlugin): string {
  return path.join(root, "refusals", `${name}-${version}-${platform}`);
}
