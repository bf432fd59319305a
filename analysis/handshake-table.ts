/** What opening a connection costs as a table for people, with what the arms really carried. */
import type { Cell } from "./cell.ts";
import { Footnotes, formatCell, formatDifference } from "./format.ts";
import type {
  ChurnArm,
  ChurnCost,
  HandshakeCost,
  HandshakeCosts,
  TlsCost,
} from "./handshake-cost.ts";
import { left, right, type Table } from "./tabular.ts";

/** One row for each kind of connection and cost, and one for what TLS adds to opening. */
export function handshakeTable({ arms, blocks, costs }: HandshakeCosts): Table {
  const notes = new Footnotes();
  return {
    title:
      "A request and a connection, c(n) = c_s + c_h / n " +
      `(95 % interval over ${blocks.length} blocks in which every arm is valid)`,
    columns: [
      left("cost, µs"),
      left("connections"),
      right("request c_s"),
      right("opening c_h"),
      right("misfit"),
      right("5 % at n"),
    ],
    rows: [...rowsOf("mean", 1000, costs.meanNs, notes), ...rowsOf("CPU", 1, costs.cpuUs, notes)],
    notes: [
      ...notes.lines(),
      "handshake: what opening a connection costs more with TLS than without; a session that is " +
        "taken up again (resumed) spares signatures, full: none is",
      "misfit: squared distance of the arms from the line in units of their errors, about 1 if " +
        "it is one; 5 % at n: from n requests a connection on, opening is below 5 % of a request",
      ...arms.map(armLine),
    ],
  };
}

function rowsOf(name: string, scale: number, cost: HandshakeCost, notes: Footnotes): string[][] {
  if (cost.kind === "none") {
    const mark = notes.mark(cost.reason);
    return [[name, "TLS and plain", mark, mark, "", ""]];
  }
  const shown = (estimate: ChurnCost["steady"]) => formatDifference(estimate, scale, 0, notes);
  const row = (title: string, kind: string, churn: ChurnCost, last: string): string[] => [
    title,
    kind,
    shown(churn.steady),
    shown(churn.opening),
    churn.misfit.toFixed(1),
    last,
  ];
  const secured = (title: string, kind: string, tls: TlsCost): string[][] => [
    row(title, kind, tls, formatCell(tls.crossover, notes, false)),
    ["", `${kind} handshake`, "", shown(tls.handshake), "", ""],
  ];
  return [
    ...secured(name, "TLS", cost.tls),
    ...(cost.full === undefined ? [] : secured("", "TLS, full", cost.full)),
    row("", "plain", cost.plain, ""),
  ];
}

function armLine({ requestsPerConnection: n, treatments }: ChurnArm): string {
  const asked = n === 0 ? "never closed" : `closed after ${n}`;
  const said = treatments.map(({ label, carried, resumed }) => {
    const really =
      carried.kind === "none" ? carried.reason : `${carried.value.toFixed(1)} requests each`;
    return `${label} (${[really, ...sessionsOf(resumed)].join(", ")})`;
  });
  return `${asked}: ${said.join(", ")}`;
}

function sessionsOf(resumed: Cell | undefined): readonly string[] {
  if (resumed === undefined) return [];
  return [
    resumed.kind === "none" ? resumed.reason : `${(100 * resumed.value).toFixed(1)} % resumed`,
  ];
}
