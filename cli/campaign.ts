/** The verb `campaign`: deploys, measures and destroys what a plan says, and prints the table. */
import { readdirSync } from "node:fs";
import path from "node:path";
import type { Analysis } from "../analysis/analysis.ts";
import { measureProbe } from "../analysis/capacity-probe.ts";
import { CampaignWatch } from "../analysis/live.ts";
import { htmlFile } from "../analysis/report.ts";
import { parseDocument } from "../contracts/document.ts";
import { exitCodes, Failure } from "../contracts/failure.ts";
import type { Manifest } from "../contracts/manifest.ts";
import type { Plan } from "../contracts/plan.ts";
import { type CampaignResult, runCampaignOver } from "../loadgen/campaign.ts";
import { requireFeasible } from "../loadgen/feasibility.ts";
import type { CampaignOptions } from "../loadgen/options.ts";
import { openTransport } from "../loadgen/ssh.ts";
import { type InstalledProgram, readToolsManifest } from "../tools/manifest.ts";
import { articleVersion } from "../tools/versions.ts";
import { judgeCampaign, readBudget, requireJudgeable } from "./budget.ts";
import { readCommit } from "./commit.ts";
import { deployerFor, hooksFor, requireTuned } from "./campaign-hosts.ts";
import { knownPlanSchema } from "./known-plan.ts";
import { describePlan } from "./plan-summary.ts";
import { progressTo } from "./progress.ts";
import { campaignToken } from "./release.ts";
import { deriveResults } from "./results.ts";
import { listStacks } from "./pulumi.ts";
import { type Io, readArguments, type Verb } from "./verb.ts";
import { currentWorkspace, readTestbed, readText, root, testbedFileOf } from "./workspace.ts";

const usage = `./ztbench campaign PLAN [--bundle DIRECTORY] [--resume] [--budget FILE] [--json]
       ./ztbench campaign PLAN --estimate

  PLAN        a plan document, e.g. plans/smoke.yaml
  --bundle    where results go; results/<plan>-<time> if not given
  --resume    go on with a bundle that was broken off; the newest of this plan if not given
  --budget    judge the result by a budget document; exit code 6 if a limit is broken
  --estimate  say how long it would take and what it may publish, and do nothing`;

export const campaign: Verb = {
  summary: "measure what a plan says on the current testbed, and print the table",
  usage,
  async run(argv, io) {
    const options = {
      json: { type: "boolean" },
      bundle: { type: "string" },
      resume: { type: "boolean" },
      budget: { type: "string" },
      estimate: { type: "boolean" },
    } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const planFile = positionals[0] ?? "";
    const planText = readText(planFile);
    const plan = parseDocument(knownPlanSchema, planText, planFile);
    const limits = values.budget === undefined ? undefined : readBudget(values.budget);
    if (limits !== undefined) requireJudgeable(limits, plan);
    if (values.estimate === true) {
      io.print(describePlan(plan).join("\n"));
      return 0;
    }
    for (const line of describePlan(plan)) io.say(line);
    const resume = values.resume === true;
    const bundleDir = path.resolve(values.bundle ?? chooseBundle(plan, resume));
    const result = await measure(plan, planText, bundleDir, resume, io);
    const { analysis, shown } = await deriveResults(result.bundleDir, values.json === true);
    io.print(shown);
    io.say(`report: ${path.join(path.relative(root, result.bundleDir), htmlFile)}`);
    const empty = analysis.comparison.treatments.filter(({ runs }) => runs.valid === 0);
    for (const { label } of empty) io.say(`ztbench: ${label}: no valid run, see the gates above`);
    const judged = limits && judgeCampaign(limits, analysis);
    if (judged !== undefined) io.say(judged.shown);
    const excess = tooManyInvalid(analysis);
    if (excess !== undefined) io.say(`ztbench: ${excess}`);
    const broken = analysis.campaignGates.filter(({ outcome }) => outcome === "invalid");
    for (const { id, measured, threshold } of broken) {
      io.say(`ztbench: the campaign is invalid, ${id}: ${measured}, wanted ${threshold}`);
    }
    const failed = empty.length > 0 || excess !== undefined || broken.length > 0;
    return failed ? exitCodes.load : (judged?.code ?? 0);
  },
};

/** With more invalid runs than this share a campaign has failed; its bundle is kept. */
const invalidShareMax = 0.1;

function tooManyInvalid({ runs }: Analysis): string | undefined {
  const invalid = runs.filter(({ verdict }) => verdict === "INVALID").length;
  return invalid > invalidShareMax * runs.length
    ? `${invalid} of ${runs.length} runs are invalid, allowed is a tenth`
    : undefined;
}

function describeProgram(program: InstalledProgram): Manifest["programs"][number] {
  const { name, version, sha256, author, provenance } = program;
  const articles = articleVersion(name);
  return {
    name,
    version,
    ...(articles === undefined ? {} : { articles }),
    sha256,
    provenance: `${author}: ${provenance}`,
  };
}

async function measure(
  plan: Plan,
  planText: string,
  bundleDir: string,
  resume: boolean,
  io: Io,
): Promise<CampaignResult> {
  const workspace = currentWorkspace();
  const testbed = readTestbed(testbedFileOf(workspace));
  const unfit = requireFeasible(plan, testbed);
  const stacks = await listStacks(workspace);
  if ((stacks.get("hosts") ?? 0) === 0) {
    throw new Failure("testbed", `testbed ${testbed.name}: hosts are not prepared`, {
      hint: 'eval "$(./ztbench env)" && pulumi up -s hosts',
    });
  }
  const tools = await readToolsManifest(root);
  const token = campaignToken(bundleDir);
  const transport = await openTransport(testbed);
  const options: CampaignOptions = {
    plan,
    planText,
    testbed,
    bundleDir,
    resume,
    deployer: deployerFor(transport, workspace, testbed, token),
    hooks: hooksFor(transport, testbed, token),
    watch: new CampaignWatch(),
    judgeProbe: (directory, probe, objective) =>
      measureProbe(directory, probe.directory, probe, objective),
    programs: tools.programs.map(describeProgram),
    commit: await readCommit(),
    versionSet: tools.set,
    warnings: [
      ...unfit,
      ...(testbed.scheduling === "rr"
        ? []
        : ["SCHED_RR is not in use: tails hold scheduling delay"]),
      ...(testbed.class === "lab" ? ["all hosts share the CPUs of one machine (lab)"] : []),
    ],
    progress: progressTo(io.say),
    signal: io.signal,
  };
  try {
    requireTuned(testbed, await options.hooks.readback(io.signal));
    return await runCampaignOver(transport, options);
  } finally {
    await transport.close();
  }
}

/** A new directory for a new campaign; for a resumption the newest one of the plan. */
function chooseBundle(plan: Plan, resume: boolean): string {
  const results = path.join(root, "results");
  if (!resume) {
    const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "");
    return path.join(results, `${plan.name}-${time}Z`);
  }
  const name = new RegExp(`^${plan.name}-\\d{8}T\\d{6}Z$`);
  const newest = listDirectory(results)
    .filter((entry) => name.test(entry))
    .sort()
    .at(-1);
  if (newest === undefined) {
    throw new Failure("usage", `--resume: no bundle of plan ${plan.name} in results/`, {
      hint: "name it with --bundle, or start anew without --resume",
    });
  }
  return path.join(results, newest);
}

function listDirectory(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
