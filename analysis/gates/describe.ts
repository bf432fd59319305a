/** The table of all gates as Markdown, for people; a test keeps the page equal to it. */
import { campaignGates } from "./campaign-gates.ts";
import { type Gate, gateNumbers, type Limit, type Absent, settings } from "./gate.ts";
import { gates } from "./table.ts";

/** Rows of every gate with its limit in every setting, then those of a campaign. */
export function renderGateTable(): string {
  const rows = gates.map((gate) => {
    const limits = settings.map((setting) => describe(gate, gate.limits[setting]));
    return row([gateNumbers[gate.id], `\`${gate.id}\``, gate.shows, ...limits]);
  });
  const campaign = Object.entries(campaignGates).map(([id, { number, shows, wanted }]) =>
    row([number, `\`${id}\``, shows, wanted]),
  );
  return [
    row(["no.", "gate", "what it looks at", ...settings]),
    row(["---", "---", "---", ...settings.map(() => "---")]),
    ...rows,
    "",
    row(["no.", "gate of a campaign", "what it looks at", "wanted"]),
    row(["---", "---", "---", "---"]),
    ...campaign,
  ].join("\n");
}

function describe(gate: Gate, limit: Limit | Absent): string {
  if ("absent" in limit) return `not available: ${limit.absent}`;
  const { severity, value, worse } = limit;
  const harder = worse === undefined ? "" : `, invalid unless ${gate.wanted(worse)}`;
  return `${severity} unless ${gate.wanted(value)}${harder}`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
