/** Which of the optional programs a run of the installer makes. Pure. */
import type { ProgramGroup, Recipe } from "./programs.ts";

export type Choice<R> = {
  readonly wanted: readonly R[];
  /** Were there, but have changed, and nobody asked to make them anew. */
  readonly dropped: readonly R[];
};

/**
 * Recipes that were asked for. What an earlier run with more options put into the checkout stays
 * as long as it is current, so that a run without them takes nothing away.
 *
 * @param before names of the programs that the checkout has
 * @param cached keys that the cache has
 */
export function chooseRecipes<R extends Pick<Recipe, "name" | "key" | "groups">>(
  recipes: readonly R[],
  asked: ReadonlySet<ProgramGroup>,
  before: ReadonlySet<string>,
  cached: ReadonlySet<string>,
): Choice<R> {
  const isAsked = ({ groups }: R) => groups?.some((group) => asked.has(group)) ?? true;
  const rest = recipes.filter((recipe) => !isAsked(recipe) && before.has(recipe.name));
  const kept = new Set(rest.filter(({ key }) => cached.has(key)));
  return {
    wanted: recipes.filter((recipe) => isAsked(recipe) || kept.has(recipe)),
    dropped: rest.filter((recipe) => !kept.has(recipe)),
  };
}
