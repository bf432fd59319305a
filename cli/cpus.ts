/** Proposes the CPU sets of a host for its testbed document, from what lscpu prints there. */
import { readFileSync } from "node:fs";
import { Failure } from "../contracts/failure.ts";
import { articleCounts, planCpus } from "../hosts/cpu-plan.ts";
import { layoutWarnings } from "../hosts/cpus.ts";
import { parseLscpu } from "../hosts/lscpu.ts";
import { readArguments, type Verb } from "./verb.ts";

const usage = `./ztbench cpus FILE [--nic-node N] [--service N] [--json]

FILE is what the host prints for
  lscpu --json --extended=CPU,NODE,SOCKET,CORE
or - for standard input. --nic-node is what the host prints for
  cat /sys/class/net/NIC/device/numa_node
and -1, the default, stands for a host with one node. --service is how many CPUs the service gets
(GOMAXPROCS), ${articleCounts.service} unless there are too few.`;

export const cpus: Verb = {
  summary: "propose the CPU sets of a host for its testbed document",
  usage,
  run(argv, io) {
    const options = {
      json: { type: "boolean" },
      "nic-node": { type: "string" },
      service: { type: "string" },
    } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const places = parseLscpu(read(positionals[0] ?? "-"));
    const service = integer("--service", values.service ?? String(articleCounts.service), 1);
    const node = integer("--nic-node", values["nic-node"] ?? "-1", -1);
    const plan = planCpus(places, node, { ...articleCounts, service });
    if (values.json === true) {
      io.print(JSON.stringify(plan));
    } else {
      const lines = Object.entries(plan.layout).map(([name, list]) => `  ${name}: "${list}"`);
      io.print(["cpus:", ...lines].join("\n"));
      io.say(`idle: ${plan.idle === "" ? "none" : plan.idle}`);
    }
    const warnings = layoutWarnings({ name: "as proposed", cpus: plan.layout });
    for (const { message } of warnings) io.say(message);
    return Promise.resolve(0);
  },
};

function read(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (cause) {
    throw new Failure("usage", `file: cannot be read, found ${file}`, { cause, hint: usage });
  }
}

function integer(option: string, text: string, least: number): number {
  const value = Number(text);
  if (/^-?\d{1,4}$/.test(text) && value >= least) return value;
  throw new Failure(
    "usage",
    `${option}: not usable, found "${text}", from ${least} to 9999 allowed`,
  );
}
