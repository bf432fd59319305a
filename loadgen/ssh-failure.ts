/** What OpenSSH prints when it cannot reach a host, as a failure that says what to do. */
import { Failure } from "../contracts/failure.ts";
import type { Host } from "../contracts/testbed.ts";

type Explanation = {
  readonly pattern: RegExp;
  readonly problem: (host: Host) => string;
  readonly hint: string;
};

const explanations: readonly Explanation[] = [
  {
    pattern: /host key verification failed|host identification has changed|no matching host key/i,
    problem: () => "its key is not the pinned one",
    hint: "find out why first; hostKey in the testbed document must be the key of the host itself",
  },
  {
    pattern: /permission denied|too many authentication failures|no such identity/i,
    problem: (host) => `user ${host.user} was refused with identityFile ${host.identityFile}`,
    hint: "check user and identityFile in the testbed document, and authorized_keys on the host",
  },
  {
    pattern:
      /timed out|refused|reset|closed|no route|unreachable|not resolve|not responding|broken pipe/i,
    problem: (host) => `no answer from ${host.managementAddress} port ${host.managementPort}`,
    hint: "check that the host is up (for a lab: ./ztbench lab status)",
  },
];

/** Explains exit code 255 of ssh, which is its own and never the script's. */
export function sshFailure(host: Host, stderr: string): Failure {
  const text = stderr.trim();
  const found = explanations.find(({ pattern }) => pattern.test(text));
  const last = text.split("\n").at(-1)?.trim() ?? "";
  if (found === undefined) {
    return new Failure("testbed", `host ${host.name}: ssh failed, ${last || "without a message"}`, {
      hint: "try the same address, user and key by hand with ssh",
    });
  }
  return new Failure("testbed", `host ${host.name}: ${found.problem(host)}, ssh says: ${last}`, {
    hint: found.hint,
  });
}
