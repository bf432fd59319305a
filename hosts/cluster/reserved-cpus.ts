/** Which CPUs of a node no pod may have for itself: the same for every kind of cluster. Pure. */
import { formatCpuList, parseCpuList } from "../../contracts/cpu-list.ts";
import { Failure } from "../../contracts/failure.ts";
import type { Host } from "../../contracts/testbed.ts";

/**
 * The CPUs that no pod gets for itself: all that are online, but those of proxies and services.
 *
 * @param online what the kernel says, as a CPU list
 * @throws Failure `document` if proxies and services have none or all, `testbed` if the host does
 *   not say which ones are online
 */
export function reservedCpus({ name, cpus }: Host, online: string | undefined): string {
  if (online === undefined || !/^[\d,-]+$/.test(online)) {
    throw new Failure("testbed", `host ${name}: CPUs online not known, ${online ?? "no fact"}`, {
      hint: "pulumi up -s hosts",
    });
  }
  const forPods = new Set([...parseCpuList(cpus.proxy), ...parseCpuList(cpus.service)]);
  const reserved = parseCpuList(online).filter((cpu) => !forPods.has(cpu));
  if (forPods.size === 0 || reserved.length === 0) {
    throw new Failure(
      "document",
      `host ${name}: no CPUs for ${forPods.size === 0 ? "pods" : "the system"}, ` +
        `proxy "${cpus.proxy}" and service "${cpus.service}" of "${online}", ` +
        "at least one on either side allowed",
      { hint: `correct cpus of ${name} in the testbed document` },
    );
  }
  return formatCpuList(reserved);
}
