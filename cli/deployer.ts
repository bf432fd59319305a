/** Deploys and destroys one topology for a campaign by the Pulumi engine. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseDocument as parseYaml } from "yaml";
import { z } from "zod";
import { type Deployment, deploymentSchema, type Runtime } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import { callEngine, type EngineResult } from "./pulumi.ts";
import type { Workspace } from "./workspace.ts";

/** The parts of the engine's event stream that are looked at. */
const eventSchema = z.object({
  diagnosticEvent: z
    .object({ severity: z.string(), message: z.string(), urn: z.string().optional() })
    .optional(),
  resOutputsEvent: z
    .object({
      metadata: z.object({
        type: z.string(),
        new: z.object({ outputs: z.record(z.string(), z.unknown()).optional() }).nullish(),
      }),
    })
    .optional(),
});

export type EngineEvents = {
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly errors: readonly string[];
};

/** Reads the events that `pulumi up --json` prints, one JSON object a line. */
export function parseEvents(text: string): EngineEvents {
  let outputs: Record<string, unknown> = {};
  const errors: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("{")) continue;
    const event = eventSchema.parse(JSON.parse(line));
    const { diagnosticEvent: told, resOutputsEvent: done } = event;
    if (told?.severity === "error") {
      const resource = told.urn?.split("::").at(-1);
      errors.push(`${resource === undefined ? "" : `${resource}: `}${told.message.trim()}`);
    }
    if (done?.metadata.type === "pulumi:pulumi:Stack") outputs = done.metadata.new?.outputs ?? {};
  }
  return { outputs, errors };
}

export type RunSettings = {
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly runtime: Runtime;
};

/**
 * Deploys a topology on fresh processes.
 *
 * @param settings of this run; the stack's own config is left as it is
 * @param run token of the campaign that holds the hosts, and the signal that gives up
 * @throws Failure `testbed` with what the engine and the hosts said
 */
export async function deployTopology(
  workspace: Workspace,
  topology: string,
  settings: RunSettings,
  run: { readonly campaign: string; readonly signal: AbortSignal },
): Promise<Deployment> {
  const config = scratchConfig(workspace, topology, settings);
  const args = ["up", "-s", topology, "--yes", "--skip-preview", "--json", "--config-file", config];
  const environment = { ZTBENCH_CAMPAIGN: run.campaign };
  const result = await callEngine(workspace, args, { environment, signal: run.signal });
  const events = parseEvents(result.stdout);
  if (result.exitCode !== 0) throw failure(`${topology}: not deployed`, result, events);
  return deploymentSchema.parse(events.outputs["deployment"]);
}

/**
 * Destroys a topology; nothing to destroy is a success.
 *
 * @throws Failure `testbed` with what the engine and the hosts said
 */
export async function destroyTopology(workspace: Workspace, topology: string): Promise<void> {
  const args = ["destroy", "-s", topology, "--yes", "--skip-preview", "--json"];
  const result = await callEngine(workspace, args);
  if (result.exitCode === 0) return;
  throw failure(`${topology}: not destroyed`, result, parseEvents(result.stdout));
}

function failure(subject: string, result: EngineResult, events: EngineEvents): Failure {
  // The engine repeats itself in general terms; the first cause is what helps.
  const causes = events.errors.filter((message) => message !== "update failed");
  const shown = causes.length > 0 ? causes : [result.stderr.trim() || `exit ${result.exitCode}`];
  return new Failure("testbed", `${subject}, ${shown.join("\n  ")}`);
}

/** A copy of the stack's config with this run's settings, for one operation. */
function scratchConfig(
  workspace: Workspace,
  topology: string,
  { parameters, runtime }: RunSettings,
): string {
  const source = path.join(workspace.config, `Pulumi.${topology}.yaml`);
  const document = parseYaml(readFileSync(source, "utf8"));
  document.setIn(["config", "ztbench:parameters"], parameters);
  document.setIn(["config", "ztbench:runtime"], runtime);
  const directory = path.join(workspace.directory, "campaign");
  mkdirSync(directory, { recursive: true });
  const target = path.join(directory, `Pulumi.${topology}.yaml`);
  writeFileSync(target, document.toString());
  return target;
}
