/**
 * Describes a bundle as an RO-Crate: what was run by which program with which plan, and which files
 * came of it, for repositories and readers that know nothing of ztbench.
 */
import type { Analysis } from "../analysis.ts";
import type { Bundle, BundleRun } from "../bundle.ts";

export const crateFile = "ro-crate-metadata.json";

const specification = "https://w3id.org/ro/crate/1.2";
const profile = "https://w3id.org/ro/wfrun/process/0.5";

type Reference = { readonly "@id": string };
type Entity = Readonly<Record<string, unknown>> & Reference & { readonly "@type": string };

/**
 * The crate, RO-Crate 1.2 by the Process Run Crate profile: a CreateAction for the campaign and one
 * for every run, each with instrument, object and result. The same bundle gives the same bytes.
 *
 * @param derived sha256 of the files that the analysis made of it, by path
 */
export function renderCrate(
  { plan, manifest, sums, runs }: Bundle,
  analysis: Analysis,
  derived: ReadonlyMap<string, string>,
): string {
  const runFiles = (run: BundleRun) =>
    [...sums.keys()].filter((path) => path.startsWith(`runs/${run.name}/`));
  const ofRuns = new Set(runs.flatMap(runFiles));
  const others = [...sums.keys()].filter((path) => !ofRuns.has(path));
  const { banner } = analysis.stamp;
  const actions = [campaignAction(analysis, runs), ...runs.map(runAction(manifest.programs))];
  const graph: readonly Entity[] = [
    {
      "@id": crateFile,
      "@type": "CreativeWork",
      about: { "@id": "./" },
      conformsTo: { "@id": specification },
    },
    {
      "@id": "./",
      "@type": "Dataset",
      name: `ztbench campaign ${manifest.campaign} of ${manifest.createdAt}`,
      description: `${plan.purpose}${banner === undefined ? "" : ` (${banner})`}`,
      datePublished: manifest.createdAt,
      license: { "@id": "#license" },
      conformsTo: { "@id": profile },
      hasPart: [
        ...others.map(fileReference),
        ...runs.map((run) => ({ "@id": directoryId(run) })),
        ...[...derived.keys()].map(fileReference),
      ],
      mentions: [...actions.map(referTo), { "@id": "#analysis" }],
    },
    {
      "@id": profile,
      "@type": "CreativeWork",
      name: "Process Run Crate",
      version: "0.5",
    },
    {
      "@id": "#license",
      "@type": "CreativeWork",
      name: "no licence stated",
      description: "Whoever measured has not said on which terms the data may be used.",
    },
    ...softwareOf(manifest),
    ...actions,
    {
      "@id": "#analysis",
      "@type": "CreateAction",
      name: "tables computed from the raw files, again by ./ztbench verify",
      instrument: { "@id": "#ztbench" },
      object: runs.map((run) => ({ "@id": directoryId(run) })),
      result: [...derived.keys()].map(fileReference),
    },
    ...runs.map((run) => ({
      "@id": directoryId(run),
      "@type": "Dataset",
      name: `run ${run.record.run}: ${run.record.label}, block ${run.record.block}`,
      hasPart: runFiles(run).map(fileReference),
    })),
    ...[...sums, ...derived].map(([path, sha256]) => fileOf(path, sha256)),
  ];
  const document = { "@context": `${specification}/context`, "@graph": graph };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const referTo = ({ "@id": id }: Entity): Reference => ({ "@id": id });
const fileReference = (path: string): Reference => ({ "@id": idOf(path) });

/** Names of hosts and units may hold what an IRI may not. */
function idOf(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

function directoryId(run: BundleRun): string {
  return `${idOf(`runs/${run.name}`)}/`;
}

const formats: Readonly<Record<string, string>> = {
  json: "application/json",
  yaml: "application/yaml",
  csv: "text/csv",
  gz: "application/gzip",
  html: "text/html",
  md: "text/markdown",
  xml: "application/xml",
  txt: "text/plain",
};

function fileOf(path: string, sha256: string): Entity {
  const format = formats[path.split(".").at(-1) ?? ""];
  return {
    "@id": idOf(path),
    "@type": "File",
    name: path,
    sha256,
    ...(format !== undefined && { encodingFormat: format }),
  };
}

function softwareOf({ commit, dirty, programs, versionSet }: Bundle["manifest"]): Entity[] {
  return [
    {
      "@id": "#ztbench",
      "@type": "SoftwareApplication",
      name: "ztbench",
      softwareVersion: `${commit}${dirty ? " with local changes" : ""}`,
      description: `version set ${versionSet}`,
      softwareRequirements: programs.map(({ name }) => ({ "@id": programId(name) })),
    },
    ...programs.map(({ name, version, sha256, provenance, articles }) => ({
      "@id": programId(name),
      "@type": "SoftwareApplication",
      name,
      softwareVersion: version,
      identifier: `sha256:${sha256}`,
      description:
        articles === undefined ? provenance : `${provenance}; the articles ran ${articles}`,
    })),
  ];
}

function programId(name: string): string {
  return `#program-${encodeURIComponent(name)}`;
}

function campaignAction({ notRun, stamp }: Analysis, runs: readonly BundleRun[]): Entity {
  const starts = runs.map(({ record }) => record.startedAt).sort();
  const ends = runs.map(({ record }) => record.finishedAt).sort();
  return {
    "@id": "#campaign",
    "@type": "CreateAction",
    name: `campaign ${stamp.plan} on testbed ${stamp.testbed}`,
    instrument: { "@id": "#ztbench" },
    object: [{ "@id": "plan.yaml" }],
    result: [{ "@id": "manifest.json" }, ...runs.map((run) => ({ "@id": directoryId(run) }))],
    ...(starts[0] !== undefined && { startTime: starts[0], endTime: ends.at(-1) }),
    ...statusOf(notRun.length === 0 ? undefined : `not run: ${notRun.join(", ")}`),
  };
}

/** The load driver made the rows; the rest of a run is ztbench's. */
function runAction(programs: Bundle["manifest"]["programs"]) {
  return (run: BundleRun): Entity => {
    const { record } = run;
    const drivers = record.treatment.driver === "vegeta" ? ["vegeta"] : ["ztload", "vegeta"];
    const driver = drivers.find((wanted) => programs.some(({ name }) => name === wanted));
    return {
      "@id": `#run-${record.run}`,
      "@type": "CreateAction",
      name: `run ${record.run}: ${record.label}, block ${record.block}, arm ${record.arm}`,
      instrument: { "@id": driver === undefined ? "#ztbench" : programId(driver) },
      object: [{ "@id": "plan.yaml" }],
      result: [{ "@id": directoryId(run) }],
      startTime: record.startedAt,
      endTime: record.finishedAt,
      ...statusOf(record.failure),
    };
  };
}

function statusOf(error: string | undefined): Readonly<Record<string, unknown>> {
  return error === undefined
    ? { actionStatus: { "@id": "http://schema.org/CompletedActionStatus" } }
    : { actionStatus: { "@id": "http://schema.org/FailedActionStatus" }, error };
}
