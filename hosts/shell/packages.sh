# Debian packages that must be there. Needs `host`, and `packages`, which prints one name a line.
# What was installed here is noted, and only that is removed again.

package_note=/var/lib/ztbench/journal/packages

installed_packages() {
  dpkg-query --show --showformat '${db:Status-Abbrev}${Package}\n' |
    sed -n 's/^ii //p' | sort
}

packages_create() {
  local missing name before
  if ! command -v dpkg-query >/dev/null; then
    refuse "host $host: dpkg-query is not there, Debian or a derivative is needed" \
      "use a Debian host" || return 1
  fi
  before=$(installed_packages)
  missing=$(comm -23 <(packages | sort) <(printf '%s\n' "$before"))
  [ -n "$missing" ] || return 0
  mkdir -p "$(dirname "$package_note")"
  # Noted before and after, so that an interrupted installation is known, too.
  printf '%s\n' "$missing" >>"$package_note"
  packages_install || {
    for name in $(comm -23 <(packages | sort) <(installed_packages)); do
      echo "package $name: missing on host $host and cannot be installed" >&2
    done
    printf '  next: on %s: apt-get install --yes %s\n' "$host" "$(tr '\n' ' ' <<<"$missing")" >&2
    return 1
  }
  comm -13 <(printf '%s\n' "$before") <(installed_packages) >>"$package_note"
}

packages_install() {
  local log
  log=$(
    exec 2>&1
    export DEBIAN_FRONTEND=noninteractive
    options=(-o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o DPkg::Lock::Timeout=60)
    # Words of the list are words of the command.
    # shellcheck disable=SC2086
    apt-get "${options[@]}" --quiet update &&
      apt-get "${options[@]}" --quiet --yes --no-install-recommends install $missing
  ) && return 0
  tail -n 3 <<<"$log" >&2
  return 1
}

packages_remove() {
  local ours
  [ -e "$package_note" ] || return 0
  ours=$(comm -12 <(sort -u "$package_note") <(installed_packages))
  # Whatever the outcome, it is told once and no later attempt fails for it.
  rm -f "$package_note"
  # Words of the list are words of the command. dpkg refuses what something else needs by now.
  # shellcheck disable=SC2086
  [ -z "$ours" ] || dpkg --purge $ours >&2 ||
    refuse "host $host: packages cannot be removed: $(tr '\n' ' ' <<<"$ours")" \
      "remove them by hand, or leave them; then once more: pulumi destroy -s hosts"
}
