/** Asks every host for its SSH port before anything is planned, so that an absent one is named. */
import { connect } from "node:net";
import { Failure } from "../contracts/failure.ts";
import type { Host } from "../contracts/testbed.ts";

/** A host in the same rack answers within milliseconds. */
const answerMs = 3000;

/**
 * Waits until all hosts have accepted a connection, at most 3 s.
 *
 * @throws Failure `testbed`, one line for each host that has not
 */
export async function requireReachable(hosts: readonly Host[]): Promise<void> {
  const problems = await Promise.all(hosts.map(problemOf));
  const found = problems.filter((problem) => problem !== undefined);
  if (found.length === 0) return;
  throw new Failure("testbed", found.join("\n"), {
    hint: "start the host, or correct managementAddress and managementPort in the testbed document",
  });
}

async function problemOf(host: Host): Promise<string | undefined> {
  const { managementAddress: address, managementPort: port } = host;
  const problem = await new Promise<string | undefined>((resolve) => {
    const socket = connect({ host: address, port });
    const finish = (result?: string) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(answerMs, () => {
      finish(`no answer within ${answerMs / 1000} s`);
    });
    // A connection says little, since a gateway may accept it; an SSH server speaks first.
    socket.once("data", (greeting) => {
      finish(greeting.toString("latin1").startsWith("SSH-") ? undefined : "something else answers");
    });
    socket.once("end", () => {
      finish("closed without a greeting");
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      finish(error.code ?? error.message);
    });
  });
  if (problem === undefined) return undefined;
  return `host ${host.name}: unreachable at ${address}:${port}, ${problem}, an SSH server expected`;
}
