/** What was deployed for each treatment: its legs and wire facts, units, probes, configuration. */
import type { Deployment } from "../../contracts/deployment.ts";
import type { Analysis } from "../analysis.ts";
import { deploymentOf, describePath, type Evidence, measuredRecords } from "./evidence.ts";
import { type Content, details, fileLink, type Markup, markup, table } from "./markup.ts";
import { probeHolds, probeTable } from "./probes.ts";
import { wireSummary } from "./wire.ts";

/** The security boundary in one table, then a closed section for each treatment. */
export function topologiesSection(analysis: Analysis, evidence: Evidence): Markup {
  const labels = analysis.comparison.treatments.map(({ label }) => label);
  return markup`<section aria-labelledby="boundary">
<h2 id="boundary">Topologies and what they stopped</h2>
${boundaryTable(labels, evidence)}
${labels.map((label) => topologyDetails(label, evidence, analysis.runs))}</section>
`;
}

function boundaryTable(labels: readonly string[], evidence: Evidence): Markup {
  const rows = labels.map((label): readonly Content[] => {
    const deployment = deploymentOf(evidence, label);
    if (deployment === undefined)
      return [label, markup`<span class="none">not measured</span>`, "", ""];
    const own = measuredRecords(evidence).filter((record) => record.label === label);
    const held = (kind: string): Content => {
      const asked = deployment.probes.filter((probe) => probe.kind === kind);
      const holding = asked.filter(({ id }) => probeHolds(id, own));
      if (asked.length === 0) return "none declared";
      const outcome = holding.length === asked.length ? "pass" : "invalid";
      return markup`<span class="badge ${outcome}">${holding.length} of ${asked.length}</span>`;
    };
    return [label, describePath(deployment), held("positive"), held("negative")];
  });
  return table(
    "Probes that held before and after the load of every run",
    [
      { title: "treatment" },
      { title: "request path" },
      { title: "must be answered" },
      { title: "must be refused or stripped" },
    ],
    rows,
  );
}

function topologyDetails(label: string, evidence: Evidence, runs: Analysis["runs"]): Markup {
  const records = measuredRecords(evidence).filter((record) => record.label === label);
  const run = evidence.runs.find(
    ({ record }) => record.label === label && record.schema === "ztbench/record/1",
  );
  const [first] = records;
  if (first === undefined || run === undefined) {
    return details(label, markup`<p>Nothing was measured, so no deployment is recorded.</p>`);
  }
  const { deployment } = first;
  const digests = [...new Set(records.map((r) => r.deployment.configurationDigest))];
  return details(
    [label, markup` <span class="path">${describePath(deployment)}</span>`],
    [
      legTable(deployment),
      wireSummary(runs.filter((judged) => judged.label === label)),
      unitTable(deployment),
      probeTable(
        `Probes over ${records.length === 1 ? "one run" : `${records.length} runs`}`,
        deployment.probes,
        records,
      ),
      markup`<p class="note">Digest of everything rendered onto the hosts:
${digests.map((digest) => markup`<code>${digest}</code> `)}</p>`,
      details(
        "deployment document, as load received it",
        markup`<pre>${JSON.stringify(deployment, null, 2)}</pre>`,
      ),
      markup`<p class="note">From ${fileLink(`runs/${run.name}/record.json`)}</p>`,
    ],
  );
}

function legTable({ legs }: Deployment): Markup {
  const facts = [...new Set(legs.flatMap(({ wire }) => Object.keys(wire)))].sort();
  return table(
    "Legs of the request path and the facts expected on the wire",
    [
      { title: "leg" },
      { title: "protocol" },
      { title: "TLS" },
      ...facts.map((title) => ({ title })),
    ],
    legs.map(({ from, to, http, tls, wire }) => [
      `${from} → ${to}`,
      `HTTP/${http}`,
      tls,
      ...facts.map((fact) => wire[fact] ?? ""),
    ]),
  );
}

function unitTable({ units }: Deployment): Markup {
  return table(
    "Units",
    [
      { title: "unit" },
      { title: "host" },
      { title: "kind" },
      { title: "program" },
      { title: "CPUs" },
      { title: "counted as cost" },
    ],
    units.map(({ name, host, kind, program, cpus, dataPlane }) => [
      name,
      host,
      kind,
      program,
      cpus === "" ? "any" : cpus,
      dataPlane ? "yes" : "no",
    ]),
  );
}
