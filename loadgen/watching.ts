/** What a campaign does with the judgement of its runs: repeats, and an early end. */
import type { Bundle } from "./bundle.ts";
import { runDirectory } from "./bundle.ts";
import type { Campaign } from "./options.ts";
import type { PlannedRun } from "./order.ts";

/** The planned runs of a bundle, without blocks that its stopping rule made needless. */
export function orderOf({ manifest }: Pick<Bundle, "manifest">): readonly PlannedRun[] {
  const { order, stopped } = manifest;
  return stopped === undefined ? order : order.filter((run) => run.block <= stopped.afterBlock);
}

/** Judges what an earlier process of the campaign measured: later runs are compared with it. */
export async function judgeEarlier({ options, bundle }: Campaign): Promise<void> {
  const { watch } = options;
  if (watch === undefined) return;
  for (const [index, attempt] of bundle.attempts.entries()) {
    const name = runDirectory({ ...attempt, run: index + 1, position: 1 });
    const invalid = await watch.judge(bundle.directory, name);
    if (invalid !== undefined) bundle.rejectAt(index);
  }
}

/** Judges a run that was just finished; an invalid one is measured once more, and both are kept. */
export async function judgeLast({ options, bundle }: Campaign, run: PlannedRun): Promise<void> {
  const invalid = await options.watch?.judge(bundle.directory, runDirectory(run));
  if (invalid === undefined) return;
  bundle.rejectAt(bundle.attempts.length - 1);
  options.progress({ kind: "notice", text: `run ${run.run} is invalid: ${invalid}` });
}

/** Ends the campaign after a block if the plan's rule is met by then. */
export async function stopIfEnough(campaign: Campaign, block: number): Promise<void> {
  const { options, bundle } = campaign;
  const { stopping } = options.plan;
  if (stopping === undefined || options.watch === undefined) return;
  if (block < stopping.minBlocks || block >= stopping.maxBlocks) return;
  const because = await options.watch.enough(bundle.directory, block);
  if (because === undefined) return;
  await bundle.stopAfter(block, because);
  options.progress({ kind: "notice", text: `stopped after block ${block}: ${because}` });
}
