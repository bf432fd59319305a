/** Opens the bundle of a campaign: a new one with its manifest, or one to go on with. */
import type { Manifest } from "../contracts/manifest.ts";
import { Failure } from "../contracts/failure.ts";
import { Bundle } from "./bundle.ts";
import { sha256Text } from "./bundle-files.ts";
import type { CampaignOptions } from "./options.ts";
import { orderRuns } from "./order.ts";

/**
 * @throws Failure `usage` or `document` as `Bundle` does, and `comparison` if the bundle to go on
 *   with was made on another testbed or with another version set
 */
export async function openBundle(options: CampaignOptions): Promise<Bundle> {
  if (!options.resume) {
    const manifest = describeCampaign(options, await options.hooks.facts(options.signal));
    return Bundle.create(options.bundleDir, options.planText, manifest);
  }
  const bundle = await Bundle.resume(options.bundleDir, options.planText);
  const now = describeCampaign(options, bundle.manifest.facts);
  requireComparable(bundle.manifest, now);
  await bundle.warn([...options.warnings, ...differences(bundle.manifest, now)]);
  return bundle;
}

function describeCampaign(options: CampaignOptions, facts: Manifest["facts"]): Manifest {
  const { plan, planText, testbed, commit } = options;
  return {
    schema: "ztbench/manifest/1",
    campaign: plan.name,
    createdAt: new Date().toISOString(),
    planSha256: sha256Text(planText),
    seed: plan.seed,
    versionSet: options.versionSet,
    programs: options.programs,
    commit: commit.id,
    dirty: commit.dirty,
    testbed: {
      name: testbed.name,
      class: testbed.class,
      ...(testbed.instance === undefined ? {} : { instance: testbed.instance }),
      scheduling: testbed.scheduling,
      tuningProfile: testbed.tuningProfile,
    },
    facts,
    order: orderRuns(plan),
    warnings: [...options.warnings],
  };
}

/** Runs of one bundle are compared with each other, so they must come from the same machines. */
function requireComparable(was: Manifest, is: Manifest): void {
  const fixed: readonly (readonly [string, string, string])[] = [
    ["testbed", was.testbed.name, is.testbed.name],
    ["testbed class", was.testbed.class, is.testbed.class],
    ["scheduling", was.testbed.scheduling, is.testbed.scheduling],
    // Bundles of an earlier version do not tell.
    ["tuning profile", was.testbed.tuningProfile ?? tuningOf(is), tuningOf(is)],
    ["version set", was.versionSet, is.versionSet],
  ];
  const problems = fixed
    .filter(([, before, now]) => before !== now)
    .map(([what, before, now]) => `${what} is ${now}, the bundle has ${before}`);
  if (problems.length > 0) {
    throw new Failure("comparison", `resume: ${problems.join("; ")}`, {
      hint: "resume where the bundle was begun, or start a new one",
    });
  }
}

function tuningOf({ testbed }: Manifest): string {
  return testbed.tuningProfile ?? "not recorded";
}

/** What a reader of the bundle must know about its later runs. */
function differences(was: Manifest, is: Manifest): string[] {
  const programs = is.programs.filter((program) => {
    const before = was.programs.find(({ name }) => name === program.name);
    return before?.sha256 !== program.sha256;
  });
  const when = `resumed ${is.createdAt}`;
  return [
    ...(was.testbed.instance === is.testbed.instance
      ? []
      : [`${when}: on another boot of the lab, ${is.testbed.instance ?? "none"}`]),
    ...(was.commit === is.commit && was.dirty === is.dirty
      ? []
      : [`${when}: with commit ${is.commit}${is.dirty ? " and changes" : ""}`]),
    ...programs.map(({ name, sha256 }) => `${when}: with another ${name}, sha256 ${sha256}`),
  ];
}
