import assert from "node:assert/strict";
import { test } from "node:test";
import { publicationOf } from "../../../analysis/publication.ts";
import type { Publication } from "../../../contracts/plan.ts";

const bundle = (change: { class?: "lab" | "metal"; commit?: string; dirty?: boolean }) => ({
  testbed: { name: "t", class: change.class ?? ("metal" as const), scheduling: "other" as const },
  commit: change.commit ?? "0123456",
  dirty: change.dirty ?? false,
});

const cases: [
  name: string,
  publishes: Publication | undefined,
  change: Parameters<typeof bundle>[0],
  level: Publication,
  banner: RegExp | undefined,
][] = [
  ["results of metal", "results", {}, "results", undefined],
  ["results of a lab", "results", { class: "lab" }, "internal", /^lab: not comparable to bare/],
  ["results with local changes", "results", { dirty: true }, "internal", /local changes/],
  ["results of no commit", "results", { commit: "unknown" }, "internal", /local changes/],
  ["internal results", "internal", {}, "internal", /^for internal use: the plan says so$/],
  ["a plan that says nothing", undefined, {}, "nothing", /^publish nothing of it/],
  ["a lab's plan that says nothing", undefined, { class: "lab" }, "nothing", /publish nothing/],
];
for (const [name, publishes, change, level, banner] of cases) {
  test(`${name}: at most ${level}`, () => {
    const found = publicationOf(publishes === undefined ? {} : { publishes }, bundle(change));
    assert.equal(found.level, level);
    if (banner === undefined) assert.equal(found.banner, undefined);
    else assert.match(found.banner ?? "", banner);
  });
}
