/** The files of k3s as its artifacts document says: complete, checked, in the form of others. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { type ArtifactRole, artifactOf } from "../contracts/artifacts.ts";
import { Failure } from "../contracts/failure.ts";
import type { ClusterSettings } from "../contracts/testbed.ts";
import type { ClusterFile } from "../hosts/cluster/cluster.ts";
import { type ArtifactStore, completeArtifacts, readArtifacts } from "../tools/artifacts.ts";

/**
 * Opens the artifacts of a testbed; fetches what is missing and has an address.
 *
 * @throws Failure `document` or `testbed`
 */
export async function openArtifacts(settings: ClusterSettings): Promise<ArtifactStore> {
  if (settings.artifacts === undefined) {
    throw new Failure("bug", "k3s: a testbed without artifacts was let through");
  }
  const store = await readArtifacts(settings.artifacts);
  const { istio } = store.artifacts;
  if (settings.mesh === "istio" && istio === undefined) {
    throw new Failure("document", `${store.document}: has no istio, and the cluster wants a mesh`, {
      hint: "add istio and its files, or set mesh: none in the testbed document",
    });
  }
  await completeArtifacts(store);
  return store;
}

/** Files by name, as installers of clusters take them. */
export function filesOfArtifacts({
  artifacts,
  directory,
}: ArtifactStore): ReadonlyMap<string, ClusterFile> {
  return new Map(
    artifacts.files.map(({ name, role, sha256 }) => [
      name,
      { name, source: path.join(directory, name), digest: sha256, executable: role === "k3s" },
    ]),
  );
}

/** Path of the file with this role. */
export function pathOfArtifact(
  { artifacts, directory, document }: ArtifactStore,
  role: ArtifactRole,
): string {
  const file = artifactOf(artifacts, role);
  if (file === undefined) throw new Failure("bug", `${document}: no file with role ${role}`);
  return path.join(directory, file.name);
}

/** Text of the file with this role. */
export function textOfArtifact(store: ArtifactStore, role: ArtifactRole): string {
  return readFileSync(pathOfArtifact(store, role), "utf8");
}
