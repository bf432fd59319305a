/** Entry of `./ztbench`: finds the verb, and is the only place where errors become exit codes. */
import { exitCodes, Failure } from "../contracts/failure.ts";
import type { Io, Verb } from "./verb.ts";

/** Loaded when called for, so that `--help` does not wait for everything else. */
const verbs: Record<string, () => Promise<Verb>> = {
  doctor: async () => (await import("./doctor.ts")).doctor,
  init: async () => (await import("./init.ts")).init,
  env: async () => (await import("./env.ts")).env,
  lab: async () => (await import("./lab.ts")).lab,
  campaign: async () => (await import("./campaign.ts")).campaign,
  report: async () => (await import("./report.ts")).report,
};

const controller = new AbortController();
const io: Io = {
  print: (text) => process.stdout.write(`${text}\n`),
  say: (line) => process.stderr.write(`${line}\n`),
  signal: controller.signal,
};

function onInterrupt(): void {
  if (controller.signal.aborted) {
    io.say("ztbench: left at once; hosts may hold remains: `./ztbench lab status` shows them");
    process.exit(exitCodes.interrupted);
  }
  io.say("ztbench: stopping and cleaning up (press again to leave at once)");
  controller.abort();
}

async function help(): Promise<string> {
  const lines = await Promise.all(
    Object.entries(verbs).map(
      async ([name, load]) => `  ${name.padEnd(9)} ${(await load()).summary}`,
    ),
  );
  return [
    "usage: ./ztbench VERB [ARGUMENT]... [--help] [--json]",
    "",
    ...lines,
    "",
    "exit codes: 0 ok, 1 bug, 2 usage, 3 bad document, 4 testbed not ready, 5 load run failed,",
    "            6 budget exceeded, 7 not comparable, 130 interrupted",
  ].join("\n");
}

async function run(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    io.print(await help());
    return name === undefined ? exitCodes.usage : 0;
  }
  const load = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (load === undefined) {
    throw new Failure(
      "usage",
      `verb: unknown, "${name}", one of ${Object.keys(verbs).join(", ")}`,
      {
        hint: "./ztbench --help",
      },
    );
  }
  const verb = await load();
  if (rest.includes("--help") || rest.includes("-h")) {
    io.print(`usage: ${verb.usage}\n\n${verb.summary}`);
    return 0;
  }
  return verb.run(rest, io);
}

function explain(error: unknown): number {
  if (error instanceof Failure) {
    io.say(`ztbench: ${error.message}`);
    if (error.hint !== undefined) io.say(`  next: ${error.hint}`);
    return exitCodes[error.code];
  }
  io.say("ztbench: this is a bug in ztbench, please report it with the lines below");
  io.say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return exitCodes.bug;
}

process.on("SIGINT", onInterrupt);
process.on("SIGTERM", onInterrupt);
process.exitCode = await run(process.argv.slice(2)).catch(explain);
