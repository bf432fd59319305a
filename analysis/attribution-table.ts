/** Layers of cost as tables for people; quantiles stand apart from what adds up. */
import type { Attribution, Step } from "./attribution.ts";
import type { Costs } from "./block-costs.ts";
import { none, value } from "./cell.ts";
import { Footnotes, formatCell, formatDifference } from "./format.ts";
import { handshakeTable } from "./handshake-table.ts";
import { left, right, type Table } from "./tabular.ts";

/** All that is told of a ladder. */
export function layerTables(attribution: Attribution): readonly Table[] {
  const connections = connectionTables(attribution);
  return [layerTable(attribution), incrementTable(attribution), ...connections];
}

/** What adds up: layers, and connections. */
export function costTables(attribution: Attribution): readonly Table[] {
  return [layerTable(attribution), ...connectionTables(attribution)];
}

/** None where the plan has no arms for them. */
function connectionTables({ handshake }: Attribution): readonly Table[] {
  return handshake === undefined ? [] : [handshakeTable(handshake)];
}

/** What each layer adds to means, CPU and cores. */
function layerTable(attribution: Attribution): Table {
  const notes = new Footnotes();
  const { layers, total, residual, missing, blocks, interaction } = attribution;
  const row = (name: string, { from, to, costs }: Step): string[] => [
    name,
    `${from} → ${to}`,
    microseconds(costs.meanNs, notes),
    formatDifference(costs.cpuUs, 1, 0, notes),
    formatDifference(costs.cores, 1, 3, notes),
  ];
  const cell = (id: string) => {
    const rest = residual[id] ?? none("not computed");
    const isLatency = rest.kind === "value" && rest.unit === "ns";
    return formatCell(isLatency ? value(rest.value / 1000, "us") : rest, notes, false);
  };
  const together = interaction === undefined ? [] : [interactionNote(interaction, notes)];
  return {
    title:
      `Layers of cost (95 % interval over ${blocks.length} blocks ` +
      "in which every rung is valid)",
    columns: [
      left("layer"),
      left("rungs"),
      right("mean µs"),
      right("CPU µs/request"),
      right("cores"),
    ],
    rows: [
      ...layers.map((layer) => row(layer.layer, layer)),
      row("total", total),
      ["residual", "", ...["meanNs", "cpuUs", "cores"].map(cell)],
      [
        "control plane",
        `${total.from} → ${total.to}`,
        "",
        "",
        formatDifference(total.costs.controlCores, 1, 3, notes),
      ],
    ],
    notes: [
      ...notes.lines(),
      "cores: data plane at the rate of the plan; control plane: issuing and pushing, apart",
      "residual: total less the sum of all steps; it is 0 when blocks are paired rightly",
      ...attribution.rungs.map(({ rung, label, what }) => `${rung}: ${label}, ${what}`),
      ...layers.flatMap(({ layer, note }) => (note === undefined ? [] : [`${layer}: ${note}`])),
      ...missing.map((reason) => `not measured: ${reason}`),
      ...together,
    ],
  };
}

/** What each rung adds to quantiles, which depends on the order of the rungs. */
export function incrementTable({ steps, total }: Attribution): Table {
  const notes = new Footnotes();
  return {
    title:
      "Ordered increments of response quantiles, µs: they depend on the order, and are no shares",
    columns: [left("rungs"), right("p50"), right("p99")],
    rows: [...steps, total].map(({ from, to, costs }) => [
      `${from} → ${to}`,
      microseconds(costs.p50Ns, notes),
      microseconds(costs.p99Ns, notes),
    ]),
    notes: notes.lines(),
  };
}

function microseconds(cost: Costs["meanNs"], notes: Footnotes): string {
  return formatDifference(cost, 1000, 0, notes);
}

function interactionNote(
  { meanNs, verdict, shared }: NonNullable<Attribution["interaction"]>,
  notes: Footnotes,
): string {
  const size = `${microseconds(meanNs, notes)} µs of the mean`;
  if (verdict !== "matters") {
    const few = meanNs.kind === "estimate" ? " from so many blocks" : "";
    const told = verdict === "open" ? `cannot be told${few}` : verdict;
    return `crypto and policy together against each alone: ${size}, ${told}`;
  }
  const [crypto, policy] = [shared?.cryptoNs ?? 0, shared?.policyNs ?? 0].map((ns) =>
    String(Math.round(ns / 1000)),
  );
  return (
    `crypto and policy together against each alone: ${size}, matters; ` +
    `averaged over both orders (Shapley): crypto ${crypto ?? ""} µs, policy ${policy ?? ""} µs`
  );
}
