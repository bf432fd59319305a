/** Reads what `systemctl show` printed of units before and after a run; pure. */

export type UnitState = Readonly<Record<string, string>>;

/** Blocks of `Key=value` lines, one a unit, by the unit's id. */
export function parseUnitStates(text: string): Map<string, UnitState> {
  const states = new Map<string, UnitState>();
  for (const block of text.split("\n\n")) {
    const fields = block.split("\n").flatMap((line): [string, string][] => {
      const at = line.indexOf("=");
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
    });
    const state = Object.fromEntries(fields);
    if (state["Id"] !== undefined) states.set(state["Id"], state);
  }
  return states;
}

/** Names of units that are gone, not active, or another process than before. */
export function diedUnits(before: string, after: string): string[] {
  const later = parseUnitStates(after);
  return [...parseUnitStates(before)]
    .filter(([name, state]) => {
      const now = later.get(name);
      return (
        now?.["ActiveState"] !== "active" ||
        now["InvocationID"] !== state["InvocationID"] ||
        now["MainPID"] !== state["MainPID"]
      );
    })
    .map(([name]) => name);
}
