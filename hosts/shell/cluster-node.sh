# shellcheck shell=bash
# A node of our own cluster. Needs `host`, `keys`, the directory of the node's keys, and `root`,
# that of all else.

# What a container runtime, a kubelet and the network of pods leave outside of the root.
node_places=(/run/ztcluster /run/containerd /var/lib/cni /var/lib/kubelet
  /var/log/pods /var/log/containers)

# Makes the keys, unless they are there, and prints requests: name, names or `-`, base64.
# Needs `identities`, which prints name, subject and subjectAltName or `-` for each.
node_keys_create() {
  local name subject names
  umask 077
  mkdir -p "$keys"
  while IFS=$'\t' read -r name subject names; do
    if [ ! -e "$keys/$name.csr" ]; then
      openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$keys/$name.key" \
        2>/dev/null
      openssl req -new -key "$keys/$name.key" -subj "$subject" -out "$keys/$name.part"
      mv "$keys/$name.part" "$keys/$name.csr"
    fi
    printf '%s %s %s\n' "$name" "$names" "$(base64 -w0 "$keys/$name.csr")"
  done < <(identities)
}

node_keys_remove() {
  rm -rf "$keys"
  rmdir --ignore-fail-on-non-empty "${keys%/*}" 2>/dev/null || :
}

# Foreign containers would be taken for ours, and go with them.
node_must_be_free() {
  local place program
  for program in containerd ctr runc ipset conntrack iptables nft; do
    command -v "$program" >/dev/null ||
      fail "$program: not installed on this host, a node needs it" './ztbench lab up --kubernetes'
  done
  for place in "${node_places[@]}"; do
    [ ! -e "$place" ] ||
      fail "$place: is there already, made by another container runtime or cluster" \
        "remove that cluster from $host first"
  done
}

# Needs `certificates` as the signing has printed them, `ca` in base64, and `server`.
node_trust_make() {
  local name certificate
  base64 -d <<<"$ca" >"$root/ca.crt"
  while read -r name certificate; do
    base64 -d <<<"$certificate" >"$root/$name.crt"
    cat >"$root/$name.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "$server", certificate-authority: ca.crt}}]
users: [{name: $name, user: {client-certificate: $name.crt, client-key: $keys/$name.key}}]
contexts: [{name: cluster, context: {cluster: cluster, user: $name}}]
current-context: cluster
END
  done <<<"$certificates"
}

# The archive knows the name of the sandbox image. Needs `sandbox_archive`.
node_runtime_make() {
  local name
  name=$(tar -xOf "$sandbox_archive" index.json |
    grep -o '"io.containerd.image.name": *"[^"]*"' | sed -n '1s/.*"\([^"]*\)"$/\1/p')
  [ -n "$name" ] ||
    fail "${sandbox_archive##*/}: no archive of a named image" 'make the images again'
  sed -i "s|SANDBOX_IMAGE|$name|" "$root/containerd.toml"
  # Where everybody looks for it.
  ln -s "$root/kubelet" /var/lib/kubelet
}

# Remembers what the packet filter and the kernel were like, and lets pods through. Needs
# `sysctls` and `routes`, which print lines of KEY VALUE and of words for `ip route`.
node_network_make() {
  local key value route
  # The program of that name leaves it behind.
  [ -e /run/mount ] || touch "$root/mounts.none"
  nft list tables >"$root/tables.before"
  ipset list -name >"$root/sets.before"
  while read -r key value; do
    printf '%s %s\n' "$key" "$(sysctl -n "$key")" >>"$root/sysctls.before"
    sysctl -q -w "$key=$value"
  done < <(sysctls)
  # shellcheck disable=SC2086
  while read -r route; do ip route add $route; done < <(routes)
}

node_network_undo() {
  local key value route table set
  while read -r key value; do
    sysctl -q -w "$key=$value"
  done < <(cat "$root/sysctls.before" 2>/dev/null)
  # shellcheck disable=SC2086
  while read -r route; do ip route del $route 2>/dev/null || :; done < <(routes)
  ip link delete cni0 2>/dev/null || :
  # Sandboxes of pods are gone by now, and with them the other ends.
  [ -e "$root/tables.before" ] || return 0
  while read -r table; do
    if grep -qxF "$table" "$root/tables.before"; then
      node_filter_clean "${table##* }"
    else
      # shellcheck disable=SC2086
      nft delete $table 2>/dev/null || :
    fi
  done < <(nft list tables)
  for set in $(ipset list -name); do
    grep -qxF "$set" "$root/sets.before" || ipset destroy "$set" 2>/dev/null || :
  done
}

# Of a table that was there before, only the chains of a cluster go.
node_filter_clean() { # TABLE
  case $1 in nat | filter | mangle | raw) ;; *) return 0 ;; esac
  iptables-save -t "$1" | grep -v -e KUBE- -e CNI- | iptables-restore --table "$1" || :
}

# Ends all pods at once, whatever state the runtime is in, and takes their groups away.
node_pods_undo() {
  local group=/sys/fs/cgroup/kubepods deadline=$((SECONDS + 5))
  [ ! -e "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill" || :
  [ -x "$root/view" ] || return 0
  # shellcheck disable=SC2016
  until unshare --mount --propagation private "$root/view" bash -c '
      find /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods -depth -type d \
        -exec rmdir {} + 2>/dev/null
      for group in /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods; do
        [ ! -d "$group" ] || exit 1
      done'; do
    ((SECONDS < deadline)) || break
    sleep 0.05
  done
}

node_undo() {
  local place
  node_pods_undo
  node_network_undo
  for place in "${node_places[@]}"; do rm -rf "$place"; done
  [ ! -e "$root/mounts.none" ] || rm -rf /run/mount
}

node_left() {
  local place
  for place in "${node_places[@]}" /sys/fs/cgroup/kubepods; do
    [ ! -e "$place" ] || echo "$place"
  done
  [ ! -e /sys/class/net/cni0 ] || echo 'link cni0'
  ! nft list ruleset | grep -q -m1 -o 'chain KUBE-[A-Z-]*' || echo 'chains of a cluster'
}

# Waits until the node is Ready, then says what it is. Needs `programs`, the directory of our
# programs, and `wait_seconds`.
node_facts_create() {
  local deadline=$((SECONDS + wait_seconds)) said=''
  local kubectl=("$programs/kubectl" --kubeconfig "$root/kubelet.kubeconfig" --request-timeout 5s)
  local ready='{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'
  until said=$("${kubectl[@]}" get node "$host" -o jsonpath="$ready" 2>&1) && [[ $said == True* ]]; do
    ((SECONDS < deadline)) || node_refuse "$said" || return 1
    sleep 0.1
  done
  node_facts "${kubectl[@]}"
}

node_refuse() { # SAID
  local last
  last=$(journalctl --no-pager --output=cat --unit=ztcluster-kubelet --lines=400 2>/dev/null |
    grep '^[EF][0-9]' | tail -n 1 || :)
  refuse "node $host: has not joined the cluster after $wait_seconds s, Ready expected: ${1##*$'\n'}${last:+; kubelet says: $last}" \
    "journalctl -u ztcluster-kubelet on $host"
}

node_facts() { # KUBECTL...
  local info='{.status.nodeInfo' state=$root/kubelet/cpu_manager_state
  fact kubelet-version "$@" get node "$host" -o jsonpath="$info.kubeletVersion}"
  fact container-runtime "$@" get node "$host" -o jsonpath="$info.containerRuntimeVersion}"
  fact allocatable-cpu "$@" get node "$host" -o jsonpath='{.status.allocatable.cpu}'
  fact cpu-manager-policy sed -n 's/.*"policyName":"\([^"]*\)".*/\1/p' "$state"
  fact cpu-manager-default sed -n 's/.*"defaultCpuSet":"\([^"]*\)".*/\1/p' "$state"
  fact kubelet-directory echo "$root/kubelet"
  fact kube-proxy-version "$programs/kube-proxy" --version
  fact kube-router-version bash -c '"$1" --version 2>&1 | tail -n 1' version "$programs/kube-router"
  fact runc-version bash -c 'runc --version | sed -n 1p'
  fact packages dpkg-query --show -f '${Package} ${Version} ' containerd runc \
    containernetworking-plugins
}
