/** What an entry of the version table says: a program or library, its version, its origin. */

/**
 * `lab`: what the package registries serve. `era`: what the articles ran on bare metal. `current`:
 * what its makers offer now, for the question "and today?".
 */
export const versionSets = ["lab", "era", "current"] as const;
export type VersionSet = (typeof versionSets)[number];

export type Origin =
  /** Built here from the Go module of ours in `directory`, whose go.sum fixes every byte. */
  | {
      readonly how: "go module";
      readonly module: string;
      readonly directory: string;
      /** Version of the module, where releases of the program are named otherwise. */
      readonly moduleVersion?: string;
    }
  /** `member` of a wheel on PyPI, fixed by the wheel's digest. */
  | {
      readonly how: "PyPI wheel";
      readonly project: string;
      readonly platform: string;
      readonly sha256: string;
      readonly member: string;
    }
  /** A jar, fixed by its digest. */
  | {
      readonly how: "Maven artefact";
      readonly group: string;
      readonly artifact: string;
      readonly sha256: string;
    }
  | { readonly how: "npm" }
  /** Linked into programs built here; `modules` are the directories whose go.mod requires it. */
  | { readonly how: "go library"; readonly modules: readonly string[] }
  /** Fetched by the Pulumi CLI where it can be, else the stand-in in `directory`. */
  | { readonly how: "Pulumi plugin, else stand-in"; readonly directory: string }
  /** Own code in `directory`, because upstream's program is not published as a Go module. */
  | { readonly how: "stand-in"; readonly directory: string }
  /** Named so that records can be checked; this installer does not fetch it. */
  | { readonly how: "official release"; readonly source: string; readonly digest: typeof noDigest }
  /** Buildable from a Go module, not yet wired into this installer. */
  | { readonly how: "go module, not built yet"; readonly module: string }
  /** Must be on the machine already; the version is the least that will do. */
  | { readonly how: "machine"; readonly source: string };

export const noDigest = "not pinned here: no digest known";

export type Entry = {
  readonly name: string;
  /** Exact, except for `machine`, where it is a minimum. */
  readonly version: string;
  readonly sets: readonly VersionSet[];
  /** The release that a version without a name of its own is the commit of. */
  readonly release?: string;
  /** Why it is here, one clause. */
  readonly why: string;
  readonly origin: Origin;
};
