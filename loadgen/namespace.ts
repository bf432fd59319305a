/** Commands in another network namespace of their host: that of the pod that load is sent from. */

/** @param path of the namespace; undefined: the host's own */
export function inNamespace(path: string | undefined, command: readonly string[]): string[] {
  return path === undefined ? [...command] : ["nsenter", `--net=${path}`, ...command];
}
