/** Asks a deployment's probes on the hosts that they name. */
import {
  type Deployment,
  type Probe,
  type ProbeRequest,
  type ProbeResults,
  probeResultsSchema,
} from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import { parseDocument } from "../contracts/document.ts";
import { inNamespace } from "./namespace.ts";
import { type Output, type RemoteScript, scriptFailure, type Transport } from "./ssh.ts";
import { binaryDirectory } from "./vegeta.ts";

/** How long the path may take to answer: it was reported ready, and it carried load. */
const positiveSeconds = { before: 15, after: 3 } as const;
export type ProbeTime = keyof typeof positiveSeconds;

const separator = "--- next ---";

/**
 * Asks all positive probes until they hold, then all negative ones once; hosts side by side.
 *
 * @returns results in the order of the deployment's probes, whether they passed or not
 * @throws Failure `testbed` if a host is not reached or its prober does not answer
 */
export async function askProbes(
  transport: Transport,
  deployment: Deployment,
  when: ProbeTime,
  signal: AbortSignal,
): Promise<ProbeResults> {
  const hosts = [...new Set(deployment.probes.map((probe) => probe.host))];
  const found = await Promise.all(
    hosts.map(async (host) => {
      const probes = deployment.probes.filter((probe) => probe.host === host);
      const script = probeScript(probes, when);
      const output = await transport.run(host, script, signal);
      return readResults(host, script, output);
    }),
  );
  const byId = new Map(found.flat().map((result) => [result.id, result]));
  const results = deployment.probes.flatMap(({ id }) => byId.get(id) ?? []);
  return { schema: "ztbench/probe-results/1", results };
}

/** The script that asks the probes of one host; its output is read by `readResults`. */
export function probeScript(probes: readonly Probe[], when: ProbeTime): RemoteScript {
  const namespaces = [...new Set(probes.map(({ networkNamespace }) => networkNamespace))];
  const groups = namespaces.flatMap((namespace) => {
    const inside = probes.filter((probe) => probe.networkNamespace === namespace);
    return probeRequests(inside, when).map((request) => ({ namespace, request }));
  });
  const requests = groups.map(({ request }) => request);
  const text = groups.map(({ namespace, request }) =>
    [
      // Exit code 1 means that a probe did not pass: a result, not an error.
      `${inNamespace(namespace, [`${binaryDirectory}/ztprobe`]).join(" ")} ` +
        `<<'ZTBENCH_REQUEST' || [ $? -eq 1 ]`,
      JSON.stringify(request),
      "ZTBENCH_REQUEST",
      `echo '${separator}'`,
    ].join("\n"),
  );
  const seconds = requests.reduce((sum, request) => sum + request.deadlineSeconds, 0);
  return { title: "probes", text: text.join("\n"), timeoutSeconds: Math.ceil(seconds) + 5 };
}

function probeRequests(probes: readonly Probe[], when: ProbeTime): ProbeRequest[] {
  const positive = probes.filter((probe) => probe.kind === "positive");
  const negative = probes.filter((probe) => probe.kind === "negative");
  // The prober asks a few at a time, so the sum is the bound.
  const once = negative.reduce((sum, probe) => sum + probe.timeoutSeconds, 1);
  const requests: ProbeRequest[] = [
    {
      schema: "ztbench/probe-request/1",
      deadlineSeconds: positiveSeconds[when],
      until: "positive",
      probes: positive,
    },
    { schema: "ztbench/probe-request/1", deadlineSeconds: once, until: "once", probes: negative },
  ];
  return requests.filter((request) => request.probes.length > 0);
}

function readResults(host: string, script: RemoteScript, output: Output): ProbeResults["results"] {
  const documents = output.stdout.split(`${separator}\n`).filter((text) => text.trim() !== "");
  if (output.code !== 0 || documents.length === 0) throw scriptFailure(host, script, output);
  return documents.flatMap(
    (text) => parseDocument(probeResultsSchema, text, `probes of host ${host}`).results,
  );
}

/**
 * Names what did not come out as expected.
 *
 * @throws Failure `load` if any probe did not pass or is without a result
 */
export function requirePassed(deployment: Deployment, found: ProbeResults, when: ProbeTime): void {
  const problems = deployment.probes.flatMap((probe) => {
    const result = found.results.find(({ id }) => id === probe.id);
    if (result?.passed === true) return [];
    const seen = result === undefined ? "no result" : describe(result.observed);
    return [
      `probe ${probe.id} ${when} the load: expected ${describe(probe.expect)}, found ${seen}`,
    ];
  });
  if (problems.length > 0) throw new Failure("load", problems.join("; "));
}

function describe(seen: {
  readonly outcome: string;
  readonly status?: number | undefined;
  readonly header?: unknown;
  readonly error?: string | undefined;
}): string {
  const header = seen.header === undefined ? "" : ` with header ${JSON.stringify(seen.header)}`;
  const error = seen.error === undefined ? "" : ` (${seen.error})`;
  return `${seen.outcome}${seen.status === undefined ? "" : ` ${seen.status}`}${header}${error}`;
}
