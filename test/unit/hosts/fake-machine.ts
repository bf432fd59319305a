/** A machine of files in a scratch directory, with ethtool and systemctl that act on them. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Knob } from "../../../hosts/knobs.ts";
import { renderProgram, renderTable, shellPart } from "../../../hosts/shell.ts";
import { parseReadback, parseTuning, summariseTuning, tuningParts } from "../../../hosts/tuning.ts";
import { runBash } from "../../support/bash.ts";

export const rackFixtures = path.join(import.meta.dirname, "fixtures", "rack");

/** What the file of each option of ethtool is called among the fixtures. */
const ethtool = `
ethtool() {
  local file line
  echo "ethtool $*" >>"$root/calls"
  case $1 in
    -k | -K) file=offloads ;;
    -g | -G) file=rings ;;
    -c | -C) file=coalescing ;;
    -l | -L) file=channels ;;
    -a | -A) file=pause ;;
    --show-priv-flags | --set-priv-flags) file=private ;;
    *) echo "unexpected: ethtool $*"; return 1 ;;
  esac
  file=$root/ethtool-$file.txt
  [ -e "$file" ] || { echo 'netlink error: Operation not supported'; return 1; }
  case $1 in
    -G | -L) sed -i "/^Current/,\\$ s/^$3:\\([[:space:]]*\\).*/\\1$4/I; T; s/^/$3:/" "$file"
      sed -i 's/^rx:/RX:/; s/^tx:/TX:/; s/^combined:/Combined:/' "$file" ;;
    -A) line=$3; [ "$line" != autoneg ] || line=Autonegotiate
      sed -i "s/^\${line}:\\([[:space:]]*\\).*/\${line^}:\\1$4/I" "$file"
      sed -i 's/^Rx:/RX:/; s/^Tx:/TX:/' "$file" ;;
    -C) case $3 in
        adaptive-rx) sed -i "s/^Adaptive RX: [a-z]*/Adaptive RX: $4/" "$file" ;;
        adaptive-tx) sed -i "s/^\\(Adaptive RX: [a-z]*  TX:\\).*/\\1 $4/" "$file" ;;
        *) sed -i "s/^$3:\\([[:space:]]*\\).*/$3:\\1$4/" "$file" ;;
      esac ;;
    -K | --set-priv-flags) sed -i "s/^$3\\( *\\):.*/$3\\1: $4/" "$file" ;;
    *) cat "$file" ;;
  esac
}`;

const systemctl = `
systemctl() {
  local unit value
  echo "systemctl $*" >>"$root/calls"
  case "$1" in
    daemon-reload) ;;
    set-property)
      unit=$3 value=\${4#*=}
      mkdir -p "$root/run/system.control/$unit.d" "$root/cgroup/$unit"
      echo "$4" >"$root/run/system.control/$unit.d/50-\${4%%=*}.conf"
      case $4 in
        AllowedCPUs=*) echo "$value" >"$root/cgroup/$unit/cpuset.cpus" ;;
        AllowedMemoryNodes=*) echo "$value" >"$root/cgroup/$unit/cpuset.mems" ;;
      esac ;;
    start)
      case $2 in
        *.slice) mkdir -p "$root/cgroup/$2"; echo member >"$root/cgroup/$2/cpuset.cpus.partition" ;;
        *.timer) shift; for unit in "$@"; do echo active >"$root/timers/$unit"; done ;;
        *) [ -e "$root/run/system/$2" ] && cp "$root/dev/latency" "$root/dev/latency.before" &&
          printf '\\1\\0\\0\\0' >"$root/dev/latency" ;;
      esac ;;
    stop)
      case $2 in
        *.slice) rm -rf "$root/cgroup/$2" ;;
        *) mv "$root/dev/latency.before" "$root/dev/latency" ;;
      esac ;;
    show)
      shift 2
      for unit in "$@"; do
        echo "Id=$unit"
        if [ -e "$root/masked/$unit" ]; then echo LoadState=masked; echo ActiveState=inactive
        elif [ -e "$root/timers/$unit" ]; then
          echo LoadState=loaded; echo "ActiveState=$(cat "$root/timers/$unit")"
        else echo LoadState=not-found; echo ActiveState=inactive; fi
        echo
      done ;;
    mask) shift 4; mkdir -p "$root/masked"; for unit in "$@"; do
      touch "$root/masked/$unit"; echo inactive >"$root/timers/$unit"; done ;;
    unmask) shift 3; for unit in "$@"; do rm "$root/masked/$unit"; done ;;
    *) echo "unexpected: systemctl $*"; return 1 ;;
  esac
}`;

export class FakeMachine {
  readonly root: string;
  container = false;
  /** Bash that replaces functions. */
  extra = "";

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.root = mkdtempSync(path.join(tmpdir(), "ztbench-machine-"));
    cpSync(rackFixtures, this.root, { recursive: true });
    for (const [name, value] of Object.entries(files)) this.set(name, value);
  }

  set(name: string, value: string): void {
    const file = path.join(this.root, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, value === "" ? "" : `${value}\n`);
  }

  get(name: string): string {
    return readFileSync(path.join(this.root, name), "utf8").trimEnd();
  }

  has(name: string): boolean {
    return existsSync(path.join(this.root, name));
  }

  /** Targets begin with `ROOT` where they are files of this machine. */
  run(call: string, knobs: readonly Knob[]) {
    const rows = knobs.map(({ id, scope, kind, target, want }) => {
      return [id, scope, kind, target.replaceAll("ROOT", this.root), want];
    });
    const parts = [
      "host=fake",
      renderTable("knobs", rows),
      ...tuningParts.map(shellPart),
      `root=${this.root}`,
      "sys=$root/sys proc=$root/proc cgroup=$root/cgroup unit_directory=$root/run",
      "journal_directory=$root/journal",
      "journal=$journal_directory/tuning.tsv",
      "lease_directory=$root/lease",
      `in_container() { ${this.container ? "true" : "false"}; }`,
      ethtool,
      systemctl,
      this.extra,
    ];
    return runBash(renderProgram(parts, call));
  }

  create(knobs: readonly Knob[]): Record<string, string> {
    const { exitCode, stdout, stderr } = this.run("tuning_create", knobs);
    assert.equal(exitCode, 0, stderr);
    return summariseTuning(parseTuning(stdout));
  }

  /** What removal says on standard error. */
  remove(): string {
    const { exitCode, stderr } = this.run("tuning_remove", []);
    assert.equal(exitCode, 0, stderr);
    return stderr;
  }

  verify(knobs: readonly Knob[]): string[] {
    const { exitCode, stdout, stderr } = this.run("tuning_verify", knobs);
    assert.equal(exitCode, 0, stderr);
    return parseReadback(stdout).map(({ id, status, value }) => `${id} ${status} ${value}`);
  }

  /** How often a command was called, by the words that it begins with. */
  calls(words: string): number {
    const text = this.has("calls") ? this.get("calls") : "";
    return text.split("\n").filter((line) => line.startsWith(words)).length;
  }
}
