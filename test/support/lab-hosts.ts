/** A lab of a test's own whose hosts have our programs, and a door to them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { $ } from "zx";
import type { Testbed } from "../../contracts/testbed.ts";
import { labDown, labUp } from "../../hosts/lab/lab.ts";
import type { Lab } from "../../hosts/lab/options.ts";
import { programDirectory } from "../../hosts/programs.ts";
import { openTransport, type Transport } from "../../loadgen/ssh.ts";
import { toolPaths } from "../../tools/paths.ts";

export type LabHosts = {
  readonly testbed: Testbed;
  readonly transport: Transport;
  /** Directory for what the test writes; gone with the lab. */
  readonly scratch: string;
  lower(): Promise<void>;
};

const { hostBin } = toolPaths(path.resolve(import.meta.dirname, "../.."));

/**
 * Raises a lab from nothing, whatever an earlier test left of it.
 *
 * @param programs that hosts get, by name; all of them if not given
 */
export async function raiseLab(lab: Lab, programs: readonly string[] = ["."]): Promise<LabHosts> {
  await labDown(lab);
  const { testbed } = await labUp(lab);
  const transport = await openTransport(testbed);
  const scratch = await mkdtemp(path.join(tmpdir(), "ztbench-test-"));
  const lower = async () => {
    await transport.close();
    await labDown(lab);
    await rm(scratch, { recursive: true, force: true });
  };
  const unpack = `install -d ${programDirectory} && tar -x -C ${programDirectory}`;
  const shell = $({ quiet: true, timeout: "60s" });
  const copies = testbed.hosts.map(
    ({ name }) =>
      shell`tar -C ${hostBin} -c ${programs} | ssh -F ${lab.paths.sshConfig} ${name} ${unpack}`,
  );
  const failed = (await Promise.allSettled(copies)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") {
    await lower();
    throw failed.reason;
  }
  return { testbed, transport, scratch, lower };
}
