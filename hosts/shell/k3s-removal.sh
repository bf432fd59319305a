# shellcheck shell=bash
# Takes k3s and what ran on it off a host, and proves it. Needs `host` and `pod_network`. Upstream's
# own scripts stop at what k3s made; Calico's links, chains, sets and routes are seen to here, too.

# Elsewhere only in tests.
base=${k3s_base:-}
k3s_binary=$base/usr/local/bin/k3s
k3s_etc=$base/etc/rancher
k3s_data=$base/var/lib/rancher
k3s_units=$base/etc/systemd/system
k3s_note=$base/var/lib/ztbench/cluster
cgroups=$base/sys/fs/cgroup
proc=/proc
end_seconds=15

# What k3s, its containers and Calico make. Whatever of it was there before stays.
k3s_paths() {
  printf '%s\n' "$k3s_etc" "$k3s_data" "$k3s_binary" \
    "$base"/run/{k3s,flannel,calico,nodeagent} \
    "$base"/var/lib/{kubelet,cni,calico} \
    "$base"/var/log/{calico,pods,containers} \
    "$base"/etc/cni/net.d/{10-calico.conflist,calico-kubeconfig} \
    "$base"/etc/cni{/net.d,} "$base/opt/cni" "$base/usr/libexec/kubernetes" \
    "$k3s_units"/k3s.service "$k3s_units"/k3s-agent.service
}

# What kubelet and kube-proxy set for the whole machine.
k3s_sysctls() {
  printf '%s\n' vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops \
    kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.ipv4.ip_forward \
    net.ipv4.conf.all.forwarding net.ipv4.conf.all.route_localnet
}

# Modules that change what happens to packets by being there.
k3s_modules() {
  sed -nE 's/^(br_netfilter|ipip) .*/\1/p' "$proc/modules" 2>/dev/null || :
}

k3s_mounts() {
  local path
  while read -r _ path _; do
    case $path in
      "$base"/run/k3s* | "$k3s_data"* | "$base"/var/lib/kubelet* | "$base"/run/netns/cni-* | \
        "$base"/run/calico*) printf '%s\n' "$path" ;;
    esac
  done <"$proc/self/mounts"
}

# Containers, their shims, and k3s itself, which does not end with its unit.
k3s_processes() {
  local directory exe group
  for directory in "$proc"/[0-9]*; do
    exe=$(readlink "$directory/exe" 2>/dev/null) || exe=''
    group=''
    { read -r -d '' group <"$directory/cgroup"; } 2>/dev/null || :
    case $exe,$group in
      "$k3s_data"/* | "$k3s_binary",* | "$k3s_binary (deleted)",* | *[:/]kubepods*)
        printf '%s\n' "${directory##*/}" ;;
    esac
  done
}

k3s_links() {
  ip -oneline link show | sed -nE \
    's/^[0-9]+: ((cali|cni0|flannel|vxlan\.calico|wireguard\.cali|kube-ipvs0)[^:@]*).*/\1/p'
}

k3s_routes() {
  { ip -4 route show proto bird || :; ip -4 route show proto 80 || :; } 2>/dev/null |
    sed 's/ *$//'
}

k3s_namespaces() { ip netns list 2>/dev/null | sed -nE 's/^(cni-[^ ]+).*/\1/p'; }

k3s_sets() {
  ! command -v ipset >/dev/null || ipset list -name 2>/dev/null | grep -E '^(cali|KUBE-)' || :
}

k3s_rule='KUBE-|CNI-|[Cc]ali|FLANNEL|flannel'

k3s_rules() { # iptables|ip6tables
  "$1-save" 2>/dev/null | grep -E "^(:|-A ).*($k3s_rule|${pod_network//./\\.})" |
    sed -E 's/ \[[0-9:]+\]$//' || :
}

# A line for each thing of a cluster that is there, and each setting that it would change.
k3s_state() {
  local path name family
  while read -r path; do [ ! -e "$path" ] || printf 'path %s\n' "$path"; done < <(k3s_paths)
  k3s_mounts | sed 's/^/mount /'
  k3s_processes | sed 's/^/process /'
  k3s_links | sed 's/^/link /'
  k3s_routes | sed 's/^/route /'
  k3s_namespaces | sed 's/^/namespace /'
  k3s_sets | sed 's/^/set /'
  for family in iptables ip6tables; do k3s_rules "$family" | sed "s/^/$family /"; done
  { find "$cgroups" -maxdepth 2 -name 'kubepods*' 2>/dev/null || :; } | sed 's/^/cgroup /'
  k3s_modules | sed 's/^/module /'
  while read -r name; do
    path=$base/proc/sys/${name//.//}
    [ ! -r "$path" ] || printf 'sysctl %s %s\n' "$name" "$(<"$path")"
  done < <(k3s_sysctls)
}

# The state before the first change, written once and as a whole.
k3s_remember() {
  [ ! -e "$k3s_note/before" ] || return 0
  mkdir -p "$k3s_note"
  k3s_state | sort >"$k3s_note/before.new"
  sync "$k3s_note/before.new"
  mv --no-target-directory "$k3s_note/before.new" "$k3s_note/before"
}

was_before() { grep -qxF -- "$1" "$k3s_note/before"; }

# A cluster that has no note of ours is somebody else's, and is not touched.
k3s_remove() {
  local left
  [ -e "$k3s_note/before" ] || return 0
  k3s_stop_units
  k3s_end_processes
  k3s_unmount
  k3s_clear_network
  k3s_clear_files
  k3s_restore_sysctls
  left=$(comm -13 "$k3s_note/before" <(k3s_state | sort))
  [ -z "$left" ] ||
    refuse "cluster on host $host: not left as it was before: $(paste -sd, - <<<"$left" |
      sed 's/,/, /g')" "once more: pulumi destroy -s cluster; if it stays, remove it by hand" ||
    return 1
  rm -f "$k3s_note/before" "$k3s_note/started"
  rmdir --ignore-fail-on-non-empty "$k3s_note"
}

k3s_stop_units() {
  local unit
  for unit in k3s-agent k3s; do
    [ -e "$k3s_units/$unit.service" ] || continue
    timeout 60 systemctl disable --now --no-block "$unit.service" 2>/dev/null || :
    timeout 60 systemctl stop "$unit.service" 2>/dev/null || :
    rm -f "$k3s_units/$unit.service"
    systemctl reset-failed "$unit.service" 2>/dev/null || :
  done
  timeout 60 systemctl daemon-reload
}

k3s_end_processes() {
  local pids deadline=$((SECONDS + end_seconds)) signal=TERM
  while :; do
    mapfile -t pids < <(k3s_processes)
    [ "${#pids[@]}" -gt 0 ] || return 0
    ((SECONDS < deadline)) || return 0
    kill -"$signal" "${pids[@]}" 2>/dev/null || :
    sleep 0.5
    signal=KILL
  done
}

k3s_unmount() {
  local path
  while read -r path; do
    was_before "mount $path" || umount "$path" 2>/dev/null || umount --lazy "$path" || :
  done < <(k3s_mounts | sort -r)
}

# Rules by their text, since they are spread over the chains of others; what was there before stays.
k3s_without_rules() { # iptables|ip6tables, with all rules on standard input
  local line pattern="^(:|-A ).*($k3s_rule|${pod_network//./\\.})"
  while IFS= read -r line; do
    [[ ! $line =~ $pattern ]] || was_before "$1 ${line% \[*\]}" || continue
    printf '%s\n' "$line"
  done
}

k3s_clear_network() {
  local name family words
  while read -r name; do
    was_before "namespace $name" || ip netns delete "$name" || :
  done < <(k3s_namespaces)
  while read -r name; do was_before "link $name" || ip link delete "$name" || :; done < <(k3s_links)
  while read -r -a words; do
    was_before "route ${words[*]}" || ip -4 route delete "${words[@]}" 2>/dev/null || :
  done < <(k3s_routes)
  for family in iptables ip6tables; do
    [ -n "$(k3s_rules "$family")" ] || continue
    "$family-save" | k3s_without_rules "$family" | "$family-restore" || :
  done
  while read -r name; do
    was_before "module $name" || modprobe --remove "$name" 2>/dev/null || :
  done < <(k3s_modules)
  # Sets refer to each other, so those that are used go in a second pass.
  for _ in first second; do
    while read -r name; do
      was_before "set $name" || ipset destroy "$name" 2>/dev/null || :
    done < <(k3s_sets)
  done
}

k3s_clear_files() {
  local path mounted
  mounted=$(k3s_mounts)
  while read -r path; do
    [ -e "$path" ] || continue
    ! was_before "path $path" || continue
    # What is still mounted would be emptied, not removed.
    ! grep -qE "^$path(/|$)" <<<"$mounted" || continue
    case $path in
      # Others may have put something there since.
      "$base/etc/cni"*) rm -f "$path" 2>/dev/null || rmdir "$path" 2>/dev/null || : ;;
      *) rm -rf "$path" ;;
    esac
  done < <(k3s_paths)
  find "$cgroups" -depth -path '*/kubepods*' -type d -exec rmdir {} + 2>/dev/null || :
}

k3s_restore_sysctls() {
  local name value path
  while read -r _ name value; do
    path=$base/proc/sys/${name//.//}
    [ "$(cat "$path" 2>/dev/null)" = "$value" ] || printf '%s\n' "$value" >"$path" || :
  done < <(grep '^sysctl ' "$k3s_note/before")
}
