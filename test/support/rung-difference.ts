/** What differs between two rungs of the ladder in all that is put on hosts or into a cluster. */
import type { HostPayload } from "../../hosts/payload.ts";
import type { Rendering } from "../../topologies/native.ts";
import type { PodRendering } from "../../topologies/pods/pods.ts";
import { objectsOf } from "./pods.ts";

/** Settings by where they are; those of one part are told as one if the other rung has none of it. */
type Settings = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** All settings of a topology on hosts. */
export function nativeSettings({ hosts, deployment }: Rendering): Settings {
  return new Map([...hosts.flatMap(partsOf), ...legsOf(deployment)].map(plain(deployment)));
}

/** All settings of a topology in a cluster. */
export function podSettings(rendering: PodRendering): Settings {
  const { deployment, before } = rendering;
  const objects = objectsOf(rendering).map(({ kind, metadata, ...rest }) => {
    const { name, ...more } = metadata;
    return [`${kind} ${name}`, flatten({ metadata: more, ...rest })] as const;
  });
  return new Map(
    [...objects, ...before.flatMap(partsOf), ...legsOf(deployment)].map(plain(deployment)),
  );
}

/** One line for each setting, or part, that one of the two has otherwise. */
export function differences(from: Settings, to: Settings): string[] {
  const parts = [...new Set([...from.keys(), ...to.keys()])];
  return parts.flatMap((part) => {
    const [before, after] = [from.get(part), to.get(part)];
    if (before === undefined) return [`+ ${part}`];
    if (after === undefined) return [`- ${part}`];
    const keys = [...new Set([...before.keys(), ...after.keys()])];
    return keys.flatMap((key) => {
      const [was, is] = [before.get(key), after.get(key)];
      if (was === is) return [];
      const value = [was, is].map((one) => one ?? "(absent)").join(" → ");
      return [`~ ${part}: ${key}: ${value}`];
    });
  });
}

function partsOf({ host, units, files, steps = [] }: HostPayload) {
  return [
    ...units.map(({ name, text }) => [`${host}: ${name}`, linesOf(text)] as const),
    ...files.flatMap(({ path, content }) =>
      path.endsWith(".yaml")
        ? content.split(/^---\n/m).map((text) => {
            const { kind, metadata, spec } = JSON.parse(text) as {
              kind: string;
              metadata: { name: string };
              spec: object;
            };
            return [`${kind} ${metadata.name}`, flatten({ spec })] as const;
          })
        : [[`${host}: ${path}`, flatten(JSON.parse(content))] as const],
    ),
    ...steps.map(
      ({ make }, index) => [`${host}: step ${index + 1}`, new Map([["make", make]])] as const,
    ),
  ];
}

function legsOf({ entry, legs }: Rendering["deployment"]) {
  return [
    ["entry", flatten(entry)] as const,
    ...legs.map(({ from, to, http, tls }) => {
      return [`leg ${from} to ${to}`, new Map(Object.entries({ http, tls }))] as const;
    }),
  ];
}

/** Settings of a unit; of its command line each argument is one. */
function linesOf(text: string): Map<string, string> {
  const settings = text.split("\n").flatMap((line): (readonly [string, string])[] => {
    const [name = "", ...rest] = line.split("=");
    if (rest.length === 0) return [];
    if (name !== "ExecStart" && name !== "Environment") return [[name, rest.join("=")]];
    return rest
      .join("=")
      .split(" ")
      .map((word) => {
        const [option = "", ...value] = word.split("=");
        return [`${name} ${option}`, value.join("=")];
      });
  });
  return new Map(settings);
}

function flatten(value: unknown, at = ""): Map<string, string> {
  if (typeof value !== "object" || value === null) return new Map([[at, String(value)]]);
  const entries = Object.entries(value).flatMap(([key, inner]) => [
    ...flatten(inner, at === "" ? key : `${at}.${key}`),
  ]);
  return new Map(entries);
}

/** The name of a topology is in paths and labels, and says nothing. */
function plain({ topology }: Rendering["deployment"]) {
  const clean = (text: string) => text.replaceAll(topology, "TOPOLOGY");
  return ([part, settings]: readonly [string, ReadonlyMap<string, string>]) =>
    [
      clean(part),
      new Map([...settings].map(([key, value]) => [clean(key), clean(value)])),
    ] as const;
}
