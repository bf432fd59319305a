# shellcheck shell=bash
# Puts k3s on a host. Needs the functions of lease.sh and k3s-removal.sh, and `host`, `directory`
# (of the files), `unit` (k3s or k3s-agent), `program`, `address`, `api_port`, `wait_seconds`,
# `join_seconds`, the arrays `archives` and `images`, and `k3s_configuration` and `k3s_unit`, which
# print those files.

token_file=$k3s_etc/k3s/cluster-token
kubeconfig=$k3s_etc/k3s/k3s.yaml
server_token=$k3s_data/k3s/server/token
poll_seconds=0.5

kubectl() { timeout 20 "$k3s_binary" kubectl --kubeconfig "$kubeconfig" "$@"; }

# A cluster of somebody else is named, and nothing is changed.
k3s_refuse_foreign() {
  local found=() path name port
  [ ! -e "$k3s_note/before" ] || return 0
  for path in "$k3s_binary" "$k3s_etc" "$k3s_data" "$base/var/lib/kubelet" \
    "$base/etc/kubernetes" "$base/usr/local/bin/k3s-uninstall.sh" \
    "$base/usr/local/bin/k3s-agent-uninstall.sh"; do
    [ ! -e "$path" ] || found+=("$path")
  done
  for name in k3s k3s-agent rke2-server rke2-agent kubelet; do
    for path in "$base"/{etc,usr/lib,run}/systemd/system/"$name.service"; do
      [ ! -e "$path" ] || found+=("$path")
    done
  done
  for port in "$api_port" 10250; do
    [ -z "$(ss -Hltn "sport = :$port")" ] || found+=("a listener on port $port")
  done
  [ "${#found[@]}" -eq 0 ] ||
    refuse "cluster: host $host already has one that is not ours, found $(
      IFS=,
      sed 's/,/, /g' <<<"${found[*]}")" \
      "remove it by its own means, e.g. k3s-uninstall.sh, or name another host"
}

# Links where the directories share a file system: the archives are large, and the data directory
# is emptied when k3s goes.
k3s_place_files() {
  local name images=$k3s_data/k3s/agent/images
  mkdir -p "${k3s_binary%/*}"
  ln --force "$directory/$program" "$k3s_binary" 2>/dev/null ||
    cp --remove-destination "$directory/$program" "$k3s_binary"
  chmod 0755 "$k3s_binary"
  [ "${#archives[@]}" -gt 0 ] || return 0
  mkdir -p "$images"
  for name in "${archives[@]}"; do
    ln --force "$directory/$name" "$images/$name" 2>/dev/null ||
      cp --remove-destination "$directory/$name" "$images/$name"
  done
}

# The note of what was there before comes first, so that whatever follows is known as ours.
k3s_claim() {
  k3s_refuse_foreign
  k3s_remember
}

k3s_install() {
  k3s_claim
  umask 077
  k3s_place_files
  mkdir -p "$k3s_etc/k3s"
  k3s_configuration >"$k3s_etc/k3s/config.yaml"
}

# The server makes the secret itself, once. Without it the datastore of a cluster cannot be read.
k3s_server_token() {
  [ ! -s "$token_file" ] || return 0
  if [ -s "$server_token" ]; then
    cat "$server_token" >"$token_file"
  elif [ -e "$k3s_data/k3s/server/db" ]; then
    refuse "cluster token: lost on host $host, neither $token_file nor $server_token is there" \
      "pulumi destroy -s cluster, then pulumi up -s cluster" || return 1
  else
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$token_file"
  fi
}

k3s_agent_token() { # TOKEN
  [[ $1 =~ ^K10[0-9a-f]{64}::[^:]+:.+$ ]] ||
    refuse "cluster token: not the full form on host $host, K10HASH::server:SECRET expected" \
      "pulumi up -s cluster" || return 1
  printf '%s\n' "$1" >"$token_file"
}

k3s_start() {
  local state made deadline=$((SECONDS + wait_seconds))
  made=$({ k3s_configuration; k3s_unit; cat "$token_file"; echo "$directory"; } | sha256sum)
  if [ "$(cat "$k3s_note/started" 2>/dev/null)" = "$made" ] &&
    systemctl is-active --quiet "$unit.service"; then
    return 0
  fi
  mkdir -p "$k3s_units"
  (umask 022 && k3s_unit >"$k3s_units/$unit.service")
  systemctl daemon-reload
  systemctl enable "$unit.service" 2>/dev/null
  # Without waiting: a start that never ends would not say why.
  systemctl restart --no-block "$unit.service"
  while :; do
    state=$(systemctl show --property=ActiveState --value "$unit.service")
    [ "$state" != active ] || break
    ((SECONDS < deadline)) || k3s_report "$state" || return 1
    sleep "$poll_seconds"
  done
  printf '%s\n' "$made" >"$k3s_note/started"
}

# Says why in our words where k3s's are known; its last lines follow, without secrets.
k3s_report() { # STATE
  local lines reason
  lines=$(journalctl --no-pager --output=cat --lines=40 --unit="$unit.service" 2>&1 |
    sed -E 's/K10[0-9a-f]+::[^" ]+/K10.../g' || :)
  case $lines in
    *'token CA hash does not match'* | *'not authorized'* | *'401 Unauthorized'* | \
      *'invalid token'* | *'token does not match'*) reason='the server refuses its token' ;;
    *'bootstrap data already found and encrypted with different token'*)
      reason='the datastore was made with another token' ;;
    *'Node password rejected'*) reason='the server knows another host of that name' ;;
    *'connection refused'* | *'no route to host'* | *'i/o timeout'* | \
      *'deadline exceeded'*) reason="the server does not answer on port $api_port" ;;
    *'differs from state checkpoint'* | *'cpu_manager_state'*)
      reason='kubelet found the CPU state of another layout' ;;
    *) reason='for a reason that k3s gives' ;;
  esac
  printf 'unit %s on host %s: %s after %s s, active expected, %s\n' \
    "$unit.service" "$host" "${1:-unknown}" "$wait_seconds" "$reason" >&2
  tail -n 8 <<<"$lines" | sed 's/^/    /' >&2
  printf '  next: %s\n' \
    'mend that, then pulumi up -s cluster; or take it off: pulumi destroy -s cluster' >&2
  return 1
}

k3s_wait_for_api() {
  local answer='' deadline=$((SECONDS + wait_seconds))
  until answer=$(kubectl get --raw /readyz 2>&1) && [ "$answer" = ok ]; do
    ((SECONDS < deadline)) ||
      refuse "cluster: API server on host $host is not ready after $wait_seconds s: $(
        tail -n 1 <<<"$answer")" "journalctl -u k3s on $host" || return 1
    sleep "$poll_seconds"
  done
}

k3s_print_token() {
  [[ $(cat "$server_token" 2>/dev/null) =~ ^K10[0-9a-f]{64}::server:.+$ ]] ||
    refuse "cluster token: lost on host $host, $server_token does not hold the full form" \
      "pulumi destroy -s cluster, then pulumi up -s cluster" || return 1
  cat "$server_token"
}

# k3s writes it for use on the host itself.
k3s_print_kubeconfig() {
  [ -s "$kubeconfig" ] ||
    refuse "cluster: no kubeconfig on host $host, $kubeconfig expected" \
      "pulumi up -s cluster" || return 1
  sed -E "s#^( *server: ).*#\1https://$address:$api_port#" "$kubeconfig"
}

# A line `name:` and the value behind a tab, for each fact.
k3s_fact() { printf '%s:\n\t%s\n' "$1" "$2"; } # NAME VALUE

k3s_shown() { # KIND NAME FIELD
  local seen
  if ! seen=$(kubectl get "$1" "$2" -o "jsonpath=$3" 2>&1) || [ -z "$seen" ]; then
    refuse "cluster: host $host does not tell $3 of $1 $2, found: $(tail -n 1 <<<"$seen")" \
      "journalctl -u k3s on $host" || return 1
  fi
  printf '%s\n' "$seen"
}

k3s_cluster_facts() {
  local version identifier
  version=$("$k3s_binary" --version) || return 1
  identifier=$(k3s_shown namespace kube-system '{.metadata.uid}') || return 1
  k3s_fact cluster-identifier "$identifier"
  k3s_fact version-k3s "$(sed -n 's/^k3s version v\([^ ]*\).*/\1/p' <<<"$version")"
}


# Waits until a host is known as a node at the address that it should have.
k3s_node() { # NAME ADDRESS
  local seen='' deadline=$((SECONDS + join_seconds))
  local shown='{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address}'
  until seen=$(kubectl get node "$1" -o "jsonpath=$shown" 2>&1) && [ "$seen" = "$1 $2" ]; do
    ((SECONDS < deadline)) ||
      refuse "node $1: has not joined the cluster after $join_seconds s, $2 expected, found: $(
        tail -n 1 <<<"$seen")" "journalctl -u k3s-agent on $1" || return 1
    sleep "$poll_seconds"
  done
  local kubelet runtime allocatable
  kubelet=$(k3s_shown node "$1" '{.status.nodeInfo.kubeletVersion}') || return 1
  runtime=$(k3s_shown node "$1" '{.status.nodeInfo.containerRuntimeVersion}') || return 1
  allocatable=$(k3s_shown node "$1" '{.status.allocatable.cpu}') || return 1
  k3s_fact kubelet-version "$kubelet"
  k3s_fact container-runtime "$runtime"
  k3s_fact allocatable-cpu "$allocatable"
  k3s_fact kubelet-directory /var/lib/kubelet
}

k3s_images() { timeout 60 "$k3s_binary" ctr --namespace k8s.io images "$@"; }

# Pods name our own images by digest, and archives name them by tag only.
k3s_name_by_digest() {
  local name digest
  while read -r name _ digest _; do
    case $name in
      ztbench.local/*@*) ;;
      ztbench.local/*) k3s_images tag --force "$name" "${name%:*}@$digest" >/dev/null ;;
    esac
  done < <(k3s_images list)
}

# Every image must have come with an archive: on a host without registries, a pod would wait for it
# for ever.
k3s_require_images() {
  [ "${#images[@]}" -gt 0 ] || return 0
  local there name missing=() deadline=$((SECONDS + wait_seconds))
  while :; do
    there=$(k3s_images list --quiet 2>&1) || there=''
    missing=()
    for name in "${images[@]}"; do grep -qxF "$name" <<<"$there" || missing+=("$name"); done
    [ "${#missing[@]}" -gt 0 ] || return 0
    ((SECONDS < deadline)) || break
    sleep "$poll_seconds"
  done
  refuse "images on host $host: in no archive of the air-gap directory: ${missing[*]}" \
    "add an archive that holds them to the artifacts document, role images"
}
