/**
 * The files of a set of versions, as an artifacts document for k3s names them: choosing a set is
 * fetching its files once and pinning what came. Fetching itself is handed in.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { stringify } from "yaml";
import type { Artifact, ArtifactRole, Artifacts } from "../contracts/artifacts.ts";
import { requireTested } from "../contracts/compatibility.ts";
import { Failure } from "../contracts/failure.ts";
import { sha256OfFile } from "./cache.ts";
import { type ClusterVersions, clusterVersions } from "./version-sets.ts";

export type PlannedFile = {
  readonly name: string;
  readonly role: ArtifactRole;
  /** One address; several are joined into one file of several YAML documents. */
  readonly urls: readonly string[];
};

export const releaseSets = ["era", "current"] as const;
export type ReleaseSet = (typeof releaseSets)[number];

/** Name of the document, in the directory of the files it names. */
export const artifactsDocument = "artifacts.yaml";

/** Processors by the names that k3s gives them in its files. */
const k3sSuffix = { amd64: "", arm64: "-arm64" } as const;
export type Architecture = keyof typeof k3sSuffix;

/**
 * Every file of a set; images come from registries. Names carry versions, so that a file of
 * another set that lies in the directory is not taken for one of these.
 */
export function planFiles(set: ReleaseSet, architecture: Architecture): readonly PlannedFile[] {
  const { kubernetes, calico, istio } = complete(clusterVersions(set));
  const k3s = `https://github.com/k3s-io/k3s/releases/download/v${encodeURIComponent(kubernetes)}`;
  const manifests = `https://raw.githubusercontent.com/projectcalico/calico/v${calico}/manifests`;
  const charts = "https://istio-release.storage.googleapis.com/charts";
  const chart = (name: "base" | "istiod") => `${name}-${istio}.tgz`;
  return [
    {
      name: `k3s-${kubernetes}-${architecture}`,
      role: "k3s",
      urls: [`${k3s}/k3s${k3sSuffix[architecture]}`],
    },
    {
      name: `tigera-operator-${calico}.yaml`,
      role: "calico-operator",
      urls: [
        ...(hasOwnDefinitions(calico) ? [`${manifests}/operator-crds.yaml`] : []),
        `${manifests}/tigera-operator.yaml`,
      ],
    },
    { name: chart("base"), role: "istio-base", urls: [`${charts}/${chart("base")}`] },
    { name: chart("istiod"), role: "istiod", urls: [`${charts}/${chart("istiod")}`] },
  ];
}

/** Since 3.30 the operator's custom resource definitions are a file of their own. */
function hasOwnDefinitions(calico: string): boolean {
  const [major = 0, minor = 0] = calico.split(".").map(Number);
  return major > 3 || (major === 3 && minor >= 30);
}

function complete({ kubernetes, calico, istio }: ClusterVersions) {
  if (calico === undefined || istio === undefined) throw new Error("a set without Calico or Istio");
  return { kubernetes, calico, istio };
}

/** The document for files with these digests. */
export function renderArtifacts(set: ReleaseSet, files: readonly Artifact[]): string {
  const { kubernetes, calico, istio } = complete(clusterVersions(set));
  requireTested({ kubernetes, calico, istio }, { allowUntested: false, where: "nowhere" });
  const document: Artifacts = {
    schema: "ztbench/artifacts/1",
    k3s: kubernetes,
    calico,
    istio,
    imagesFrom: "registry",
    allowUntested: false,
    files: [...files],
  };
  const head = `The ${set} set. Digests are of what was fetched: compare them with the makers'.`;
  return `# ${head}\n${stringify(document)}`;
}

/** The content at an address. */
export type Fetch = (url: string) => Promise<Uint8Array>;

/**
 * Fetches what the directory lacks and writes the document. A directory that has one is left.
 *
 * @throws Failure `document` if there is one, `testbed` if something cannot be fetched
 */
export async function fetchSet(
  set: ReleaseSet,
  architecture: Architecture,
  directory: string,
  fetchOne: Fetch,
): Promise<string> {
  const target = path.join(directory, artifactsDocument);
  if (existsSync(target)) {
    throw new Failure("document", `${target}: is there already, nothing is fetched over it`, {
      hint: "use it, or name another directory",
    });
  }
  await mkdir(directory, { recursive: true });
  const files: Artifact[] = [];
  for (const { name, role, urls } of planFiles(set, architecture)) {
    const file = path.join(directory, name);
    if (!existsSync(file)) await fetchFile(file, urls, fetchOne);
    const [url] = urls;
    // What was joined has no address of its own, so it can only be fetched by this program.
    const from = urls.length === 1 && url !== undefined ? { url } : {};
    files.push({ name, role, sha256: await sha256OfFile(file), ...from });
  }
  await writeFile(target, renderArtifacts(set, files));
  return readFile(target, "utf8");
}

async function fetchFile(file: string, urls: readonly string[], fetchOne: Fetch): Promise<void> {
  const parts: Uint8Array[] = [];
  for (const url of urls) {
    if (parts.length > 0) parts.push(Buffer.from("\n---\n"));
    parts.push(await fetchOne(url));
  }
  const partial = `${file}.partial`;
  await writeFile(partial, Buffer.concat(parts));
  await rename(partial, file);
}
