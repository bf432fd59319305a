# Reads and writes each kind of knob. A reader prints the value in one line, words separated by one
# space, `none` for an empty one; or it fails and prints the reason. A writer fails and prints why.

in_container() { [ -e /run/systemd/container ]; }

read_file() {
  local text words
  [ -e "$1" ] || { echo "absent: $1"; return 1; }
  { text=$(<"$1"); } 2>/dev/null || { echo "unreadable: $1"; return 1; }
  read -r -a words <<<"$text"
  echo "${words[*]:-none}"
}

write_file() {
  local value=$2
  [ "$value" != none ] || value=
  { printf '%s\n' "$value" >"$1"; } 2>&1
}

sysctl_path() { echo "/proc/sys/${1//.//}"; }
read_sysctl() { read_file "$(sysctl_path "$1")"; }
write_sysctl() { write_file "$(sysctl_path "$1")" "$2"; }

# A file that shows all choices with the current one in brackets.
read_choice() {
  [ -r "$1" ] || { echo "absent: $1"; return 1; }
  local line
  read -r line <"$1"
  [[ $line =~ \[([^]]+)\] ]] || { echo "no choice in brackets: $line"; return 1; }
  echo "${BASH_REMATCH[1]}"
}
write_choice() { write_file "$1" "$2"; }

# Target: CIDR NIC. The value is the congestion control that the route names.
data_route() {
  local routes
  routes=$(ip -4 -oneline route show exact "${1% *}" dev "${1#* }" 2>&1) ||
    { echo "$routes"; return 1; }
  [ -n "$routes" ] || { echo "no route to ${1% *} on ${1#* }"; return 1; }
  # The state of the link is printed, but is no part of what can be set.
  sed -E '1!d; s/ (linkdown|dead|onlink)\b//g' <<<"$routes"
}
read_route() {
  local route
  route=$(data_route "$1") || { echo "$route"; return 1; }
  [[ $route =~ congctl\ (lock\ )?([a-z0-9_-]+) ]] || { echo none; return 0; }
  echo "${BASH_REMATCH[2]}"
}
write_route() {
  local route
  route=$(data_route "$1") || { echo "$route"; return 1; }
  route=$(sed -E 's/ congctl (lock )?[a-z0-9_-]+//' <<<"$route")
  [ "$2" = none ] || route="$route congctl $2"
  # Words of the route are words of the command.
  # shellcheck disable=SC2086
  ip -4 route replace $route dev "${1#* }" 2>&1
}
