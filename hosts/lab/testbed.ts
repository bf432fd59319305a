/** Describes a running lab as a testbed document, so that nothing else needs to know it is one. */
import { readFile } from "node:fs/promises";
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { testbedSchema, type CpuLayout, type Testbed } from "../../contracts/testbed.ts";
import type { LabKeys } from "./keys.ts";
import type { LabLayout } from "./layout.ts";
import { dataInterface } from "./network.ts";
import { clusterKindOf } from "./profile.ts";

export type TestbedInput = {
  readonly layout: LabLayout;
  readonly keys: LabKeys;
  readonly instance: string;
  readonly cpus: CpuLayout;
  readonly scheduling: Testbed["scheduling"];
};

/** Renders the document of a lab. */
export function labTestbed(input: TestbedInput): Testbed {
  const { layout, keys } = input;
  return testbedSchema.parse({
    schema: "ztbench/testbed/1",
    name: layout.name,
    class: "lab",
    instance: input.instance,
    hosts: layout.hosts.map((host) => ({
      name: host.role,
      role: host.role,
      managementAddress: host.managementAddress,
      identityFile: keys.identityFile,
      hostKey: keys.hostKeys[host.role],
      dataAddress: host.dataAddress,
      nic: dataInterface,
      cpus: input.cpus,
    })),
    dataNetwork: layout.dataNetwork,
    scheduling: input.scheduling,
    clusterKind: clusterKindOf[layout.profile],
    ...(layout.cluster === undefined ? {} : { cluster: layout.cluster }),
  });
}

/**
 * Shares out the CPUs the lab may use. All three hosts run on the same ones, so load keeps the
 * first for itself; proxies and services share the second unless there are four.
 */
export function labCpus(allowed: readonly number[]): CpuLayout {
  const [first = 0, second = first, third = second] = allowed;
  const service = allowed.length >= 4 ? third : second;
  return { system: "", irq: "", load: `${first}`, proxy: `${second}`, service: `${service}` };
}

/** The CPUs this process may run on. */
export async function allowedCpus(): Promise<number[]> {
  const status = await readFile("/proc/self/status", "utf8");
  return parseCpuList(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "0");
}
