/** A strict reader of XML 1.0 without DTDs, enough to tell whether a document is well-formed. */

export type Element = {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  readonly text: string;
};

type Open = {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: Element[];
  text: string;
};

const name = "[A-Za-z_:][A-Za-z0-9_:.-]*";
const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };

/**
 * Reads a whole document.
 *
 * @throws Error at the first thing that is not well-formed
 */
export function parseXml(document: string): Element {
  const illegal = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.exec(document);
  if (illegal) throw new Error(`character not allowed at ${illegal.index}`);
  const body = document.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, "");
  if (body === document) throw new Error("no XML declaration");
  const tag = new RegExp(`<(/?)(${name})((?:\\s+${name}="[^"<]*")*)\\s*(/?)>|([^<]+)`, "y");
  const root: Open = { name: "", attributes: {}, children: [], text: "" };
  const open: Open[] = [root];
  while (tag.lastIndex < body.length) {
    const at = tag.lastIndex;
    const match = tag.exec(body);
    const current = open.at(-1);
    if (match === null || current === undefined) throw new Error(`markup not well-formed at ${at}`);
    const [, closing, found = "", rest = "", empty, text] = match;
    if (text !== undefined) {
      if (current === root && text.trim() !== "") throw new Error(`text outside at ${at}`);
      current.text += unescape(text);
    } else if (closing === "/") {
      if (current.name !== found) throw new Error(`</${found}> closes <${current.name}> at ${at}`);
      open.pop();
    } else {
      const element = { name: found, attributes: attributesOf(rest), children: [], text: "" };
      current.children.push(element);
      if (empty !== "/") open.push(element);
    }
  }
  const [element] = root.children;
  if (open.length !== 1) throw new Error(`<${open.at(-1)?.name ?? ""}> is not closed`);
  if (element === undefined || root.children.length !== 1) throw new Error("not one root element");
  return element;
}

/** All elements of a name, in document order. */
export function elementsOf(element: Element, wanted: string): readonly Element[] {
  const inner = element.children.flatMap((child) => elementsOf(child, wanted));
  return element.name === wanted ? [element, ...inner] : inner;
}

function attributesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [, key = "", value = ""] of text.matchAll(new RegExp(`(${name})="([^"]*)"`, "g"))) {
    if (Object.hasOwn(attributes, key)) throw new Error(`attribute ${key} is given twice`);
    attributes[key] = unescape(value);
  }
  return attributes;
}

function unescape(text: string): string {
  return text.replace(/&([^;\s]*);?/g, (whole, entity: string) => {
    const character = whole.endsWith(";") ? entities[entity] : undefined;
    if (character === undefined) throw new Error(`entity not known: ${whole}`);
    return character;
  });
}
