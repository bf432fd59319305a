/** Puts renderings on hosts over SSH without the engine, so that tests can spoil them first. */
import type { Deployment } from "../../contracts/deployment.ts";
import { type HostPayload, payloadIdOf, renderPayload } from "../../hosts/payload.ts";
import { programDirectory } from "../../hosts/programs.ts";
import { type HostScript, renderHostScript } from "../../hosts/runner.ts";
import type { Transport } from "../../loadgen/ssh.ts";
import type { Rendering } from "../../topologies/native.ts";
import { probingHosts, renderReady } from "../../topologies/ready.ts";

type Verb = "create" | "remove";

export type Direct = {
  /** Puts payloads on in their order, and waits until the path answers; throws what a host says. */
  put(rendering: Rendering): Promise<Deployment>;
  /** Takes everything off again, in reverse; throws if anything is left. */
  remove(): Promise<void>;
};

type Put = { readonly host: string; readonly script: string };

export function openDirect(transport: Transport, signal: AbortSignal): Direct {
  const placed: Put[] = [];
  const run = async (host: string, text: string, verb: Verb): Promise<string> => {
    const script = { title: verb, text, arguments: [verb], timeoutSeconds: 60 };
    const { code, stdout, stderr } = await transport.run(host, script, signal);
    // Whole, since what is in it is what tests look at.
    if (code !== 0) throw new Error(`${verb} on ${host}: ${stderr}`);
    return stdout;
  };
  const put = async (payload: HostPayload, printed: ReadonlyMap<string, string>) => {
    const values = Object.entries(payload.receives ?? {}).map(([variable, from]) => [
      variable,
      printed.get(from) ?? "",
    ]);
    const script = renderHostScript(
      renderPayload(payload),
      Object.fromEntries(values) as Record<string, string>,
    );
    placed.push({ host: payload.host, script });
    return run(payload.host, script, "create");
  };
  return {
    async put({ hosts, deployment }) {
      const printed = new Map<string, string>();
      for (const wave of wavesOf(hosts)) {
        await Promise.all(
          wave.map(async (payload) => {
            printed.set(payloadIdOf(payload), await put(payload, printed));
          }),
        );
      }
      const ask = (host: string): HostScript => renderReady(deployment, host, programDirectory);
      await Promise.all(
        probingHosts(deployment).map((host) => run(host, renderHostScript(ask(host)), "create")),
      );
      return deployment;
    },
    async remove() {
      for (const { host, script } of placed.splice(0).reverse()) await run(host, script, "remove");
    },
  };
}

/** Payloads that may be put on side by side, each wave after the one before. */
function wavesOf(payloads: readonly HostPayload[]): HostPayload[][] {
  const waves: HostPayload[][] = [];
  const done = new Set<string>();
  while (done.size < payloads.length) {
    const wave = payloads.filter((payload) => {
      const needed = [...payload.after, ...Object.values(payload.receives ?? {})];
      return !done.has(payloadIdOf(payload)) && needed.every((id) => done.has(id));
    });
    if (wave.length === 0) throw new Error("payloads wait for each other");
    waves.push(wave);
    for (const payload of wave) done.add(payloadIdOf(payload));
  }
  return waves;
}
