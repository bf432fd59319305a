# Programs on a host. Needs `host` and `directory`, and `programs`, which prints a line for each:
# name and SHA-256. They come by SFTP, which keeps neither mode nor promise, so both are seen to.

program_link=/var/lib/ztbench/bin

programs_create() {
  local name digest found
  while IFS=$'\t' read -r name digest; do
    [ -f "$directory/$name" ] ||
      refuse "program $name: not copied to host $host, expected as $directory/$name" \
        "pulumi up -s hosts" || return 1
    found=$(sha256sum <"$directory/$name")
    [ "${found%% *}" = "$digest" ] ||
      refuse "program $name: damaged on host $host, SHA-256 ${found%% *}, expected $digest" \
        "pulumi up -s hosts" || return 1
    chmod 0755 "$directory/$name"
    printf '%s\t%s\n' "$name" "$digest"
  done < <(programs)
  ln --symbolic --force --no-dereference "$directory" "$program_link.new"
  mv --no-target-directory "$program_link.new" "$program_link"
  find "$(dirname "$directory")" -mindepth 1 -maxdepth 1 ! -path "$directory" \
    -exec rm -rf {} +
}

# The files stay: when programs are replaced, the new copy is already there by now. The next
# programs, or the end of everything, sweep them away.
programs_remove() {
  refuse_while_leased
  [ "$(readlink "$program_link" || true)" != "$directory" ] || rm -f "$program_link"
}
