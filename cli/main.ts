/** Entry of `./ztbench`: finds the verb, and is the only place where errors become exit codes. */
import { exitCodes, Failure } from "../contracts/failure.ts";
import { printable } from "./printable.ts";
import type { Io, Verb } from "./verb.ts";

/** Loaded when called for, so that `--help` does not wait for everything else. */
const verbs: Record<string, () => Promise<Verb>> = {
  doctor: async () => (await import("./doctor.ts")).doctor,
  init: async () => (await import("./init.ts")).init,
  env: async () => (await import("./env.ts")).env,
  cpus: async () => (await import("./cpus.ts")).cpus,
  lab: async () => (await import("./lab.ts")).lab,
  campaign: async () => (await import("./campaign.ts")).campaign,
  release: async () => (await import("./release.ts")).release,
  report: async () => (await import("./report.ts")).report,
  read: async () => (await import("./read.ts")).read,
  verify: async () => (await import("./verify.ts")).verify,
  compare: async () => (await import("./compare.ts")).compare,
  budget: async () => (await import("./budget.ts")).budget,
};

const controller = new AbortController();
const io: Io = {
  print: (text) => process.stdout.write(`${printable(text)}\n`),
  say: (line) => process.stderr.write(`${printable(line)}\n`),
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

/** `./ztbench` starts Node.js in the checkout; paths of the user start where the user is. */
function standWhereCalled(): void {
  const caller = process.env["ZTBENCH_CALLER"];
  if (caller === undefined) return;
  try {
    process.chdir(caller);
  } catch (cause) {
    throw new Failure("usage", `working directory: cannot be entered, "${caller}"`, {
      cause,
      hint: "call ztbench from a directory that exists",
    });
  }
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
  standWhereCalled();
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
  const refusal = refusalOf(error);
  if (refusal !== undefined) return explain(refusal);
  io.say("ztbench: this is a bug in ztbench, please report it with the lines below");
  io.say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return exitCodes.bug;
}

/** What the operating system refused, such as a read-only checkout or a full disk, is no bug. */
function refusalOf(error: unknown): Failure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall, path: file } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined || file === undefined) return undefined;
  return new Failure("testbed", `${file}: cannot be used, ${syscall} ended with ${code}`, {
    cause: error,
    hint: "make it usable for the user that runs ztbench, who needs room and the right to write",
  });
}

process.on("SIGINT", onInterrupt);
process.on("SIGTERM", onInterrupt);
process.exitCode = await run(process.argv.slice(2)).catch(explain);
