/** Renewals of certificates as a table for people: that they took place, and what they brought. */
import { Footnotes, formatCell, signed } from "./format.ts";
import type { RotationArm, Rotations } from "./rotation-arms.ts";
import { left, right, type Table } from "./tabular.ts";

/** One row a treatment; what is compared with a placebo has a line beside its figures. */
export function rotationTable({ arms, sloMilliseconds }: Rotations): Table {
  const notes = new Footnotes();
  const judged = sloMilliseconds !== undefined;
  return {
    title: "Certificates renewed while measured (median over runs [least–greatest])",
    columns: [
      left("treatment"),
      ...["valid s", "events", "renewals", "opened", "full", "resumed", "worst s"].map(right),
      ...(judged ? [right("bad")] : []),
    ],
    rows: arms.map(({ label, certificateSeconds, events, figures }) => [
      label,
      formatCell(certificateSeconds, notes, false),
      formatCell(events, notes, false),
      formatCell(figures.renewals, notes, true),
      formatCell(figures.opened, notes, true),
      formatCell(figures.fullHandshakes, notes, true),
      formatCell(figures.resumedHandshakes, notes, false),
      formatCell(figures.worstSecond, notes, false),
      ...(judged ? [formatCell(figures.bad, notes, true)] : []),
    ]),
    notes: [
      ...notes.lines(),
      ...arms.flatMap((arm) => placeboLine(arm, arms)),
      ...(judged ? arms.flatMap(badLine) : []),
      "valid s: how long a certificate is valid; renewals: certificates that a proxy was given " +
        "in a run; events: those of all proxies and valid runs",
      "opened, full, resumed: connections and TLS handshakes of the leg that uses the " +
        "certificates, in a run; connections that stand keep the certificate they began with",
      "worst s: p99 of the worst second over that of the median one; the worst of many is high " +
        "by itself, so only what exceeds the placebo's counts",
      ...(judged
        ? [
            `bad: requests of a run that failed, were not sent, or took longer than ` +
              `${sloMilliseconds} ms, also in runs that such requests have made invalid`,
          ]
        : []),
    ],
  };
}

/** Whether connections were made anew is seen beside what does the same without renewals. */
function placeboLine(arm: RotationArm, arms: readonly RotationArm[]): string[] {
  const { label, placebo, figures } = arm;
  if (placebo === undefined) return [];
  const other = arms.find((candidate) => candidate.label === placebo);
  if (other === undefined) return [`${label}: against ${placebo}, which has no certificates`];
  const pairs = (["renewals", "opened", "fullHandshakes", "worstSecond"] as const).map((id) => {
    // Reasons stand in the table itself.
    const [own, its] = [figures[id], other.figures[id]].map((cell) =>
      cell.kind === "none" ? "-" : formatCell(cell, new Footnotes(), false),
    );
    return `${titles[id]} ${own ?? "-"} against ${its ?? "-"}`;
  });
  return [`${label}: placebo ${placebo}; ${pairs.join(", ")}`];
}

/** What a budget of bad requests is held against. */
function badLine({ label, placebo, badPerEvent }: RotationArm): string[] {
  if (badPerEvent === undefined || placebo === undefined) return [];
  if (badPerEvent.kind === "none")
    return [`${label}: bad requests an event: ${badPerEvent.reason}`];
  const [mean, low, high] = [badPerEvent.mean, badPerEvent.low, badPerEvent.high].map((number) =>
    signed(number, 2),
  );
  return [
    `${label}: bad requests an event, over those of ${placebo}: ${mean ?? ""} ` +
      `[${low ?? ""}, ${high ?? ""}] (95 %, ${badPerEvent.pairs} blocks)`,
  ];
}

const titles = {
  renewals: "renewals",
  opened: "opened",
  fullHandshakes: "full handshakes",
  worstSecond: "worst second",
} as const;
