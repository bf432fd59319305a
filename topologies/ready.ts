/** The last step of a deployment: the hosts that send probes ask them until they hold. Pure. */
import type { Deployment, Probe, ProbeRequest } from "../contracts/deployment.ts";
import type { HostScript } from "../hosts/runner.ts";
import { quote } from "../hosts/shell.ts";

/** How long a path may take until it answers correctly, seconds. */
export const readySeconds = 15;

/** Names of the hosts that send probes. */
export function probingHosts({ probes }: Deployment): string[] {
  return [...new Set(probes.map(({ host }) => host))];
}

/**
 * A script that succeeds once every probe of a host sees what it expects, and otherwise says what
 * those saw that do not.
 *
 * @param host its name
 * @param programs directory of the programs on the host
 */
export function renderReady(deployment: Deployment, host: string, programs: string): HostScript {
  const requests = requestsOf(deployment.probes.filter((probe) => probe.host === host));
  const { topology, entry } = deployment;
  const create = `
problem=$(mktemp)
trap 'rm -f "$problem"' EXIT
for index in "\${!requests[@]}"; do
  into=()
  [ -z "\${namespaces[index]}" ] || into=(nsenter "--net=\${namespaces[index]}")
  request=\${requests[index]}
  if ! seen=$("\${into[@]}" "$programs/ztprobe" <<<"$request" 2>"$problem"); then
    printf '%s: not ready after %s s, probes that do not hold, as last seen: [testbed]\\n' \\
      "$subject" ${readySeconds} >&2
    # Results are printed one to a block; without any, the prober itself has failed.
    failed=$(awk -v RS='\\n    }' '/"passed": false/' <<<"$seen")
    if [ -n "$failed" ]; then echo "$failed" >&2; else cat "$problem" >&2; fi
    printf '  next: look at the journals of its units on the hosts\\n' >&2
    exit 1
  fi
done`;
  const words = (list: readonly string[]) => `(${list.map(quote).join(" ")})`;
  return {
    prelude: [
      `subject=${quote(`topology ${topology} at ${entry.url}`)}`,
      `programs=${quote(programs)}`,
      `requests=${words(requests.map(({ request }) => JSON.stringify(request)))}`,
      `namespaces=${words(requests.map(({ namespace }) => namespace))}`,
    ].join("\n"),
    create: create.trim(),
  };
}

/** One for each network namespace that probes are sent from, the host's own first. */
function requestsOf(
  probes: readonly Probe[],
): { readonly namespace: string; readonly request: ProbeRequest }[] {
  const namespaces = [...new Set(probes.map(({ networkNamespace = "" }) => networkNamespace))];
  return namespaces.sort().map((namespace) => ({
    namespace,
    request: {
      schema: "ztbench/probe-request/1",
      deadlineSeconds: readySeconds,
      until: "positive",
      probes: probes.filter(({ networkNamespace = "" }) => networkNamespace === namespace),
    },
  }));
}
