/** Where everything comes from: the plan, the programs, the hosts, the files to check it with. */
import type { Evidence } from "./evidence.ts";
import { details, fileLink, type Markup, markup, table } from "./markup.ts";

const derivedFiles = ["loss.txt", "loss.md", "loss.csv", "loss.json"] as const;

/** Plan text, programs, facts of the hosts, links to the raw files. */
export function sourcesSection(evidence: Evidence): Markup {
  const { planText, manifest } = evidence;
  const raw = ["plan.yaml", "manifest.json", "SHA256SUMS"];
  const files = [...raw, ...derivedFiles.map((file) => `tables/${file}`)];
  return markup`<section aria-labelledby="sources"><h2 id="sources">Sources</h2>
<p>This page holds nothing that the raw files beside it do not. To check the files against their
sums and compute all of it anew: <code>./ztbench report BUNDLE</code>.</p>
<ul class="files">${files.map(
    (file) => markup`<li>${fileLink(file)}</li>
`,
  )}</ul>
${details("plan, as it was hashed before the first request", markup`<pre>${planText}</pre>`)}
${details(
  `programs (${manifest.programs.length})`,
  table(
    `Version set ${manifest.versionSet}`,
    [{ title: "program" }, { title: "version" }, { title: "provenance" }, { title: "sha256" }],
    manifest.programs.map(({ name, version, provenance, sha256 }) => [
      name,
      version,
      provenance,
      markup`<code>${sha256}</code>`,
    ]),
  ),
)}
${Object.entries(manifest.facts).map(([host, facts]) => hostDetails(host, facts))}</section>
`;
}

function hostDetails(host: string, facts: Readonly<Record<string, string>>): Markup {
  const names = Object.keys(facts).sort();
  return details(
    `host ${host}: facts as it printed them (${names.length})`,
    names.map(
      (name) => markup`<h4>${name}</h4><pre>${facts[name]?.trimEnd()}</pre>
`,
    ),
  );
}
