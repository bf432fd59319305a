/** Reads YAML or JSON documents against a schema; every complaint carries file:line:column. */
import { LineCounter, type Node, parseDocument as parseYaml } from "yaml";
import type { z } from "zod";
import { Failure } from "./failure.ts";

type Issue = z.core.$ZodIssue;

/**
 * Parses and validates one document. All problems are gathered and thrown once.
 *
 * @param schema what the document must be
 * @param text the document, YAML 1.2 (of which JSON is a part)
 * @param file its name, for messages only
 * @throws Failure `document`, each problem on a line of its own: `file:line:column: path: problem`
 */
export function parseDocument<S extends z.ZodType>(
  schema: S,
  text: string,
  file: string,
): z.output<S> {
  const lines = new LineCounter();
  const document = parseYaml(text, { lineCounter: lines, uniqueKeys: true });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    const problems = document.errors.map(
      (e) => `${at(e.pos[0])}: ${e.message.split("\n")[0] ?? ""}`,
    );
    throw new Failure("document", problems.join("\n"));
  }
  const value: unknown = document.toJS({ maxAliasCount: 20 });
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = flatten(parsed.error.issues).map((issue) => {
    const offset = offsetOf(document.contents, issue);
    return `${at(offset)}: ${describeIssue(issue, value)}`;
  });
  throw new Failure("document", problems.join("\n"), {
    hint: `correct ${file} at the position given`,
  });
}

/** One complaint per misspelt key, so that each gets its own position. */
function flatten(issues: readonly Issue[]): Issue[] {
  return issues.flatMap((issue): Issue[] =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({ ...issue, keys: [key], path: [...issue.path, key] }))
      : [issue],
  );
}

function describeIssue(issue: Issue, root: unknown): string {
  const path = issue.path.map(String).join(".") || "document";
  if (issue.code === "unrecognized_keys") return `${path}: unknown key`;
  const seen = valueAt(root, issue.path);
  const shown = seen === undefined ? "nothing" : JSON.stringify(seen);
  const short = shown.length > 80 ? `${shown.slice(0, 77)}...` : shown;
  const problem = issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  return `${path}: ${problem}, found ${short}`;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** The place of the offending key or value, or of its nearest parent that is there. */
function offsetOf(contents: Node | null, issue: Issue): number {
  let node: unknown = contents;
  let offset = rangeStart(contents) ?? 0;
  for (const key of issue.path) {
    const items = (node as { items?: unknown[] } | null)?.items;
    if (!Array.isArray(items)) break;
    if (typeof key === "number") {
      node = items[key];
      offset = rangeStart(node) ?? offset;
      continue;
    }
    const pair = items.find(
      (item) => (item as { key?: { value?: unknown } }).key?.value === key,
    ) as { key: unknown; value: unknown } | undefined;
    if (pair === undefined) break;
    const isKeyItself = issue.code === "unrecognized_keys" && key === issue.path.at(-1);
    offset = rangeStart(isKeyItself ? pair.key : (pair.value ?? pair.key)) ?? offset;
    node = pair.value;
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | null | undefined)?.range?.[0];
}
