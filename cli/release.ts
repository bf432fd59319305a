/** The verb `release`: gives back the hosts that a campaign held when its process was killed. */
import { hostname } from "node:os";
import path from "node:path";
import { sweepScript } from "../loadgen/host-scripts.ts";
import { openTransport, runChecked } from "../loadgen/ssh.ts";
import { hooksFor } from "./campaign-hosts.ts";
import { readArguments, type Verb } from "./verb.ts";
import { currentWorkspace, readTestbed, testbedFileOf } from "./workspace.ts";

const usage = `./ztbench release BUNDLE

For a campaign that was killed and is not to be resumed: ends its load and samplers on the hosts of
the current testbed, and gives back its lease. Topologies stay; pulumi destroys them. Hosts that
another campaign holds are refused. Be sure that the campaign does not run any more.`;

export const release: Verb = {
  summary: "give back the hosts that a killed campaign held",
  usage,
  async run(argv, io) {
    const { positionals } = readArguments(argv, {}, { least: 1, most: 1 }, usage);
    const testbed = readTestbed(testbedFileOf(currentWorkspace()));
    const transport = await openTransport(testbed);
    try {
      const { lease } = hooksFor(transport, testbed, campaignToken(positionals[0] ?? ""));
      // Whoever can take it is the campaign that holds it, or meets hosts that nobody holds.
      await lease.take(io.signal);
      for (const { name } of testbed.hosts) {
        const printed = await runChecked(transport, name, sweepScript(), io.signal);
        const units = printed.split("\n").filter((line) => line !== "");
        if (units.length > 0) io.say(`host ${name}: cleared ${units.join(", ")}`);
      }
      await lease.release(io.signal);
    } finally {
      await transport.close();
    }
    io.print(`released: no campaign holds the hosts of testbed ${testbed.name}`);
    return 0;
  },
};

/** Of the campaign that writes this bundle; a resumption has the same, and takes its hosts back. */
export function campaignToken(bundleDir: string): string {
  return `${hostname()}:${path.basename(path.resolve(bundleDir))}`;
}
