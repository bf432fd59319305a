/** The metric matrix as one compact table for people: connections, memory, network, sessions. */
import type { Treatment } from "./comparison.ts";
import { Footnotes, formatCell } from "./format.ts";
import type { MatrixId } from "./matrix.ts";
import { left, right, type Table } from "./tabular.ts";

const all: readonly { readonly title: string; readonly id: MatrixId }[] = [
  { title: "connect", id: "connectNs" },
  { title: "first byte", id: "firstByteNs" },
  { title: "in flight", id: "inFlightMost" },
  { title: "memory", id: "memory" },
  { title: "files", id: "openFiles" },
  { title: "net B/req", id: "networkBytesPerRequest" },
  { title: "irq cores", id: "interruptCores" },
  { title: "handshakes", id: "handshakes" },
  { title: "ok", id: "handshakeShare" },
  { title: "reuse", id: "reuseShare" },
  { title: "cache hits", id: "cacheHitShare" },
];

const secondary: readonly MatrixId[] = ["inFlightMost", "interruptCores", "handshakeShare"];

/** Medians over valid runs; a narrow one leaves out what is rarely asked for. */
export function matrixTable(treatments: readonly Treatment[], width: "narrow" | "wide"): Table {
  const notes = new Footnotes();
  const columns = all.filter(({ id }) => width === "wide" || !secondary.includes(id));
  return {
    title: "Connections and resources (median over runs)",
    columns: [left("treatment"), ...columns.map(({ title }) => right(title))],
    rows: treatments.map(({ label, matrix }) => [
      label,
      ...columns.map(({ id }) => {
        const cell = matrix[id];
        // Bytes of a request are few, those of memory many.
        return id === "networkBytesPerRequest" && cell.kind === "value"
          ? cell.value.toFixed(0)
          : formatCell(cell, notes, false);
      }),
    ]),
    notes: [
      ...notes.lines(),
      "connect, first byte: ms, of requests on connections of their own to the entry, sent after " +
        "the load and no part of any latency above; first byte counts from when that one stands",
      "memory (MiB) and files: all units of the data plane; net: all links of all hosts, both ways",
      "handshakes: TLS, of the leg with most while measured; reuse: requests on connections that " +
        "stood, of the leg with fewest",
    ],
  };
}
