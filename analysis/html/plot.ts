/** The chart library behind one door: marks go in, an SVG without scripts comes out. */
import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { Markup, markup } from "./markup.ts";

export type PlotOptions = Omit<Plot.PlotOptions, "document" | "title" | "caption">;

/**
 * Renders a figure. The library draws in a document of its own, so nothing of a browser is needed.
 *
 * @param description what the plot shows, for readers who cannot see it
 */
export function figure(
  title: string,
  description: string,
  options: PlotOptions,
  around: { readonly legend?: Markup; readonly caption?: string } = {},
): Markup {
  // The library's types name those of a browser, which this program does not have.
  const { document } = parseHTML("<!doctype html><html><body></body></html>") as {
    readonly document: never;
  };
  const drawn = outerHtmlOf(
    Plot.plot({ ...options, ariaLabel: title, ariaDescription: description, document }),
  );
  // Built by the library with escaped text, from data and never from markup.
  const svg = new Markup(drawn.replace("<svg ", '<svg role="img" '));
  const { legend, caption } = around;
  return markup`<figure><figcaption><h3>${title}</h3></figcaption>
${legend}<div class="scroll" tabindex="0">${svg}</div>
${caption === undefined ? undefined : markup`<p class="note">${caption}</p>`}</figure>
`;
}

function outerHtmlOf(element: unknown): string {
  return (element as { readonly outerHTML: string }).outerHTML;
}
