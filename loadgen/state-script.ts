/** The script that notes what should not change on a host while a run lasts, as raw text; pure. */
import type { Host } from "../contracts/testbed.ts";
import { shellWord } from "./ssh.ts";

/**
 * Lines that write one block for each command, in the form of the sampler's: `### NS command NAME`
 * and what it printed. A command that is not there, or not allowed, says so in its block.
 */
export function stateLines(host: Host, file: string): string[] {
  const commands: readonly (readonly [string, string])[] = [
    ["services", `systemctl list-units --type=service,timer --state=active,activating ${plain}`],
    ["processes", "ps -e -o comm="],
    ["kernel-log", "dmesg --level=emerg,alert,crit,err,warn"],
    ["nic", `ethtool -S ${shellWord(host.nic)}`],
    ["chrony", "chronyc -c tracking"],
    ["tcp-metrics", "ip tcp_metrics show"],
  ];
  return [
    "note() {",
    '  printf \'### %s000 command %s\\n\' "${EPOCHREALTIME//[!0-9]/}" "$1"',
    `  { "\${@:2}" 2>&1 || echo "exit code $?"; } | tail -n ${linesMax} | sed 's/^###/ ###/'`,
    "}",
    "{",
    ...commands.map(([name, command]) => `  note ${name} ${command}`),
    `} >${file}`,
  ];
}

const plain = "--plain --no-legend --no-pager";

/** A kernel log may be long; what is new is at its end. */
const linesMax = 2000;
