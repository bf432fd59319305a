/** Hosts that do nothing but answer as ours would; for tests of what drives them. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ProbeRequest, probeRequestSchema } from "../../../contracts/deployment.ts";
import type { Output, RemoteScript, Transport } from "../../../loadgen/ssh.ts";

export type Answer = (host: string, script: RemoteScript) => Output | Promise<Output> | undefined;

const fine = (stdout = ""): Output => ({ code: 0, stdout, stderr: "" });

/** Everything that was asked, as `host: title`, and answers that a test may replace. */
export class FakeHosts implements Transport {
  readonly asked: string[] = [];
  readonly #answer: Answer;

  constructor(answer: Answer = () => undefined) {
    this.#answer = answer;
  }

  async run(host: string, script: RemoteScript, signal: AbortSignal): Promise<Output> {
    signal.throwIfAborted();
    this.asked.push(`${host}: ${script.title}`);
    return (await this.#answer(host, script)) ?? usual(script);
  }

  async fetch(host: string, script: RemoteScript, directory: string): Promise<void> {
    this.asked.push(`${host}: ${script.title}`);
    await mkdir(join(directory, "samples"), { recursive: true });
    await writeFile(join(directory, "samples", `${host}.txt`), `### ${host}\n`);
    if (host !== "client") return;
    await writeFile(join(directory, "requests.csv.gz"), "rows");
    await writeFile(join(directory, "load-plan.json"), JSON.stringify(loadPlan));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const loadPlan = {
  schema: "ztbench/load-plan/1",
  driver: "vegeta-paced",
  arrival: "uniform",
  rateQps: 1000,
  intervalNs: 1_000_000,
  planned: 2000,
  startNs: "1700000000000000000",
};

function usual(script: RemoteScript): Output {
  if (script.title === "probes") return fine(answerProbes(script.text, () => true));
  if (script.title !== "load") return fine();
  const [fromNs, toNs] = ["1700000000000000000", "1700000002000000000"];
  return fine(JSON.stringify({ rows: 2000, warmupRows: 1000, fromNs, toNs }));
}

/** What the prober prints for the requests in a script. */
export function answerProbes(text: string, passes: (id: string) => boolean): string {
  const requests = text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): ProbeRequest => probeRequestSchema.parse(JSON.parse(line)));
  return requests
    .map(({ probes }) => {
      const results = probes.map(({ id }) => ({
        id,
        passed: passes(id),
        observed: { outcome: "status", status: 200 },
        durationNs: 1,
      }));
      return `${JSON.stringify({ schema: "ztbench/probe-results/1", results })}\n--- next ---\n`;
    })
    .join("");
}
