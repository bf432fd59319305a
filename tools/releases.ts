/**
 * Official releases of the cluster's parts that this installer does not fetch: what is current.
 * Seen on the makers' own pages of releases on 2026-11-30; a newer one may be there by now.
 */
import { type Entry, noDigest, type Origin } from "./version-entry.ts";

const current = ["current"] as const;

const official = (source: string): Origin => ({
  how: "official release",
  source,
  digest: noDigest,
});

export const currentReleases = {
  "envoy-current": {
    name: "envoy",
    version: "1.39.3",
    sets: current,
    why: "gateway; of 2026-10-06",
    origin: official("https://github.com/envoyproxy/envoy/releases"),
  },
  "k3s-current": {
    name: "k3s",
    version: "1.35.6+k3s1",
    sets: current,
    why: "the cluster; the newest line that both Calico and Istio test",
    origin: official("https://github.com/k3s-io/k3s/releases"),
  },
  "calico-current": {
    name: "calico",
    version: "3.32.4",
    sets: current,
    why: "pod network and network policy; of 2026-11-11",
    origin: official("https://github.com/projectcalico/calico/releases"),
  },
  "istio-current": {
    name: "istio",
    version: "1.30.4",
    sets: current,
    why: "mesh with mutual TLS; of 2026-08-27, the newest whose Kubernetes versions are known",
    origin: official("https://github.com/istio/istio/releases"),
  },
} as const satisfies Record<string, Entry>;
