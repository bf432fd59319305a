/** What one probe of a capacity search shows, computed from its raw files. */
import { join } from "node:path";
import type { CapacityProbe } from "../contracts/capacity-search.ts";
import type { Cell } from "./cell.ts";
import { measureLatency } from "./latency.ts";
import { readOffsets } from "./offsets.ts";
import {
  judgeProbe,
  type Objective,
  type ProbeCounts,
  type ProbeVerdict,
  windowCount,
} from "./slo.ts";

export type ProbeResult = ProbeVerdict & {
  readonly counts: ProbeCounts;
  /** Answered with 2xx over planned. */
  readonly goodShare: number;
  readonly responseP99: Cell;
};

type MeasuredProbe = { readonly measured: NonNullable<CapacityProbe["measured"]> };

/**
 * Judges a probe by its requests; what was planned but never sent counts as late.
 *
 * @param directory of the probe's files, and `name` of it for messages
 * @throws Failure `document` for bad rows
 */
export async function measureProbe(
  directory: string,
  name: string,
  { measured }: MeasuredProbe,
  objective: Objective,
): Promise<ProbeResult> {
  const { loadPlan, measuredFromNs } = measured;
  const { offsetsFile, planned } = loadPlan;
  const lateNs = objective.sloMilliseconds * 1e6;
  const windowNs = (planned * loadPlan.intervalNs) / windowCount;
  const inTime = new Array<number>(windowCount).fill(0);
  const offsetsNs =
    offsetsFile === undefined
      ? undefined
      : await readOffsets(join(directory, offsetsFile), `${name}/${offsetsFile}`, planned);
  const dueOf = (seq: number) => offsetsNs?.[seq] ?? seq * loadPlan.intervalNs;
  const windowOf = (dueNs: number) => Math.min(windowCount - 1, Math.floor(dueNs / windowNs));
  const latency = await measureLatency({
    path: join(directory, "requests.csv.gz"),
    name: `${name}/requests.csv.gz`,
    loadPlan,
    measuredFromNs,
    ...(offsetsNs !== undefined && { offsetsNs }),
    takeRequest: (dueNs, responseNs) => {
      if (responseNs === undefined || responseNs > lateNs) return;
      const window = windowOf(dueNs);
      inTime[window] = (inTime[window] ?? 0) + 1;
    },
  });
  const plannedIn = new Array<number>(windowCount).fill(0);
  for (let seq = 0; seq < planned; seq++) {
    const window = windowOf(dueOf(seq));
    plannedIn[window] = (plannedIn[window] ?? 0) + 1;
  }
  const windows = plannedIn.map((count, index) => ({
    planned: count,
    over: count - (inTime[index] ?? 0),
  }));
  const over = windows.reduce((sum, window) => sum + window.over, 0);
  const counts = { planned, sent: latency.sent, failed: latency.failed, over, windows };
  return {
    ...judgeProbe(objective, counts),
    counts,
    goodShare: latency.ok / planned,
    responseP99: latency.response.quantiles.p99,
  };
}
