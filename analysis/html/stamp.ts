/** What was measured, when, on what and with which versions, as a list of terms. */
import type { Analysis } from "../analysis.ts";
import type { Evidence } from "./evidence.ts";
import { describeWarming } from "../stamp.ts";
import { type Content, type Markup, markup, unbroken } from "./markup.ts";

const schedulings = {
  rr: "rr (real-time, round robin)",
  other: "other (the kernel's default)",
} as const;

const tunings = {
  repro: "repro (for repeatable numbers)",
  stock: "stock (what the distribution sets)",
} as const;

/** Every number of the page stands under these conditions. */
export function stampList(analysis: Analysis, evidence: Evidence): Markup {
  const { stamp } = analysis;
  const commit = `${stamp.commit.slice(0, 12)}${stamp.dirty ? ", with local changes" : ""}`;
  const terms: readonly (readonly [string, Content])[] = [
    ["when", whenOf(evidence)],
    ["on", machineOf(evidence)],
    ["load", unbroken(loadOf(analysis))],
    ["driver", `${stamp.drivers.join(", ")}; arrival ${stamp.arrivals.join(", ")}`],
    ["repeats", repeatsOf(analysis)],
    ...(stamp.tuningProfile === undefined
      ? []
      : ([["tuning", tunings[stamp.tuningProfile]]] as const)),
    ["scheduling", schedulings[stamp.scheduling]],
    ["versions", `set ${stamp.versionSet}: ${stamp.versions.join(", ") || "none recorded"}`],
    ...(stamp.standIns.length === 0
      ? []
      : ([["stand-ins", `${stamp.standIns.join(", ")} (upstream not exercised)`]] as const)),
    ["commit", markup`<code>${commit}</code>`],
    ["plan", markup`<code>sha256 ${stamp.planSha256.slice(0, 12)}</code>`],
  ];
  const items = terms.map(
    ([term, text]) => markup`<div><dt>${term}</dt><dd>${text}</dd></div>
`,
  );
  return markup`<dl class="stamp">${items}</dl>
`;
}

/** First start and last end of all runs, in UTC. */
function whenOf({ runs, manifest }: Evidence): string {
  const starts = runs.map(({ record }) => record.startedAt).sort();
  const ends = runs.map(({ record }) => record.finishedAt).sort();
  const [from, to] = [starts[0] ?? manifest.createdAt, ends.at(-1) ?? manifest.createdAt];
  const shown = (instant: string): string => instant.slice(0, 16).replace("T", " ");
  const sameDay = from.slice(0, 10) === to.slice(0, 10);
  return `${shown(from)} – ${sameDay ? to.slice(11, 16) : shown(to)} UTC`;
}

function machineOf({ manifest }: Evidence): string {
  const { testbed, facts } = manifest;
  const hosts = Object.keys(facts);
  const all = Object.values(facts);
  const distinct = (texts: readonly (string | undefined)[]): string =>
    [...new Set(texts.filter((text) => text !== undefined && text !== ""))].join(" / ");
  const cpu = distinct(
    all.map((host) => /^model name\s*:\s*(.+)$/m.exec(host["cpu-first"] ?? "")?.[1]),
  );
  const kernel = distinct(all.map((host) => /^Linux (\S+)/.exec(host["kernel"] ?? "")?.[1]));
  const count = `${hosts.length} ${hosts.length === 1 ? "host" : "hosts"}`;
  return [
    `testbed ${testbed.name} (${testbed.class}), ${count}`,
    ...(cpu === "" ? [] : [cpu]),
    ...(kernel === "" ? [] : [`Linux ${kernel}`]),
  ].join(", ");
}

function loadOf({ stamp }: Analysis): string {
  const rates = stamp.ratesQps?.join(", ") ?? String(stamp.rateQps);
  return (
    `${rates} requests/s for ${stamp.durationSeconds} s ${describeWarming(stamp)}, ` +
    `${stamp.connections} connections`
  );
}

function repeatsOf({ stamp, runs, notRun }: Analysis): string {
  const valid = runs.filter(({ verdict }) => verdict !== "INVALID").length;
  const blocks = stamp.blocks === 1 ? "1 block" : `${stamp.blocks} blocks`;
  return (
    `${blocks} in random order (seed ${stamp.seed}), ` +
    `${valid} of ${runs.length + notRun.length} runs valid`
  );
}
