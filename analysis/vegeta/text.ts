/** A reading as text for people. */
import type { Cell } from "../cell.ts";
import type { Counts, FileReading } from "./collector.ts";
import type { Reading } from "./reading.ts";
import { readQuantiles, type SeriesView } from "./view.ts";

const nameWidth = 9;
const cellWidth = 12;

/** Lines end without a line end after the last one. */
export function renderReading(reading: Reading): string {
  const { files, counts, notes, problems, response, service, lag } = reading;
  const head = ["", ...readQuantiles, "mean", "count"];
  const rows = [
    ["response", response],
    ["service", service],
    ["lag", lag],
  ] as const;
  return [
    ...files.map((file) => describeFile(file)),
    describeCounts(counts),
    "",
    line(head),
    ...rows.map(([name, view]) => line([name, ...cellsOf(view)])),
    "",
    ...reasonsOf(rows).map((reason) => `none: ${reason}`),
    "milliseconds; response = (sent - due) + service, failed and unsent requests rank last",
    ...notes.map((note) => `note: ${note}`),
    ...problems.map((problem) => `INVALID: ${problem}`),
  ].join("\n");
}

function describeFile({ name, format, rows, planned, inFlight, codes, errors }: FileReading) {
  const byCode = Object.entries(codes).map(([code, count]) => `${count} x ${code}`);
  const kinds = Object.entries(errors)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([error, count]) => `\n  ${count} x ${error}`);
  return (
    `${name}: ${format}, ${rows} rows of ${planned} planned, ${byCode.join(", ")}, ` +
    `at most ${inFlight} in flight${kinds.join("")}`
  );
}

function describeCounts({ planned, sent, ok, failed, timedOut, unsent }: Counts): string {
  return (
    `planned ${planned}, sent ${sent}, answered ${ok}, failed ${failed} ` +
    `(${timedOut} timed out), unsent ${unsent}`
  );
}

function cellsOf({ quantiles, meanNs, count }: SeriesView): readonly string[] {
  const shown = (cell: Cell) => (cell.kind === "value" ? (cell.value / 1e6).toFixed(3) : "none");
  return [...readQuantiles.map((name) => shown(quantiles[name])), shown(meanNs), String(count)];
}

function reasonsOf(rows: readonly (readonly [string, SeriesView])[]): readonly string[] {
  const reasons = rows.flatMap(([, { quantiles }]) =>
    readQuantiles.flatMap((name) => {
      const cell = quantiles[name];
      return cell.kind === "none" ? [`${name}: ${cell.reason}`] : [];
    }),
  );
  return [...new Set(reasons)];
}

function line([name = "", ...cells]: readonly string[]): string {
  return name.padEnd(nameWidth) + cells.map((cell) => cell.padStart(cellWidth)).join("");
}
