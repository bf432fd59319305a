/**
 * The artifacts document: every third-party file that a k3s cluster is made of. A digest is never
 * optional, so nothing can be installed that was not looked at before.
 */
import { z } from "zod";

/** What a file is for. */
export const artifactRoles = [
  /** The program `k3s`. */
  "k3s",
  /** Images that k3s itself needs, an archive of the same release. */
  "k3s-images",
  /** Further images: Calico, Istio, our own. */
  "images",
  /** Manifest of Calico's operator, with its custom resource definitions. */
  "calico-operator",
  /** Helm chart `base` of Istio. */
  "istio-base",
  /** Helm chart `istiod` of Istio. */
  "istiod",
] as const;
export type ArtifactRole = (typeof artifactRoles)[number];

export const artifactSchema = z.strictObject({
  /** Its name in the directory of the document. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/, "must be a file name without a directory"),
  role: z.enum(artifactRoles),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "must be the SHA-256 of the file, 64 hexadecimal digits"),
  /** Where it is fetched from while it is not in the directory; absent for an air gap. */
  url: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).optional(),
});
export type Artifact = z.infer<typeof artifactSchema>;

const version = (example: string) =>
  z.string().regex(/^\d+\.\d+\.\d+([+-][0-9A-Za-z.-]+)?$/, `must be a version such as ${example}`);

export const artifactsSchema = z
  .strictObject({
    schema: z.literal("ztbench/artifacts/1"),
    /** Versions of the files, without a leading v. */
    k3s: version("1.28.5+k3s1"),
    calico: version("3.26.4"),
    istio: version("1.20.2").optional(),
    /** `archives`: hosts pull nothing, every image is in one of the files. */
    imagesFrom: z.enum(["archives", "registry"]),
    /** Lets releases pass that their makers have not tested together. */
    allowUntested: z.boolean().default(false),
    files: z.array(artifactSchema).min(1),
  })
  .superRefine(({ files, imagesFrom, istio }, context) => {
    const complain = (path: (string | number)[], message: string) => {
      context.addIssue({ code: "custom", path: ["files", ...path], message });
    };
    files.forEach((file, index) => {
      const first = files.findIndex((other) => other.name === file.name);
      if (first !== index) complain([index, "name"], `is already used by files[${first}]`);
      const sameRole = files.findIndex((other) => other.role === file.role);
      if (file.role !== "images" && sameRole !== index) {
        complain([index, "role"], `role ${file.role} is already held by files[${sameRole}]`);
      }
    });
    const wanted: readonly (readonly [ArtifactRole, boolean])[] = [
      ["k3s", true],
      ["k3s-images", imagesFrom === "archives"],
      ["calico-operator", true],
      ["istio-base", istio !== undefined],
      ["istiod", istio !== undefined],
    ];
    for (const [role, isWanted] of wanted) {
      const isThere = files.some((file) => file.role === role);
      if (isWanted && !isThere) complain([], `a file with role ${role} is missing`);
    }
  });
export type Artifacts = z.infer<typeof artifactsSchema>;

/** The only file with a role; undefined if there is none. */
export function artifactOf(artifacts: Artifacts, role: ArtifactRole): Artifact | undefined {
  return artifacts.files.find((file) => file.role === role);
}
