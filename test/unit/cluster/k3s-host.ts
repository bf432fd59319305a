/**
 * A host for k3s's scripts: a directory in the place of `/`, and stand-ins that behave as k3s,
 * systemd and the network tools are documented to.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { renderHostScript } from "../../../hosts/runner.ts";
import { directoryOf } from "../../../hosts/cluster/files.ts";
import { k3sInstaller } from "../../../hosts/cluster/k3s/installer.ts";
import { type BashResult, override, runBash } from "../../support/bash.ts";
import { k3sArtifacts, k3sPlace } from "./k3s-example.ts";

const hash = "b".repeat(64);
export const fullToken = `K10${hash}::server:secret-of-the-test`;

/** Images that the stand-in finds in the archives, unless a test takes one away. */
const images = [
  "quay.io/tigera/operator:v1.30.9",
  ...["apiserver", "cni", "kube-controllers", "node", "typha"].map(
    (part) => `docker.io/calico/${part}:v3.26.4`,
  ),
  "docker.io/istio/pilot:1.20.2",
  "docker.io/istio/proxyv2:1.20.2",
];

/**
 * `k3s` as far as our scripts use it. State lies in files below the host's directory: `images`,
 * `nodes`, `api` (absent: it does not answer).
 */
const program = `#!/bin/bash
at=$(dirname "$0")/../../..
case $1 in
  --version) echo 'k3s version v1.28.5+k3s1 (5b2d1271)' ;;
  ctr)
    case $5,\${6:-} in
      list,--quiet) cat "$at/images" ;;
      list,*)
        echo 'REF TYPE DIGEST SIZE'
        sed "s,$, application/vnd.oci.image.manifest.v1+json sha256:0123 1.0 MiB," "$at/images" ;;
      tag,*) echo "$8" >>"$at/images" ;;
    esac ;;
  kubectl)
    [ -e "$at/api" ] || { echo 'The connection to the server was refused' >&2; exit 1; }
    case "$*" in
      *readyz*) echo ok ;;
      *kube-system*) echo 4f2a5f0e-0000-4000-8000-000000000001 ;;
      *nodeInfo.kubeletVersion*) echo v1.28.5+k3s1 ;;
      *nodeInfo*) echo as-the-node-says ;;
      *allocatable*) echo 4 ;;
      *"get node"*) grep "^$6 " "$at/nodes" || { echo "nodes \\"$6\\" not found" >&2; exit 1; } ;;
    esac ;;
esac
`;

/**
 * Functions in the place of programs. A started k3s makes what the real one makes: the token in
 * full form, a kubeconfig, and what Calico's pods add; `broken` holds the journal of one that fails.
 */
const standIns = `
at=$k3s_base
proc=$at/proc
wait_seconds=1 join_seconds=1 end_seconds=2 poll_seconds=0.05
started() {
  [ -e "$k3s_units/k3s.service" ] || [ -e "$k3s_units/k3s-agent.service" ] || return 1
  [ ! -e "$at/broken" ]
}
timeout() { shift; "$@"; }
systemctl() {
  case "$1 \${2:-}" in
    restart*)
      ! started || {
        mkdir -p "$k3s_data/k3s/server/db" "$k3s_data/k3s/agent" "$at"/var/lib/{kubelet,calico} \\
          "$at"/run/k3s "$at"/etc/cni/net.d "$at"/opt/cni/bin "$at"/etc/rancher/node
        [ "$unit" != k3s ] || [ -s "$server_token" ] || echo '${fullToken}' >"$server_token"
        touch "$at/api" "$at"/etc/cni/net.d/{10-calico.conflist,calico-kubeconfig}
        printf '    server: https://127.0.0.1:6443\\n' >"$kubeconfig"
        echo 1 >"$at/proc/sys/vm/overcommit_memory"
        printf '%s\\n' '5: cali1234@if3: <UP>' '6: vxlan.calico: <UP>' >>"$at/links"
        echo 'blackhole 10.42.1.0/26' >"$at/routes"
        printf '%s\\n' ':KUBE-SERVICES - [0:0]' ':cali-FORWARD - [0:0]' \\
          '-A FORWARD -m comment --comment "cali:wUHh" -j cali-FORWARD' >>"$at/rules"
        echo "tmpfs $at/var/lib/kubelet/pods/x tmpfs rw 0 0" >>"$at/proc/self/mounts"
        echo 'br_netfilter 32768 0 - Live 0x0' >>"$at/proc/modules"
      } ;;
    show*) if started; then echo active; else echo activating; fi ;;
    is-active*) started ;;
  esac
}
journalctl() { cat "$at/broken"; }
ss() { ! grep -q "\${2##*:}" "$at/listeners" 2>/dev/null || echo LISTEN; }
ip() {
  case "$*" in
    *'link show') cat "$at/links" ;;
    *'link delete'*) [ ! -e "$at/stuck" ] && sed -i "/: \${!#}[:@]/d" "$at/links" ;;
    *'route show proto 80') cat "$at/routes" 2>/dev/null ;;
    *'route delete'*) rm -f "$at/routes" ;;
  esac
}
iptables-save() { printf '*filter\\n'; cat "$at/rules"; printf 'COMMIT\\n'; }
iptables-restore() { grep -E '^(:|-A )' >"$at/rules.new" || :; mv "$at/rules.new" "$at/rules"; }
ip6tables-save() { :; }
umount() { sed -i "\\\\# \${!#} #d" "$at/proc/self/mounts"; }
modprobe() { sed -i "/^\${!#} /d" "$at/proc/modules"; }
ipset() { :; }
`;

export type FakeHost = {
  readonly base: string;
  /** Runs `create` or `remove` of a task, with what other tasks have printed. */
  readonly run: (
    task: string,
    verb: "create" | "remove",
    variables?: Readonly<Record<string, string>>,
  ) => BashResult;
  readonly write: (name: string, text: string) => void;
  readonly read: (name: string) => string;
  readonly has: (name: string) => boolean;
};

/** A host as it was before: an NIC, a firewall rule of somebody else, the files copied. */
export function fakeHost(base: string): FakeHost {
  const place = k3sPlace();
  const { tasks, files } = k3sInstaller.install(place);
  const copied = files["gateway"] ?? [];
  const at = (name: string) => path.join(base, name);
  const write = (name: string, text: string) => {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  };
  const directory = at(directoryOf(copied));
  for (const { name } of k3sArtifacts().files) {
    write(path.relative(base, path.join(directory, name)), name === "k3s" ? program : name);
  }
  chmodSync(path.join(directory, "k3s"), 0o755);
  write("links", "1: lo: <UP>\n2: ens1f0np0: <UP>\n");
  write("rules", ":INPUT ACCEPT [5:300]\n-A INPUT -p tcp --dport 22 -j ACCEPT\n");
  write("images", images.map((name) => `${name}\n`).join(""));
  write("nodes", "gateway 198.18.0.20\nclient 198.18.0.10\nserver 198.18.0.30\n");
  write("proc/self/mounts", "ext4 / ext4 rw 0 0\n");
  write("proc/modules", "");
  write("proc/sys/vm/overcommit_memory", "0\n");
  mkdirSync(at("sys/fs/cgroup"), { recursive: true });
  return {
    base,
    run: (id, verb, variables = {}) => {
      const task = tasks.find((candidate) => candidate.id === id);
      if (task === undefined) throw new Error(`no task ${id}`);
      const script = renderHostScript(task.script, { ...variables, k3s_base: base });
      return runBash(override(script, `directory=${directory}`, standIns), verb);
    },
    write,
    read: (name) => readFileSync(at(name), "utf8"),
    has: (name) => existsSync(at(name)),
  };
}
