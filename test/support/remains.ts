/** What a lab has left on the machine, told apart from what labs of others do meanwhile. */
import type { LabLayout } from "../../hosts/lab/layout.ts";
import { differences, type Snapshot } from "../../hosts/lab/snapshot.ts";

/**
 * Differences that may be this lab's doing. A lock on the shared base that somebody's lab had left
 * is cleared away, too; and processes name their lab, or an address of its networks.
 */
export function remainsOf(
  before: Snapshot,
  now: Snapshot,
  layout: LabLayout,
  networks: readonly string[],
): string[] {
  const own = [layout.name, ...networks];
  return differences(before, now, layout).filter((line) => {
    if (line.startsWith("- files: /run/systemd/nspawn/locks/")) return false;
    return !/^[+-] processes: /.test(line) || own.some((word) => line.includes(word));
  });
}
