/** Renders the second phase of preparing a host: parameters that take a reboot. Pure. */
import type { Host } from "../contracts/testbed.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderTable, shellPart } from "./shell.ts";
import { tuningParts } from "./tuning.ts";

/**
 * `create` writes the drop-in with a journal and fails, naming the reboot, until the host has been
 * started with the parameters; then it prints each, `PARAMETER TAB in force`. `remove` takes the
 * drop-in away unless somebody else has changed it.
 */
export function renderBoot(host: Host, parameters: readonly string[]): HostScript {
  return {
    prelude: [
      `host=${quote(host.name)}`,
      ...tuningParts.map(shellPart),
      ...bootPart(parameters),
    ].join("\n"),
    create: "boot_create",
    remove: "refuse_while_leased\nboot_remove",
  };
}

/** A script that is refused on a host that was not started with these parameters. */
export function withBootCheck(script: HostScript, parameters: readonly string[]): HostScript {
  if (parameters.length === 0) return script;
  return {
    ...script,
    prelude: [script.prelude ?? "", ...bootPart(parameters)].join("\n"),
    create: `boot_verify\n${script.create}`,
  };
}

/** Needs the functions of lease. */
function bootPart(parameters: readonly string[]): string[] {
  const rows = parameters.map((parameter) => [parameter]);
  return [renderTable("boot_parameters", rows), shellPart("boot")];
}

/** The state of each parameter, by its text. */
export function parseBoot(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const [parameter = "", state = ""] = line.split("\t");
        return [parameter, state];
      }),
  );
}
