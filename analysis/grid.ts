/** Takes the texts of derived files apart into cells with a row and a column that can be named. */

export type GridCell = { readonly row: string; readonly column: string; readonly text: string };

/** Deeper than any table of ours; a stored one may be anything. */
const depthMax = 64;

/**
 * All cells of a file by its ending: leaves of JSON, fields of CSV and Markdown tables, columns of
 * text and of interval logs, lines of everything else. Cells of the same name are numbered.
 *
 * @throws SyntaxError for JSON that is none, RangeError for JSON nested deeper than any of ours
 */
export function cellsOf(file: string, text: string): readonly GridCell[] {
  return numbered(plainCells(file, text));
}

function plainCells(file: string, text: string): GridCell[] {
  const ending = /\.[a-z]+$/.exec(file)?.[0] ?? "";
  switch (ending) {
    case ".json":
      return leaves(JSON.parse(text), "", 0);
    case ".csv":
      return fields(text);
    case ".md":
      return markdown(text);
    case ".txt":
      return lines(text, / {2,}/);
    case ".hlog":
      return lines(text, ",");
    default:
      return lines(text, undefined);
  }
}

function leaves(value: unknown, path: string, depth: number): GridCell[] {
  if (depth > depthMax) throw new RangeError(`JSON: nested deeper than ${depthMax}`);
  if (typeof value !== "object" || value === null) return [leaf(path, value)];
  const entries: [string, unknown][] = Array.isArray(value)
    ? value.map((inner: unknown, index) => [`[${index}]`, inner])
    : Object.entries(value).map(([key, inner]) => [path === "" ? key : `.${key}`, inner]);
  // What is empty is a value, too.
  if (entries.length === 0) return [leaf(path, value)];
  return entries.flatMap(([key, inner]) => leaves(inner, path + key, depth + 1));
}

/** The last key of a path is the column. */
function leaf(path: string, value: unknown): GridCell {
  const [, row = "", column = path] = /^(.*?)\.?([^.]*)$/s.exec(path) ?? [];
  return { row: row === "" ? "document" : row, column, text: JSON.stringify(value) };
}

/** A row of CSV is called after its first fields, which say what the number is. */
function fields(text: string): GridCell[] {
  const [header = [], ...rows] = text
    .split("\n")
    .filter((line) => line !== "")
    .map(splitCsv);
  return [
    ...header.map((name, index) => ({ row: "header", column: String(index + 1), text: name })),
    ...rows.flatMap((row) => {
      const name = row.slice(0, 3).join(" ");
      return row.map((cell, index) => ({
        row: name,
        column: header[index] ?? String(index + 1),
        text: cell,
      }));
    }),
  ];
}

/** RFC 4180 without line ends inside of fields, which tables of ours never have. */
function splitCsv(line: string): string[] {
  const found = line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...found].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "");
}

/** Tables of Markdown with the titles of their columns; other lines are one cell. */
function markdown(text: string): GridCell[] {
  const all = text.split("\n");
  let titles: readonly string[] = [];
  return all.flatMap((line, index) => {
    const row = `line ${index + 1}`;
    if (!line.startsWith("|")) return [{ row, column: "1", text: line }];
    const cells = line
      .split(/(?<!\\)\|/)
      .slice(1)
      .map((cell) => cell.trim());
    if (all[index + 1]?.startsWith("| ---") === true) titles = cells;
    return cells.map((cell, place) => ({
      row,
      column: titles[place] ?? String(place + 1),
      text: cell,
    }));
  });
}

function lines(text: string, separator: string | RegExp | undefined): GridCell[] {
  return text.split("\n").flatMap((line, index) => {
    const row = `line ${index + 1}`;
    const cells = separator === undefined ? [line] : line.split(separator);
    return cells.map((cell, place) => ({ row, column: String(place + 1), text: cell }));
  });
}

function numbered(cells: readonly GridCell[]): readonly GridCell[] {
  const seen = new Map<string, number>();
  return cells.map((cell) => {
    const key = `${cell.row}\n${cell.column}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    return count === 1 ? cell : { ...cell, row: `${cell.row} (${count})` };
  });
}
