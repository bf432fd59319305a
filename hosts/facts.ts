/** What a host says of itself, as raw text, gathered by a program that only reads. Pure. */
import { Failure } from "../contracts/failure.ts";
import type { Host } from "../contracts/testbed.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderProgram, shellPart } from "./shell.ts";

/** Raw text by name; an absent fact is `not available: REASON`. */
export type Facts = Readonly<Record<string, string>>;

/** A program for `bash -s` on the host that prints what `parseFacts` reads. */
export function renderFacts(host: Host): string {
  return renderProgram(prelude(host), "facts\nfacts_programs");
}

/** As a resource of the hosts stack; without the programs, which have one of their own. */
export function renderFactsScript(host: Host): HostScript {
  return { prelude: prelude(host).join("\n"), create: "facts" };
}

function prelude(host: Host): string[] {
  return [`nic=${quote(host.nic)}`, shellPart("facts")];
}

/** The facts that fit on a line: what is worth reading among the outputs of a stack. */
export function shortFacts(facts: Facts): Facts {
  return Object.fromEntries(
    Object.entries(facts).filter(([, text]) => !text.includes("\n") && text.length <= 80),
  );
}

/**
 * Reads blocks of a line `name:` and lines that begin with a tab.
 *
 * @throws Failure `testbed` at the first line that is neither, or for a name that comes twice
 */
export function parseFacts(text: string): Facts {
  const facts = new Map<string, string[]>();
  let current: string[] | undefined;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const name = /^([a-z][a-z0-9-]*):$/.exec(line)?.[1];
    if (name !== undefined && !facts.has(name)) {
      current = [];
      facts.set(name, current);
    } else if (line.startsWith("\t") && current !== undefined) {
      current.push(line.slice(1));
    } else {
      throw new Failure(
        "testbed",
        `facts: line is not understood, found ${JSON.stringify(line)}, ` +
          `"name:" once, or text behind a tab expected`,
      );
    }
  }
  return Object.fromEntries([...facts].map(([name, lines]) => [name, lines.join("\n")]));
}
