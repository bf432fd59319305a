/** Requests that had to be answered or refused, with what was seen each time. */
import type { Expectation, Probe, ProbeResults } from "../../contracts/deployment.ts";
import type { RunRecord } from "../../contracts/record.ts";
import { type Markup, markup, table } from "./markup.ts";

type Result = ProbeResults["results"][number];

/** One row a probe; observations of several runs are counted where they agree. */
export function probeTable(
  caption: string,
  probes: readonly Probe[],
  records: readonly RunRecord[],
): Markup {
  const seen = (phase: "before" | "after", id: string): string =>
    observations(records.map(({ probes }) => probes[phase].results.find((r) => r.id === id)));
  return table(
    caption,
    [
      { title: "probe" },
      { title: "shows" },
      { title: "wanted" },
      { title: "before" },
      { title: "after" },
      { title: "holds" },
    ],
    probes.map(({ id, kind, shows, expect }) => {
      const holds = probeHolds(id, records);
      return [
        id,
        `${shows} (${kind})`,
        describeExpectation(expect),
        seen("before", id),
        seen("after", id),
        markup`<span class="badge ${holds ? "pass" : "invalid"}">${holds ? "yes" : "no"}</span>`,
      ];
    }),
  );
}

/** Whether a probe passed each time it should have been asked. */
export function probeHolds(id: string, records: readonly RunRecord[]): boolean {
  return records.every(({ probes: { before, after } }) =>
    [before, after].every(({ results }) => results.some((r) => r.id === id && r.passed)),
  );
}

function observations(results: readonly (Result | undefined)[]): string {
  const counts = new Map<string, number>();
  for (const result of results) {
    const text = describeResult(result);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts]
    .map(([text, count]) =>
      results.length === 1 ? text : `${text} (${count} of ${results.length})`,
    )
    .join("; ");
}

function describeResult(result: Result | undefined): string {
  if (result === undefined) return "not asked";
  const { outcome, status, header, error } = result.observed;
  const headers = header === undefined ? [] : [header];
  const failed = result.passed ? "" : "not as wanted: ";
  switch (outcome) {
    case "status":
      return [`${failed}status ${status ?? "unknown"}`, ...headers.map(maskDigits)].join(", ");
    case "refused":
      return `${failed}refused`;
    case "no-response":
      return `${failed}no response`;
    case "error":
      return `${failed}${error ?? "error"}`;
  }
}

/** Users differ from probe to probe; what counts is the kind of answer. */
function maskDigits(text: string): string {
  return text.replace(/\d{4,}/g, "…");
}

function describeExpectation(expect: Expectation): string {
  switch (expect.outcome) {
    case "status": {
      const { header } = expect;
      if (header === undefined) return `status ${expect.status}`;
      const wanted =
        header.value !== undefined
          ? ` = ${header.value}`
          : header.matches !== undefined
            ? ` matches ${header.matches}`
            : "";
      return `status ${expect.status}, ${header.name}${wanted}`;
    }
    case "refused":
      return "connection refused";
    case "no-response":
      return "no response";
  }
}
