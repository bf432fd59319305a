/** Reads what ethtool prints of a NIC, as facts and records hold it. Pure. */

export type NicSettings = {
  /** By name, as printed: `RX`, `rx-usecs`, `rx_cqe_compress`. */
  readonly current: Readonly<Record<string, string>>;
  /** What can be set at most, where that is printed, too. */
  readonly maximum: Readonly<Record<string, string>>;
};

/**
 * Reads the output of ethtool with -a, -c, -g, -i, -k, -l or --show-priv-flags. What the driver
 * does not have (`n/a`) is left out; of a feature that cannot be changed (`off [fixed]`) the value
 * stays.
 */
export function parseEthtool(text: string): NicSettings {
  const current: Record<string, string> = {};
  const maximum: Record<string, string> = {};
  let into = current;
  for (const line of text.split("\n")) {
    if (/^Pre-set maximums:\s*$/.test(line)) into = maximum;
    else if (/^Current hardware settings:\s*$/.test(line)) into = current;
    else for (const [name, value] of fieldsOf(line)) into[name] = value;
  }
  return { current, maximum };
}

function fieldsOf(line: string): [string, string][] {
  // Two settings share a line: `Adaptive RX: on  TX: off`.
  const pair = /^(.+ )RX: (\S+) +TX: (\S+)$/.exec(line.trimEnd());
  const fields: readonly (readonly [string, string])[] =
    pair === null
      ? [single(line)]
      : [
          [`${pair[1] ?? ""}RX`, pair[2] ?? ""],
          [`${pair[1] ?? ""}TX`, pair[3] ?? ""],
        ];
  return fields
    .filter(([name, value]) => name !== "" && value !== "" && value !== "n/a")
    .map(([name, value]) => [name, value]);
}

function single(line: string): [string, string] {
  const match = /^\s*([^:]+?)\s*:\s*(.*?)(?: \[[^\]]*\])?\s*$/.exec(line);
  return [match?.[1] ?? "", match?.[2] ?? ""];
}
