/** The shape of a table for people, as rows of text; renderers lay it out. */

export type Table = {
  readonly title: string;
  /** The first column is text, the others are aligned as told. */
  readonly columns: readonly { readonly title: string; readonly align: "left" | "right" }[];
  readonly rows: readonly (readonly string[])[];
  readonly notes: readonly string[];
};

/** A column of words. */
export const left = (title: string) => ({ title, align: "left" as const });

/** A column of numbers. */
export const right = (title: string) => ({ title, align: "right" as const });
