/** The libraries of the version table: npm packages and Go modules that our own code links. */
import type { Entry, Origin } from "./version-entry.ts";

const npm: Origin = { how: "npm" };
const both = ["lab", "era"] as const;

const library = <N extends string>(name: N, version: string, why: string) =>
  ({ name, version, sets: both, why, origin: npm }) as const;

export const libraries = [
  library("@observablehq/plot", "0.6.17", "plots of the report page, drawn without a browser"),
  library("@pulumi/command", "1.2.1", "types of the command provider"),
  library("@pulumi/kubernetes", "4.25.0", "types of the Kubernetes provider"),
  library("@pulumi/pulumi", "3.248.0", "the Node.js SDK of the engine"),
  library(
    "@stdlib/stats-base-dists-binomial-cdf",
    "0.2.3",
    "how many requests over an objective are too many",
  ),
  library("@stdlib/stats-base-dists-normal-cdf", "0.3.1", "trend test, BCa interval"),
  library("@stdlib/stats-base-dists-normal-quantile", "0.3.1", "BCa interval"),
  library("@stdlib/stats-base-dists-t-cdf", "0.2.3", "p values for Holm and the order check"),
  library("@stdlib/stats-base-dists-t-quantile", "0.2.3", "t quantiles of the intervals"),
  library("hdr-histogram-js", "3.0.1", "latency histograms"),
  library("linkedom", "0.18.15", "the document that plots are drawn in"),
  library("tar-stream", "3.2.2", "writes the tar files of container images"),
  library("tsx", "4.23.15", "runs TypeScript on Node 20"),
  library("yaml", "2.9.1", "documents with positions"),
  library("zod", "4.6.7", "schemas of the documents"),
  library("zx", "8.8.5", "spawning without shell strings"),
  library("@eslint/js", "9.39.1", "lint rules"),
  library("@types/node", "20.19.25", "types of Node"),
  library("eslint", "9.39.1", "lint"),
  library("fast-check", "4.11.0", "property tests"),
  library("playwright-core", "1.65.1", "drives Chromium in the tests of the report page"),
  library("prettier", "3.10.1", "formatting"),
  library("ro-crate", "3.7.2", "reads back the RO-Crate of a bundle in tests, and validates it"),
  library("typescript", "6.0.3", "type check"),
  library("typescript-eslint", "8.74.0", "typed lint rules"),
] as const satisfies readonly Entry[];

const goLibrary = (name: string, version: string, directory: string, why: string): Entry => ({
  name,
  version,
  sets: both,
  why,
  origin: { how: "go library", modules: [directory] },
});

export const goLibraries: readonly Entry[] = [
  goLibrary("github.com/golang-jwt/jwt/v5", "5.3.1", "service", "makes and verifies tokens"),
  goLibrary("golang.org/x/sys", "0.30.0", "service", "kernel timers and clocks"),
  goLibrary(
    "github.com/pulumi/pulumi/sdk/v3",
    "3.248.0",
    "tools/go/pulumi",
    "protocol of the language host and the command provider",
  ),
  goLibrary("github.com/blang/semver", "3.5.1+incompatible", "tools/go/pulumi", "plugin version"),
  goLibrary(
    "github.com/google/shlex",
    "0.0.0-20191202100458-e7afc7fbc510",
    "tools/go/pulumi",
    "splits the option nodeargs",
  ),
  goLibrary("github.com/pkg/sftp", "1.13.10", "tools/go/pulumi", "copies files to hosts"),
  goLibrary("golang.org/x/crypto", "0.53.0", "tools/go/pulumi", "SSH client"),
  goLibrary("google.golang.org/grpc", "1.81.1", "tools/go/pulumi", "transport of plugins"),
  goLibrary("google.golang.org/protobuf", "1.36.11", "tools/go/pulumi", "messages of plugins"),
];
