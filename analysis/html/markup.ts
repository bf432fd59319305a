/**
 * HTML as data: text put into a template is escaped, only what is already `Markup` is not. So no
 * label, failure text or file of a bundle can become markup.
 */

/** HTML that is safe to put into a page. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Content = string | number | Markup | undefined | readonly Content[];

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text as HTML shows it, in elements and in quoted attributes; control characters are marked. */
export function escapeHtml(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => entities[character] ?? "")
    .replace(/\p{Cc}/gu, (character) => (/[\n\t]/.test(character) ? character : "\u{FFFD}"));
}

/** Template tag: nothing for undefined, lists one after another, everything else as text. */
export function markup(strings: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return new Markup(strings.map((text, index) => `${text}${render(values[index])}`).join(""));
}

function render(content: Content): string {
  if (content === undefined) return "";
  if (content instanceof Markup) return content.text;
  if (typeof content === "object") return content.map(render).join("");
  return escapeHtml(String(content));
}

/** A link to a file of the bundle, relative to the page. */
export function fileLink(path: string, shown: Content = path): Markup {
  const href = path.split("/").map(encodeURIComponent).join("/");
  return markup`<a href="${href}">${shown}</a>`;
}

/** Text whose hyphenated words, and numbers with their %, stay on one line. */
export function unbroken(text: string): Content {
  return text
    .split(/(\S+-\S+|\S+ %|\d+ s\b)/)
    .map((part, i) => (i % 2 === 1 ? markup`<span class="unbroken">${part}</span>` : part));
}

/** A closed section; it opens without a script, also when a link leads to `id` inside of it. */
export function details(summary: Content, body: Content, id?: string): Markup {
  const identity = id === undefined ? undefined : markup` id="${id}"`;
  return markup`<details><summary>${summary}</summary>
<div class="inside"${identity}>${body}</div></details>
`;
}

export type Column = { readonly title: string; readonly align?: "left" | "right" };

/** A table whose first cell of each row names the row; a wide one scrolls by itself. */
export function table(
  caption: Content,
  columns: readonly Column[],
  rows: readonly (readonly Content[])[],
): Markup {
  const kind = columns.map(({ align }) => (align === "right" ? "number" : "text"));
  const head = columns.map(
    ({ title }, i) => markup`<th scope="col" class="${kind[i]}">${title}</th>`,
  );
  const body = rows.map(([first, ...rest]) => {
    const cells = rest.map((cell, i) => markup`<td class="${kind[i + 1]}">${cell}</td>`);
    return markup`<tr><th scope="row" class="${kind[0]}">${first}</th>${cells}</tr>
`;
  });
  return markup`<div class="scroll" tabindex="0"><table><caption>${caption}</caption>
<thead><tr>${head}</tr></thead>
<tbody>${body}</tbody></table></div>
`;
}
