/** How treatments are told apart in plots: colour and dash pattern, the same in every plot. */
import type { Markup } from "./markup.ts";
import { type Content, markup } from "./markup.ts";

export type SeriesStyle = {
  readonly label: string;
  /** A colour of the style sheet, so that it fits light, dark and paper. */
  readonly color: string;
  readonly dash: string;
  readonly border: "solid" | "dashed" | "dotted";
};

/** Colours of the style sheet, the first one of the baseline. */
export const seriesColors = 8;
const dashes = [
  { dash: "none", border: "solid" },
  { dash: "6 3", border: "dashed" },
  { dash: "1.5 2.5", border: "dotted" },
] as const;

/** Styles in the order of the labels; the baseline is grey, neighbours differ in their dashes. */
export function stylesOf(labels: readonly string[], baseline: string): readonly SeriesStyle[] {
  let next = 0;
  return labels.map((label) => {
    if (label === baseline) return { label, color: "var(--s0)", ...dashes[0] };
    const color = `var(--s${(next % (seriesColors - 1)) + 1})`;
    const pattern = dashes[next % dashes.length] ?? dashes[0];
    next += 1;
    return { label, color, ...pattern };
  });
}

/** A legend in text, so that it can be read aloud. */
export function legend(styles: readonly SeriesStyle[]): Markup {
  const items: Content[] = styles.map(
    ({ label, color, border }) =>
      markup`<li><span class="key" style="border-top:3px ${border} ${color}"></span>${label}</li>
`,
  );
  return markup`<ul class="legend">${items}</ul>
`;
}
