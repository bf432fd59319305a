# shellcheck shell=bash
# Files of a cluster on a host. Needs `host` and `directory`, and `files`, which prints a line for
# each: name, SHA-256, mode. They come by SFTP, which keeps neither mode nor promise.

# By the processor's own instructions where openssl is there: several times as fast.
cluster_file_digest() { # PATH
  if command -v openssl >/dev/null; then openssl dgst -sha256 -r "$1"; else sha256sum "$1"; fi
}

cluster_files_create() {
  local name digest mode found
  while IFS=$'\t' read -r name digest mode; do
    [ -f "$directory/$name" ] ||
      refuse "file $name: not copied to host $host, expected as $directory/$name" \
        "pulumi up -s cluster" || return 1
    found=$(cluster_file_digest "$directory/$name")
    [ "${found%% *}" = "$digest" ] ||
      refuse "file $name: damaged on host $host, SHA-256 ${found%% *}, expected $digest" \
        "pulumi up -s cluster" || return 1
    chmod "$mode" "$directory/$name"
  done < <(files)
  find "${directory%/*}" -mindepth 1 -maxdepth 1 ! -path "$directory" -exec rm -rf {} +
}
