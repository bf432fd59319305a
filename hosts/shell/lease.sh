# The lease: one topology on the hosts at a time, and one campaign. A lease is a file that appears
# as a whole or not at all. Its lines, tab separated: owner, stack, campaign (`-` for none), since.
# Needs `host`, the name for messages.

lease_directory=/var/lib/ztbench/lease
tab=$'\t'

lease_field() { # name field
  sed -n "s/^$2$tab//p" "$lease_directory/$1" 2>/dev/null || true
}

# Makes the file unless it is there; fails if it is.
lease_make() { # name owner stack campaign
  local new made=0
  mkdir -p "$lease_directory"
  new=$(mktemp "$lease_directory/.$1.XXXXXX")
  printf 'owner\t%s\nstack\t%s\ncampaign\t%s\nsince\t%s\n' "$2" "$3" "$4" \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$new"
  sync "$new"
  ln --no-target-directory "$new" "$lease_directory/$1" 2>/dev/null || made=1
  rm -f "$new"
  return "$made"
}

lease_drop() { # name owner
  if [ "$(lease_field "$1" owner)" = "$2" ]; then rm -f "$lease_directory/$1"; fi
  [ ! -d "$lease_directory" ] || rmdir --ignore-fail-on-non-empty "$lease_directory"
}

describe_lease() { # name
  echo "stack $(lease_field "$1" stack) since $(lease_field "$1" since)" \
    "(owner $(lease_field "$1" owner))"
}

refuse() { # message hint
  printf '%s\n  next: %s\n' "$1" "$2" >&2
  return 1
}

refuse_topology() {
  refuse "lease: hosts are taken, $host is held by $(describe_lease topology)" \
    "pulumi destroy -s $(lease_field topology stack)"
}

refuse_campaign() {
  refuse "lease: hosts are taken, $host is held by campaign $(lease_field campaign owner) since $(
    lease_field campaign since)" \
    "let that campaign end, or resume it; if it is gone, remove $lease_directory/campaign on $host"
}

# A topology takes first and looks for a campaign afterwards; a campaign does it the other way
# round. So of two that come at the same time, at least one sees the other.
topology_lease_take() { # owner stack campaign-token
  local campaign made=no
  if lease_make topology "$1" "$2" "$3"; then
    made=yes
  elif [ "$(lease_field topology owner)" != "$1" ]; then
    refuse_topology || return 1
  fi
  campaign=$(lease_field campaign owner)
  if [ -n "$campaign" ] && [ "$campaign" != "$3" ]; then
    [ "$made" = no ] || lease_drop topology "$1"
    refuse_campaign || return 1
  fi
}

campaign_lease_take() { # token
  local made=no
  if lease_make campaign "$1" - "$1"; then
    made=yes
  elif [ "$(lease_field campaign owner)" != "$1" ]; then
    refuse_campaign || return 1
  fi
  # A topology of this campaign may still be there when it is resumed.
  if [ -e "$lease_directory/topology" ] && [ "$(lease_field topology campaign)" != "$1" ]; then
    [ "$made" = no ] || lease_drop campaign "$1"
    refuse_topology || return 1
  fi
}

refuse_while_leased() {
  [ ! -e "$lease_directory/topology" ] || refuse_topology || return 1
  [ ! -e "$lease_directory/campaign" ] || refuse_campaign || return 1
}

refuse_cluster() {
  refuse "cluster: there is one, $host is held by $(describe_lease cluster)" \
    "pulumi destroy -s $(lease_field cluster stack)"
}

# The mark that a host has a cluster. Topologies may come and go while it is there.
cluster_lease_take() { # owner stack
  refuse_while_leased || return 1
  lease_make cluster "$1" "$2" - || [ "$(lease_field cluster owner)" = "$1" ] || refuse_cluster
}

refuse_while_clustered() {
  [ ! -e "$lease_directory/cluster" ] || refuse_cluster || return 1
}
