# Turns knobs with a journal. Needs the functions of knobs.sh, knobs-nic.sh, knobs-machine.sh and
# lease.sh, and `knobs`, which prints a line for each knob: id, scope, kind, target, want.
#
# The journal says what a value was before ztbench first changed it. It is on the disk before the
# first change, no later run overwrites a value in it, and it outlives a reboot.

journal_directory=/var/lib/ztbench/journal
journal=$journal_directory/tuning.tsv
tab=$'\t'
declare -A journal_line=()
declare -A journal_head=()

boot_id() { cat /proc/sys/kernel/random/boot_id; }
namespace_id() { readlink /proc/self/ns/net; }

# Lines of knobs: id, scope, kind, target, before, set, status; by "id target".
load_journal() {
  journal_line=()
  journal_head=()
  [ -e "$journal" ] || return 0
  local word id rest target
  while IFS=$tab read -r word id rest; do
    if [ "$word" = knob ]; then
      IFS=$tab read -r _ _ target _ <<<"$rest"
      journal_line["$id $target"]=$id$tab$rest
    else
      journal_head[$word]=$id
    fi
  done <"$journal"
}

# Replaces a file by standard input, as a whole; on the disk when this returns.
store() {
  cat >"$1.new"
  sync "$1.new"
  mv --no-target-directory "$1.new" "$1"
  sync "$(dirname "$1")"
}

store_journal() {
  {
    printf 'journal\tztbench/tuning/1\n'
    printf 'boot\t%s\n' "${journal_head[boot]:-$(boot_id)}"
    printf 'namespace\t%s\n' "$(namespace_id)"
    [ "$#" = 0 ] || printf 'knob\t%s\n' "$@"
  } | store "$journal"
}

# The value before the first change. In a namespace that is not the journal's, what is found is an
# original itself, unless it is what an earlier run set.
value_before() { # id scope target now
  local line=${journal_line["$1 $3"]:-} before set status
  [ -n "$line" ] || { echo "$4"; return 0; }
  IFS=$tab read -r _ _ _ _ before set status <<<"$line"
  # It was not there then: what is found now is the original.
  [ "$status" != unsupported ] || { echo "$4"; return 0; }
  if [ "$2" != machine ] && [ "${journal_head[namespace]}" != "$(namespace_id)" ] &&
    [ "$4" != "$set" ]; then
    before=$4
  fi
  echo "$before"
}

# Prints: status, value, reason.
turn_knob() { # scope kind target before want
  local now why kept
  now=$("read_$2" "$3") || { printf 'unsupported\t-\t%s\n' "$now"; return 0; }
  if [ "$now" = "$5" ]; then
    if [ "$4" = "$5" ]; then why=already; else why=applied; fi
    printf '%s\t%s\t-\n' "$why" "$now"
    return 0
  fi
  if [ "$1" = machine ] && in_container; then
    printf 'refused\t%s\treaches the whole machine, and this host is a container in it\n' "$now"
    return 0
  fi
  if ! why=$("write_$2" "$3" "$5" 2>&1); then
    why=${why//[$'\n\t']/ }
    why=${why:-the kernel gave no reason}
  else
    forget
    kept=$("read_$2" "$3") || kept=-
    [ "$kept" != "$5" ] || { printf 'applied\t%s\t-\n' "$kept"; return 0; }
    why="set to $5, the kernel kept $kept"
  fi
  # What was done by half is undone: removal leaves what was refused.
  "write_$2" "$3" "$now" >/dev/null 2>&1 || true
  forget
  now=$("read_$2" "$3") || now=-
  printf 'refused\t%s\t%s\n' "$now" "$why"
}

# Prints for each knob: id, status, value, reason.
tuning_create() {
  local id scope kind target want now before result key
  local -A befores=()
  local -a planned=() settled=() kept=() report=()
  mkdir -p "$journal_directory"
  load_journal
  while IFS=$tab read -r id scope kind target want; do
    remember "$kind" "$target"
    now=$("read_$kind" "$target") || continue
    befores["$id $target"]=$(value_before "$id" "$scope" "$target" "$now")
    now=${befores["$id $target"]}
    planned+=("$id$tab$scope$tab$kind$tab$target$tab$now$tab$want${tab}planned")
  done < <(knobs)
  for key in "${!journal_line[@]}"; do
    [ -n "${befores[$key]:-}" ] || kept+=("${journal_line[$key]}")
  done
  store_journal "${kept[@]}" "${planned[@]}"
  while IFS=$tab read -r id scope kind target want; do
    remember "$kind" "$target"
    before=${befores["$id $target"]:--}
    # Some knobs are there only once others are turned, e.g. those of queues.
    if [ "$before" = - ] && now=$("read_$kind" "$target"); then
      before=$(value_before "$id" "$scope" "$target" "$now")
      # An earlier run's line holds the same value, and would be a second one.
      for key in "${!kept[@]}"; do
        [[ ${kept[key]} != "$id$tab$scope$tab$kind$tab$target$tab"* ]] || unset "kept[key]"
      done
      planned+=("$id$tab$scope$tab$kind$tab$target$tab$before$tab$want${tab}planned")
      store_journal "${kept[@]}" "${planned[@]}"
    fi
    result=$(turn_knob "$scope" "$kind" "$target" "$before" "$want")
    case $result in already* | unsupported*) ;; *) forget ;; esac
    report+=("$id$tab$result")
    # Also of what is not there, so that the readback knows it when it comes later. What was turned
    # earlier and is gone has its line among those that are kept.
    [ "$before" = - ] && [ -n "${journal_line["$id $target"]:-}" ] ||
      settled+=("$id$tab$scope$tab$kind$tab$target$tab$before$tab$want$tab${result%%"$tab"*}")
  done < <(knobs)
  store_journal "${kept[@]}" "${settled[@]}"
  printf '%s\n' "${report[@]}"
}

# Restores in reverse order what is still as it was set, then removes the journal. What somebody
# else changed since is left, and named on standard error.
tuning_restore() {
  local word id kind target before set status now why failed=0
  [ -e "$journal" ] || return 0
  while IFS=$tab read -r word id _ kind target before set status; do
    [ "$word" = knob ] || continue
    case $status in applied | planned) ;; *) continue ;; esac
    forget
    if ! now=$("read_$kind" "$target"); then
      echo "left $id: it cannot be read any more: $now" >&2
    elif [ "$now" = "$before" ]; then
      continue
    elif [ "$now" != "$set" ]; then
      echo "left $id: foreign change, found $now, set was $set, before that $before" >&2
    elif ! why=$("write_$kind" "$target" "$before" 2>&1); then
      echo "not restored $id: $why, found $now, before $before" >&2
      failed=1
    elif forget; [ "$("read_$kind" "$target")" != "$before" ]; then
      echo "not restored $id: the kernel keeps $now, before $before" >&2
      failed=1
    else
      echo "restored $id$tab$before"
    fi
  done < <(tac "$journal")
  if [ "$failed" = 1 ]; then
    echo "the journal stays: $journal" >&2
    return 1
  fi
  rm -f "$journal" "$journal.new"
  rmdir --ignore-fail-on-non-empty "$journal_directory"
}

tuning_remove() {
  refuse_while_leased
  tuning_restore
}

# Read only. Prints for each knob: id, status, value.
tuning_verify() {
  local id kind target want now status key
  local -A asked=()
  load_journal
  while IFS=$tab read -r id _ kind target want; do
    asked["$id $target"]=1
    remember "$kind" "$target"
    if ! now=$("read_$kind" "$target"); then
      printf '%s\tunsupported\t-\n' "$id"
      continue
    fi
    status=${journal_line["$id $target"]:-}
    status=${status##*"$tab"}
    case $status in
      applied | already) [ "$now" = "$want" ] || status=drifted ;;
      refused) ;;
      unsupported) now=- ;;
      *) status=untuned ;;
    esac
    printf '%s\t%s\t%s\n' "$id" "$status" "$now"
  done < <(knobs)
  # Turned for another profile, NIC or CPU layout, and still so.
  for key in "${!journal_line[@]}"; do
    IFS=$tab read -r id _ kind target _ want status <<<"${journal_line[$key]}"
    [ -z "${asked[$key]:-}" ] && [ "$status" = applied ] || continue
    remember "$kind" "$target"
    now=$("read_$kind" "$target") && [ "$now" = "$want" ] || continue
    [ "$id" = "$target" ] || id="$id of $target"
    printf '%s\tleftover\t%s\n' "$id" "$now"
  done
}
