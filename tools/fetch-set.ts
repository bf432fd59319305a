/** Chooses a set of releases for k3s: `node --import tsx tools/fetch-set.ts current DIRECTORY`. */
import path from "node:path";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { artifactsDocument, fetchSet, releaseSets } from "./artifact-set.ts";
import { progressTo } from "./progress.ts";

const usage = `usage: node --import tsx tools/fetch-set.ts era|current DIRECTORY

Fetches k3s, the manifests of Calico's operator and the charts of Istio in the versions of a set,
and writes ${artifactsDocument} with their digests, for cluster.artifacts of a testbed document.
The files are for the processor of this machine.
`;

/** The largest file has some 80 MB. */
const fetchMs = 600_000;

const say = progressTo(
  (line) => process.stderr.write(line),
  () => performance.now(),
);

async function fetchOne(url: string): Promise<Uint8Array> {
  say(`fetching ${url}`);
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(fetchMs) });
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
    throw new Error(`answered ${answer.status}`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Failure("testbed", `${url}: cannot be fetched, ${reason}`, {
      hint: "run it where the network is, and copy the directory",
      cause,
    });
  }
}

async function main([name, directory, ...rest]: readonly string[]): Promise<void> {
  const set = releaseSets.find((known) => known === name);
  if (set === undefined || directory === undefined || rest.length > 0) {
    const found = [name, directory, ...rest].filter((word) => word !== undefined).join(" ");
    const wanted = `${releaseSets.join(" or ")} and one directory`;
    throw new Failure("usage", `words "${found}", wanted are ${wanted}`, { hint: usage });
  }
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  await fetchSet(set, architecture, path.resolve(directory), fetchOne);
  say(`ready: ${path.join(directory, artifactsDocument)}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  if (error.hint !== undefined) process.stderr.write(`hint: ${error.hint}\n`);
  process.exitCode = exitCodes[error.code];
}
