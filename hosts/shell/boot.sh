# Parameters of the kernel command line, by a drop-in of GRUB. Needs `host`, the functions of
# lease.sh and tuning.sh, and, to set them, `boot_parameters`, which prints one a line.
#
# They are in force after a reboot only, which is not ours to do: `boot_create` fails until then, so
# that nothing is measured on a kernel that is not as the testbed says.

proc=${proc:-/proc}
boot_defaults=${boot_defaults:-/etc/default/grub.d}
boot_dropin=$boot_defaults/90-ztbench.cfg
boot_journal=${journal_directory:-/var/lib/ztbench/journal}/boot.tsv

# The name of a parameter; the kernel takes dashes for underscores in it.
boot_name() { # parameter; sets REPLY
  REPLY=${1%%=*}
  REPLY=${REPLY//-/_}
}

# Prints the parameters that the running kernel was not started with, separated by blanks. Of one
# that is there twice the last counts; what follows `--` is for the first process.
boot_missing() {
  local word parameter line missing=''
  local -a words=()
  local -A given=()
  { read -r line || [ -n "$line" ]; } <"$proc/cmdline"
  read -r -a words <<<"$line"
  for word in "${words[@]}"; do
    [ "$word" != -- ] || break
    boot_name "$word"
    given[$REPLY]=${word#*=}
  done
  while read -r parameter; do
    boot_name "$parameter"
    [ "${given[$REPLY]-absent}" = "${parameter#*=}" ] || missing+=" $parameter"
  done < <(boot_parameters)
  echo "${missing# }"
}

boot_text() {
  echo '# Written by ztbench, which removes it again: pulumi destroy -s hosts'
  printf 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT %s"\n' \
    "$(boot_parameters | tr '\n' ' ' | sed 's/ $//')"
}

boot_journal_field() { sed -n "s/^$1$tab//p" "$boot_journal" 2>/dev/null || true; }

boot_update() {
  local log
  log=$(update-grub 2>&1) || refuse "host $host: update-grub failed: ${log##*$'\n'}" \
    "on $host: update-grub"
}

boot_create() {
  local missing text found=''
  missing=$(boot_missing)
  text=$(boot_text)
  [ ! -e "$boot_dropin" ] || found=$(<"$boot_dropin")
  if [ "$found" != "$text" ]; then
    # Parameters that are there without us need no drop-in.
    [ -n "$missing$found" ] || { boot_report 'in force'; return 0; }
    command -v update-grub >/dev/null ||
      refuse "host $host: update-grub is not there, the kernel command line lacks $missing" \
        "give $host these parameters by its own boot loader, or set bootProfile: none" || return 1
    mkdir -p "$(dirname "$boot_journal")" "$boot_defaults"
    printf 'journal\tztbench/boot/1\nboot\t%s\nsha256\t%s\n' "$(boot_id)" \
      "$(sha256sum <<<"$text" | cut -d ' ' -f 1)" | store "$boot_journal"
    store "$boot_dropin" <<<"$text"
    boot_update || return 1
  fi
  [ -n "$missing" ] || { boot_report 'in force'; return 0; }
  if [ "$(boot_journal_field boot)" = "$(boot_id)" ]; then
    refuse "host $host: reboot needed, its kernel command line lacks $missing" \
      "on $host: systemctl reboot; when it is back: pulumi up -s hosts"
  else
    refuse "host $host: rebooted, and its kernel command line still lacks $missing" \
      "look at $boot_dropin on $host, and at what else sets the command line"
  fi
}

boot_report() { # state
  local parameter
  while read -r parameter; do printf '%s\t%s\n' "$parameter" "$1"; done < <(boot_parameters)
}

# Read only: refuses a host that was started without them.
boot_verify() {
  local missing
  missing=$(boot_missing)
  [ -z "$missing" ] || refuse "host $host: reboot needed, its kernel command line lacks $missing" \
    "on $host: systemctl reboot, if $boot_dropin is there; else pulumi destroy and up -s hosts"
}

# What is no longer as it was written is left, and named.
boot_remove() {
  local found
  [ -e "$boot_journal" ] || return 0
  if [ -e "$boot_dropin" ]; then
    found=$(sha256sum <"$boot_dropin")
    if [ "${found%% *}" = "$(boot_journal_field sha256)" ]; then
      rm -f "$boot_dropin"
      boot_update || return 1
      echo "host $host: its boot parameters are gone after the next reboot" >&2
    else
      echo "left $boot_dropin: foreign change" >&2
    fi
  fi
  rm -f "$boot_journal" "$boot_journal.new" "$boot_dropin.new"
  rmdir --ignore-fail-on-non-empty "$(dirname "$boot_journal")"
}
