/** What opening a connection costs as a table for people, with what the arms really carried. */
import { Footnotes, formatCell, formatDifference } from "./format.ts";
import type { ChurnArm, ChurnCost, HandshakeCost, HandshakeCosts } from "./handshake-cost.ts";
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
        "taken up again (resumed) spares signatures",
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
  const shown = (estimate: ChurnCost["steady"]) => formatDifference(estimate, scale, 1, notes);
  const row = (title: string, kind: string, churn: ChurnCost, last: string): string[] => [
    title,
    kind,
    shown(churn.steady),
    shown(churn.opening),
    churn.misfit.toFixed(1),
    last,
  ];
  return [
    row(name, "TLS", cost.tls, formatCell(cost.crossover, notes, false)),
    row("", "plain", cost.plain, ""),
    ["", "handshake", "", shown(cost.handshake), "", ""],
  ];
}

function armLine({ requestsPerConnection: n, tls, plain, carried, resumed }: ChurnArm): string {
  const asked = n === 0 ? "never closed" : `closed after ${n}`;
  const really = [carried.tls, carried.plain].map((cell) =>
    cell.kind === "none" ? cell.reason : `${cell.value.toFixed(1)} requests each`,
  );
  const sessions =
    resumed.kind === "none" ? resumed.reason : `${(100 * resumed.value).toFixed(1)} % resumed`;
  return `${asked}: ${tls} (${really[0] ?? ""}, ${sessions}), ${plain} (${really[1] ?? ""})`;
}
