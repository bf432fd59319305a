/** What was seen on the legs of the request path, beside what the topology says. */
import type { JudgedRun } from "../judged-run.ts";
import { type LegFacts, wireLines } from "../wire.ts";
import { type Content, type Markup, markup, table } from "./markup.ts";

/** Every fact of every leg of one run; nothing where nothing has seen the legs. */
export function wireTable(facts: readonly LegFacts[]): Content {
  if (facts.length === 0) return undefined;
  return table(
    "Wire: what proxies, service and probes saw of each leg",
    [
      { title: "leg" },
      { title: "fact" },
      { title: "wanted" },
      { title: "seen" },
      { title: "holds" },
    ],
    facts.flatMap(({ from, to, expected, observed, counts }) => {
      const leg = `${from} → ${to}`;
      const names = [...new Set([...Object.keys(expected), ...Object.keys(observed)])];
      return [
        ...names.map((name) => [leg, name, ...factCells(expected[name], observed[name])]),
        ...Object.entries(counts).map(([name, count]) => [
          leg,
          countNames[name] ?? name,
          "",
          count,
        ]),
      ];
    }),
  );
}

const countNames: Readonly<Record<string, string>> = {
  open: "connections open at the start",
  opened: "connections opened under load",
  fullHandshakes: "full handshakes",
  resumedHandshakes: "resumed handshakes",
};

function factCells(wanted: string | undefined, seen: string | undefined): readonly Content[] {
  if (wanted === undefined) return ["", seen, ""];
  const holds = wanted === seen;
  const [outcome, word] = holds ? ["pass", "yes"] : ["invalid", "no"];
  return [
    wanted,
    seen ?? markup`<span class="none">not seen</span>`,
    markup`<span class="badge ${outcome}">${word}</span>`,
  ];
}

/** What valid runs of a treatment saw, one line where all saw the same. */
export function wireSummary(runs: readonly JudgedRun[]): Markup {
  const lines = wireLines(runs.filter(({ verdict }) => verdict !== "INVALID"));
  if (lines.length === 0) {
    return markup`<p class="note">Seen on the wire: nothing has looked at these legs.</p>
`;
  }
  return markup`<p class="note">Seen on the wire in valid runs:</p>
<ul class="note">${lines.map((line) => markup`<li>${line}</li>`)}</ul>
`;
}
