#!/usr/bin/env bash
# One regression check from nothing to nothing, for CI: raises a testbed, measures a plan, judges it
# by a budget, takes everything down whatever happened, and proves that nothing is left.
set -uo pipefail
set -m # Each command is a process group of its own: Ctrl-C reaches it once, by way of this script.

usage='usage: ci/regress.sh measure [OPTION]...   all of it; exit code of the first thing that failed
       ci/regress.sh down [OPTION]...      tear-down and proof alone, also after measure was killed

  --testbed FILE   hosts of your own; a lab on this machine if not given
  --name NAME      of the lab; "lab" if not given
  --network N      of the lab, 0 to 15; 0 if not given
  --cluster        with a cluster on the hosts, for plans of runtime k3s
  --plan FILE      plans/regress-lab.yaml, or plans/regress.yaml with --testbed
  --budget FILE    budgets/regress-lab.yaml, or budgets/regress.yaml with --testbed
  --out DIRECTORY  gets the bundle, and DIRECTORY.xml the verdict; results/regress-TIME if not
                   given. down gives back the hosts that the campaign of this bundle held
  --resume         go on with the bundle in DIRECTORY
  --minutes N      bound on measuring; 60, or 240 with --testbed

exit codes: 0 kept or at risk, 2 usage, 3 bad document or bundle, 4 testbed not ready or not clean,
            5 load run failed, 6 budget exceeded, 7 not judged, 130 interrupted'

say() { printf 'regress: %s\n' "$*" >&2; }
misused() {
  printf 'regress: %s\n%s\n' "$1" "$usage" >&2
  exit 2
}

action=${1-}
case $action in
  measure | down) shift ;;
  -h | --help) exec printf '%s\n' "$usage" ;;
  *) misused "action: unknown, \"$action\", measure or down" ;;
esac
testbed='' name=lab network=0 cluster='' plan='' budget='' out='' resume='' minutes=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) exec printf '%s\n' "$usage" ;;
    --cluster) cluster=yes && shift && continue ;;
    --resume) resume=yes && shift && continue ;;
    --testbed | --name | --network | --plan | --budget | --out | --minutes) ;;
    *) misused "argument: unknown, \"$1\"" ;;
  esac
  [ -n "${2-}" ] || misused "$1: has no value"
  printf -v "${1#--}" %s "$2"
  shift 2
done
# The name becomes part of a path here, before ztbench sees it.
[[ $name =~ ^[a-z][a-z0-9]*$ ]] || misused "--name: not usable, \"$name\", letters and digits only"
[[ ${minutes:=$([ -n "$testbed" ] && echo 240 || echo 60)} =~ ^[1-9][0-9]{0,4}$ ]] ||
  misused "--minutes: not usable, \"$minutes\", a whole number from 1"
[ -z "$resume" ] || [ -n "$out" ] || misused '--resume: needs --out, the directory to go on with'

# Paths of the user start where the user is; all else happens in the checkout.
for path in testbed plan budget out; do
  [ -z "${!path}" ] || printf -v "$path" %s "$(realpath -ms -- "${!path}")"
done
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." || exit 4
flavour=$([ -n "$testbed" ] && echo regress || echo regress-lab)
: "${plan:=plans/$flavour.yaml}" "${budget:=budgets/$flavour.yaml}"
[ "$action" = down ] || : "${out:=$PWD/results/regress-$(date -u +%Y%m%dT%H%M%SZ)}"
lab=(--name "$name" --network "$network" ${cluster:+--kubernetes})
document=${testbed:-.ztbench/testbeds/$name/testbed.yaml}

code=0 stopped='' child='' got='' owed=''
fail() { # code message; the first failure decides how all of this ends
  say "$2"
  [ "$code" -ne 0 ] || code=$1
}
on_signal() {
  got=yes
  if [ -n "$stopped" ]; then
    say 'already taking all down, which is bounded: please wait'
    return
  fi
  stopped=yes
  fail 130 'interrupted: ending what runs, then taking all down'
  if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null; else owed=yes; fi
}
trap on_signal INT TERM HUP

# Runs a command within a time. What cleans up after itself has five minutes for that.
run() { # seconds command...
  local rc
  got=''
  timeout --foreground --kill-after=300 "$@" </dev/null &
  child=$!
  [ -z "$owed" ] || kill -TERM "$child"
  owed=''
  # A signal ends `wait`, but not the command.
  while wait "$child"; rc=$? && [ -n "$got" ]; do got=''; done
  child=''
  [ "$rc" -ne 124 ] || say "not done within $1 s: ${*:2}"
  return "$rc"
}
# ztbench tells by its exit code what went wrong; of others, and of a timeout, the step does.
step() { # name seconds command...
  [ -z "$stopped" ] || return 1
  local began=$SECONDS rc told=4
  run "${@:2}"
  rc=$?
  say "$1: $((SECONDS - began)) s, exit $rc"
  [ "$rc" -ne 0 ] || return 0
  [ "$1" != campaign ] || told=5
  if [ "$3" = ./ztbench ] && { [ "$rc" -lt 124 ] || [ "$rc" -eq 130 ]; }; then told=$rc; fi
  fail "$told" "$1: failed"
  return "$told"
}

silent=(--non-interactive --color never)
up() { step "up $1" 900 pulumi up -s "$1" --yes --skip-preview --suppress-outputs "${silent[@]}"; }
environment() {
  local exports
  exports=$(./ztbench env) && eval "$exports"
}

raise() {
  if [ -n "$testbed" ]; then step init 300 ./ztbench init "$testbed" || return
  else step raise 1200 ./ztbench lab up "${lab[@]}" 9>&- || return
  fi
  environment || { fail 4 'env failed' && return 1; }
  up hosts && { [ -z "$cluster" ] || up cluster; }
}

measure() {
  step tools 7200 make tools || return
  if [ -n "$cluster" ]; then
    step files 7200 node --import tsx tools/install.ts --with-cluster || return
  fi
  # Bad documents are told before anything is raised.
  step check 120 ./ztbench campaign "$plan" --budget "$budget" --estimate || return
  raise || return
  local arguments=("$plan" --budget "$budget" --bundle "$out")
  step campaign $((minutes * 60)) ./ztbench campaign "${arguments[@]}" ${resume:+--resume}
  # Invalid runs and broken budgets are results, too; without tables there is nothing to judge.
  [ -z "$stopped" ] && [ -d "$out/tables" ] || return
  step verify 900 ./ztbench verify "$out"
  step budget 900 ./ztbench budget "$out" "$budget" --junit "$out.xml"
}

# Names of stacks that hold something, what stands on another first.
held() {
  timeout --foreground 120 pulumi stack ls --json "${silent[@]}" | node -e '
    const last = ["cluster", "hosts"];
    const rows = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const held = rows.filter((row) => (row.resourceCount ?? 0) > 0).map((row) => row.name);
    held.sort((a, b) => last.indexOf(a) - last.indexOf(b));
    for (const name of held) console.log(name);'
}
clear_stacks() {
  local began=$SECONDS stack stacks backend
  run 300 ./ztbench init "$document" >/dev/null && environment && stacks=$(held) || return
  # Nobody else works in this checkout, see the lock: what is locked was left by a killed engine.
  backend=.ztbench/current/backend/.pulumi/locks
  # The hosts are held until a campaign ends; one that was killed never says that it has.
  [ -z "$out" ] || [ -z "$stacks" ] || run 120 ./ztbench release "$out"
  for stack in $stacks; do
    if [ -n "$(find "$backend" -path "*/$stack/*" -type f 2>/dev/null)" ]; then
      run 60 pulumi cancel -s "$stack" --yes "${silent[@]}"
    fi
    run 600 pulumi destroy -s "$stack" --yes --skip-preview "${silent[@]}" || return
    say "destroyed $stack"
  done
  stacks=$(held) && [ -z "$stacks" ] || return
  say "cleared: no stack of this testbed holds anything, $((SECONDS - began)) s"
}
lower() {
  local began=$SECONDS found
  # A signal at the moment in which a command ends can make bash forget how it ended.
  trap '' INT TERM HUP
  owed=''
  if [ -e "$document" ]; then clear_stacks || fail 4 'tear-down: stacks not cleared'; fi
  [ -z "$testbed" ] || return 0
  # What a failed destroy left is gone with the hosts.
  run 300 ./ztbench lab down "${lab[@]}" --force 9>&- || fail 4 'tear-down: lab not taken down'
  found=$(./ztbench lab status "${lab[@]}")
  if [ "${found%%$'\n'*}" = 'lab: down' ]; then
    say "absent: nothing of lab $name is on this machine, tear-down took $((SECONDS - began)) s"
  else
    fail 4 "tear-down: something is left"$'\n'"$found"
  fi
}

# Held by all that this script starts, so that `down` waits for what outlives a killed `measure`.
mkdir -p .ztbench && exec 9>.ztbench/regress.lock || exit 4
if [ "$action" = measure ]; then
  flock --nonblock 9 || { say 'another check runs in this checkout' && exit 4; }
  measure
  lower
  say "results: $out"
else
  flock --timeout 240 9 || { say 'what measure started has not ended within 240 s' && exit 4; }
  if [ -d node_modules/tsx ]; then lower; else say 'nothing was raised from this checkout'; fi
fi
say "exit $code"
exit "$code"
