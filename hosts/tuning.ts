/**
 * Renders the tuning of a host: turn the knobs of the profile with a journal, restore them, read
 * them back. Pure; the bash that does it stands in `shell/tuning.sh`.
 */
import { Failure } from "../contracts/failure.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import type { Knob } from "./knobs.ts";
import { knobsOf } from "./profiles.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderProgram, renderTable, shellPart } from "./shell.ts";

/** Functions that turn, restore and read knobs. */
export const tuningParts = ["knobs", "knobs-nic", "knobs-machine", "lease", "tuning"] as const;

/** Where the values before the first change lie on a host, as long as it is tuned. */
export const tuningJournal = "/var/lib/ztbench/journal/tuning.tsv";

export const knobStatuses = ["applied", "already", "unsupported", "refused"] as const;
export type KnobStatus = (typeof knobStatuses)[number];

/** How a knob ended when the host was tuned. */
export type KnobResult = {
  readonly id: string;
  readonly status: KnobStatus;
  /** The value afterwards; `-` if it cannot be read. */
  readonly value: string;
  /** Why it is unsupported or refused; `-` otherwise. */
  readonly reason: string;
};

/**
 * `drifted`: it is not as it was set; `untuned`: the journal does not know it; `leftover`: it was
 * turned for another profile, NIC or CPU layout than the testbed names, and still is.
 */
export const readbackStatuses = [...knobStatuses, "drifted", "untuned", "leftover"] as const;
export type ReadbackStatus = (typeof readbackStatuses)[number];

export type Readback = {
  readonly id: string;
  readonly status: ReadbackStatus;
  readonly value: string;
};

/**
 * Turns the knobs, and restores them. `create` prints what `parseTuning` reads; `remove` names on
 * standard error what somebody else has changed since and is therefore left.
 */
export function renderTuning(testbed: Testbed, host: Host): HostScript {
  return {
    prelude: prelude(host, knobsOf(testbed, host)).join("\n"),
    create: "tuning_create",
    remove: "tuning_remove",
  };
}

/**
 * A program for `bash -s` on the host that reads all knobs back and changes nothing. It prints a
 * line for each knob, `id TAB status TAB value`, for `parseReadback`.
 */
export function renderVerify(testbed: Testbed, host: Host): string {
  return renderProgram(prelude(host, knobsOf(testbed, host)), "tuning_verify");
}

function prelude(host: Host, knobs: readonly Knob[]): string[] {
  const rows = knobs.map(({ id, scope, kind, target, want }) => [id, scope, kind, target, want]);
  return [`host=${quote(host.name)}`, renderTable("knobs", rows), ...tuningParts.map(shellPart)];
}

/**
 * Reads what a tuned host printed.
 *
 * @throws Failure `testbed` at the first line that is not four fields with a known status
 */
export function parseTuning(text: string): KnobResult[] {
  return fieldsOf(text, "tuning", 4).map(([id = "", status = "", value = "", reason = ""]) => ({
    id,
    status: statusIn(knobStatuses, status, id),
    value,
    reason,
  }));
}

/** How each knob ended, one line each: `applied 32768`, `refused 60, REASON`. */
export function summariseTuning(results: readonly KnobResult[]): Record<string, string> {
  return Object.fromEntries(
    results.map(({ id, status, value, reason }) => {
      const words = [status, ...(value === "-" ? [] : [value])].join(" ");
      return [id, reason === "-" ? words : `${words}, ${reason}`];
    }),
  );
}

/**
 * Reads what the program of `renderVerify` printed.
 *
 * @throws Failure `testbed` at the first line that is not three fields with a known status
 */
export function parseReadback(text: string): Readback[] {
  return fieldsOf(text, "readback", 3).map(([id = "", status = "", value = ""]) => ({
    id,
    status: statusIn(readbackStatuses, status, id),
    value,
  }));
}

function fieldsOf(text: string, subject: string, count: number): string[][] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const fields = line.split("\t");
      if (fields.length === count && fields.every((field) => field !== "")) return fields;
      throw new Failure(
        "testbed",
        `${subject}: line is not understood, found ${JSON.stringify(line)}, ` +
          `${count} fields separated by tabs expected`,
      );
    });
}

function statusIn<S extends string>(allowed: readonly S[], found: string, id: string): S {
  const status = allowed.find((candidate) => candidate === found);
  if (status !== undefined) return status;
  throw new Failure(
    "testbed",
    `knob ${id}: unknown status, found ${found}, allowed are ${allowed.join(", ")}`,
  );
}
