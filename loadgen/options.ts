/** What a campaign is given from outside, and what its steps share; types only. */
import type { CapacitySettings } from "../contracts/capacity.ts";
import type { CapacityProbe } from "../contracts/capacity-search.ts";
import type { Deployment } from "../contracts/deployment.ts";
import type { Manifest } from "../contracts/manifest.ts";
import type { LoadSettings, Plan, Treatment } from "../contracts/plan.ts";
import type { RunRecord } from "../contracts/record.ts";
import type { Testbed } from "../contracts/testbed.ts";
import type { Bundle } from "./bundle.ts";
import type { CampaignProgress } from "./progress.ts";
import type { Transport } from "./ssh.ts";

/** How topologies come and go; the load side does not know how that is done. */
export type Deployer = {
  /** On fresh processes; returns when the path answers. */
  deploy(treatment: Treatment, load: LoadSettings, signal: AbortSignal): Promise<Deployment>;
  /** What was put on the hosts: `host/path` to text, without anything secret. */
  configuration(deployment: Deployment): Readonly<Record<string, string>>;
  /** Succeeds if there is nothing to destroy. */
  destroy(topology: string, signal: AbortSignal): Promise<void>;
  /** @throws Failure that names what is left on the hosts */
  proveAbsent(topology: string, signal: AbortSignal): Promise<void>;
};

export type Tuning = RunRecord["tuning"];

/** What the host side does for a campaign. */
export type CampaignHooks = {
  /** Tuning as read from the hosts: host to knob to value seen. */
  readback(signal: AbortSignal): Promise<Tuning>;
  /** Raw facts of the hosts: host to fact to text. */
  facts(signal: AbortSignal): Promise<Manifest["facts"]>;
  readonly lease: {
    take(signal: AbortSignal): Promise<void>;
    release(signal: AbortSignal): Promise<void>;
  };
};

/** A probe of a capacity search before it is judged; its raw files lie in the directory. */
export type MeasuredProbe = Pick<CapacityProbe, "directory" | "purpose" | "rateQps" | "load"> & {
  readonly measured: NonNullable<CapacityProbe["measured"]>;
};

/** Decides from the raw files whether a probe holds the objective. */
export type JudgeProbe = (
  directory: string,
  probe: MeasuredProbe,
  settings: CapacitySettings,
) => Promise<{ readonly passed: boolean; readonly reasons: readonly string[] }>;

/** Looks at runs while a campaign lasts: what it finds decides on repeats and on the end. */
export type RunWatch = {
  /** Why a finished run is of no use, undefined if it is; asked for every run, in order. */
  judge(bundleDir: string, runName: string): Promise<string | undefined>;
  /** Why no block is needed after this one, undefined if one is. */
  enough(bundleDir: string, block: number): Promise<string | undefined>;
};

export type CampaignOptions = {
  readonly plan: Plan;
  /** The plan as the user wrote it, which is what is hashed and kept. */
  readonly planText: string;
  readonly testbed: Testbed;
  readonly bundleDir: string;
  readonly resume: boolean;
  readonly deployer: Deployer;
  readonly hooks: CampaignHooks;
  /** There whenever the plan searches capacities. */
  readonly judgeProbe?: JudgeProbe;
  /** Without it only runs that broke off are repeated, and every block is run. */
  readonly watch?: RunWatch;
  readonly programs: Manifest["programs"];
  readonly commit: { readonly id: string; readonly dirty: boolean };
  readonly versionSet: Manifest["versionSet"];
  readonly warnings: readonly string[];
  readonly progress: CampaignProgress;
  /** Ends the campaign in order: hosts are cleared, what was measured is kept. */
  readonly signal: AbortSignal;
};

/** What all steps of a campaign share. */
export type Campaign = {
  readonly options: CampaignOptions;
  readonly transport: Transport;
  readonly bundle: Bundle;
  /** Part of the names of units and directories on the hosts. */
  readonly token: string;
};
