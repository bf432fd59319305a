import assert from "node:assert/strict";
import { test } from "node:test";
import { publicationOf } from "../../../analysis/publication.ts";
import { type Plan, type Publication, treatmentSchema } from "../../../contracts/plan.ts";

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
const treatments = (...runtimes: Plan["treatments"][number]["runtime"][]) =>
  runtimes.map((runtime, i) =>
    treatmentSchema.parse({ label: `t${i}`, topology: "baseline", runtime }),
  );

for (const [name, publishes, change, level, banner] of cases) {
  test(`${name}: at most ${level}`, () => {
    const plan = { treatments: treatments("native"), ...(publishes && { publishes }) };
    const found = publicationOf(plan, bundle(change));
    assert.equal(found.level, level);
    if (banner === undefined) assert.equal(found.banner, undefined);
    else assert.match(found.banner ?? "", banner);
  });
}

test("of pods on a lab's cluster nothing is published, whatever the plan says", () => {
  const plan = { publishes: "results", treatments: treatments("native", "k3s") } as const;
  const { level, banner } = publicationOf(plan, bundle({ class: "lab" }));
  assert.equal(level, "nothing");
  assert.match(banner ?? "", /^lab cluster: function only/);
  assert.equal(publicationOf(plan, bundle({ class: "metal" })).banner, undefined);
});
