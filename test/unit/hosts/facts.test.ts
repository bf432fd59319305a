import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { parseFacts, renderFacts, shortFacts } from "../../../hosts/facts.ts";
import { runBash } from "../../support/bash.ts";
import { exampleHost } from "./testbed.ts";

test("facts are gathered even where most are absent, and say why", () => {
  const { exitCode, stdout } = runBash(renderFacts({ ...exampleHost(), nic: "nope0" }));
  assert.equal(exitCode, 0);
  const facts = parseFacts(stdout);
  assert.match(facts["kernel"] ?? "", /^Linux /);
  assert.match(facts["nic-driver"] ?? "", /^not available: .*nope0|^not available: .*No such/);
  for (const name of ["cmdline", "os-release", "mitigations", "smt", "sched-rr", "sysctl-net"]) {
    assert.ok((facts[name] ?? "").length > 0, name);
  }
});

test("facts keep their lines, also empty ones and those that look like a name", () => {
  assert.deepEqual(parseFacts("a:\n\tone\n\t\n\tb:\nb:\n\ttwo\n"), { a: "one\n\nb:", b: "two" });
});

test("facts that are not understood are refused", () => {
  for (const text of ["\tno name\n", "a:\n\tx\na:\n\ty\n", "a:\nno tab\n"]) {
    assert.throws(() => parseFacts(text), Failure, JSON.stringify(text));
  }
});

test("short facts are those of one line", () => {
  assert.deepEqual(shortFacts({ a: "x", b: "x\ny", c: "x".repeat(100) }), { a: "x" });
});
