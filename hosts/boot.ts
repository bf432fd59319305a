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
    prelude: bootPrelude(host, parameters, tuningParts).join("\n"),
    create: "boot_create",
    remove: "refuse_while_leased\nboot_remove",
  };
}

/** What `boot_verify` needs besides the functions of lease. */
export function bootPrelude(
  host: Host,
  parameters: readonly string[],
  parts: typeof tuningParts | readonly [],
): string[] {
  return [
    `host=${quote(host.name)}`,
    renderTable(
      "boot_parameters",
      parameters.map((parameter) => [parameter]),
    ),
    ...parts.map(shellPart),
    shellPart("boot"),
  ];
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
