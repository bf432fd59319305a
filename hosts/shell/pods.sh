# shellcheck shell=bash
# Finds the containers of pods on a host and says what the kernel made of them. Expects root, the
# directory of links to network namespaces; proc and kubelet, which tests set to others.

proc=${proc:-/proc}
kubelet=${kubelet:-/var/lib/kubelet}

# The oldest process whose control group is named after the container. Its number, or nothing.
container_process() { # CONTAINER-ID
  grep -ls "$1" "$proc"/[0-9]*/cgroup | sed -E 's|.*/([0-9]+)/cgroup$|\1|' | sort -n | head -n 1 || :
}

# Path of the group below the root of a hierarchy: of the old CPU accounting where containers are
# in it, else of the unified one.
container_group() { # PROCESS CONTAINER-ID
  awk -F: -v id="$2" '
    index($3, id) && $2 ~ /(^|,)cpuacct(,|$)/ { old = $3 }
    index($3, id) && $2 == "" { unified = $3 }
    END { print old != "" ? old : unified }
  ' "$proc/$1/cgroup"
}

allowed_cpus() { # PROCESS
  awk '$1 == "Cpus_allowed_list:" { print $2 }' "$proc/$1/status"
}

# CPUs that the static CPU manager gave to a container for itself, or a dash.
exclusive_cpus() { # POD-UID CONTAINER
  local state='' entries
  [ ! -r "$kubelet/cpu_manager_state" ] || read -r -d '' state <"$kubelet/cpu_manager_state" || :
  entries=${state#*'"entries":'}
  if [[ $entries == *"\"$1\":{"* ]]; then
    entries=${entries#*"\"$1\":{"}
    entries=${entries%%\}*}
    if [[ $entries =~ \"$2\":\"([0-9,-]+)\" ]]; then
      echo "${BASH_REMATCH[1]}"
      return
    fi
  fi
  echo -
}

# Where the runtime of a container has the control groups mounted: its parent is the runtime's.
link_groups() { # PROCESS
  local parent
  parent=$(awk '$1 == "PPid:" { print $2 }' "$proc/$1/status")
  ln -sfn "$proc/$parent/root/sys/fs/cgroup" "$root/cgroup"
}

# Prints what was found of each container, and links the namespace of each pod that has its own.
pods_containers() { # TABLE
  local pod uid container id process group
  echo containers:
  while read -r pod uid container id; do
    [ -n "$pod" ] || continue
    process=$(container_process "$id")
    [ -n "$process" ] ||
      fail "pod $pod: no process of container $container on this host, one expected" \
        "look why it ended: kubectl -n ztbench logs $pod -c $container"
    group=$(container_group "$process" "$id")
    printf '\t%s %s %s %s %s\n' "$pod" "$container" "$group" "$(allowed_cpus "$process")" \
      "$(exclusive_cpus "$uid" "$container")"
    ln -sfn "$proc/$process/ns/net" "$root/$pod.net"
    link_groups "$process"
  done <<<"$1"
}

# The control plane is not a pod of ours, so it is known by its program.
control_plane() {
  local process
  process=$(pgrep -o -x 'pilot-discovery|ztistiod') ||
    fail 'control plane: no process of it on this host, one expected' 'pulumi up -s cluster'
  printf '\t%s %s %s %s -\n' control control "$(container_group "$process" /)" \
    "$(allowed_cpus "$process")"
  ln -sfn "$proc/$process/ns/net" "$root/control.net"
  link_groups "$process"
}

control_version() {
  local answer=$root/answer
  rm -f "$answer"
  in_pod control "$programs/ztsample" -once -out "$answer" \
    -scrape version=http://127.0.0.1:15014/version 2>/dev/null ||
    fail 'control plane: does not tell its version on port 15014' 'look at its log'
  printf '\tistiod %s\n' "$(sed -n 2p "$answer")"
  rm -f "$answer"
}

in_pod() { # POD COMMAND...
  nsenter --net="$root/$1.net" "${@:2}"
}

# Settings that a pod's network does not have from its host, which have effect on what is opened
# from now on.
pods_tune() { # POD NAME=VALUE...
  local pod=$1 setting
  shift
  for setting; do
    in_pod "$pod" sysctl -qw "$setting" 2>/dev/null || :
  done
}

pods_sysctls() { # POD NAME...
  local pod=$1 name
  shift
  for name; do
    printf '\t%s %s %s\n' "$pod" "$name" \
      "$(in_pod "$pod" sysctl -n "$name" 2>/dev/null || echo 'not available')"
  done
}

# Parts of a proxy's configuration; the rest tells of its node, its certificates and its start.
proxy_parts=(static_listeners dynamic_listeners static_clusters dynamic_active_clusters
  static_route_configs dynamic_route_configs)

# The digest of what a proxy shows of its configuration, without times and versions of parts. Lines
# are sorted, since parts and the keys of a map come in another order at each start.
configuration_digest() {
  grep -Ev '^### |"(last_updated|version_info)":' | sed 's/,$//' | LC_ALL=C sort | sha256sum |
    cut -c1-64
}

# What a proxy says of its own version, and the digest of its configuration.
pods_proxy() { # POD NAME PORT
  local answer=$root/answer version part parts=()
  rm -f "$answer"
  in_pod "$1" "$programs/ztsample" -once -out "$answer" \
    -scrape "info=http://127.0.0.1:$3/server_info" 2>/dev/null ||
    fail "pod $1: its proxy does not answer on port $3" 'look at its log: kubectl -n ztbench logs'
  version=$(sed -n 's/^ *"version": "\([^"]*\)".*/\1/p' "$answer" | head -n 1)
  printf '\t%s %s\n' "$2" "${version:-not available}"
  rm -f "$answer"
  for part in "${proxy_parts[@]}"; do
    parts+=(-scrape "$part=http://127.0.0.1:$3/config_dump?resource=$part")
  done
  in_pod "$1" "$programs/ztsample" -once -out "$answer" "${parts[@]}" 2>/dev/null ||
    fail "pod $1: its proxy does not show its configuration" 'look at its log'
  printf '\t%s %s\n' "$2-configuration" "$(configuration_digest <"$answer")"
  rm -f "$answer"
}
