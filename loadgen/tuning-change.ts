/** Names what differs between two readbacks of the tuning; pure. */
import type { RunRecord } from "../contracts/record.ts";

/** `host server: net.core.somaxconn was 4096, is 128`, one for each knob that differs. */
export function tuningChanges(before: RunRecord["tuning"], after: RunRecord["tuning"]): string[] {
  const hosts = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return hosts.flatMap((host) => {
    const [was, is] = [before[host] ?? {}, after[host] ?? {}];
    const knobs = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
    return knobs
      .filter((knob) => was[knob] !== is[knob])
      .map(
        (knob) => `host ${host}: ${knob} was ${was[knob] ?? "absent"}, is ${is[knob] ?? "absent"}`,
      );
  });
}
