/**
 * Where a figure comes from, as part of its type: a published figure is not a measured one, and
 * one from a lab is neither. The mark exists for the compiler alone.
 */

export type Provenance = "measured" | "recomputed" | "published" | "lab";

declare const provenance: unique symbol;

/** A figure of one provenance; figures of two are two types. */
export type From<P extends Provenance, T> = T & { readonly [provenance]: P };

/** Says where a figure comes from. To be called where it enters, and nowhere else. */
export function from<P extends Provenance, T>(_source: P, figure: T): From<P, T> {
  return figure as From<P, T>;
}

/** One figure over another of the same provenance; others have no ratio. */
export function ratioOf<P extends Provenance>(
  figure: From<P, number>,
  reference: From<NoInfer<P>, number>,
): From<P, number> {
  return (figure / reference) as From<P, number>;
}
