import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEvents } from "../../../cli/deployer.ts";

const line = (event: object) => JSON.stringify({ sequence: 1, timestamp: 1, ...event });
const told = (severity: string, message: string, urn?: string) =>
  line({ diagnosticEvent: { severity, message, color: "never", ...(urn ? { urn } : {}) } });
const outputs = (type: string, values: object) =>
  line({ resOutputsEvent: { metadata: { op: "create", type, new: { outputs: values } } } });

test("the stack's outputs are found among those of its resources", () => {
  const events = parseEvents(
    [
      outputs("command:remote:Command", { stdout: "no" }),
      outputs("pulumi:pulumi:Stack", { deployment: { a: 1 } }),
      line({ summaryEvent: { result: "succeeded" } }),
    ].join("\n"),
  );
  assert.deepEqual(events, { outputs: { deployment: { a: 1 } }, errors: [] });
});

test("errors name their resource, and debug chatter is left out", () => {
  const urn = "urn:pulumi:jwt::ztbench::command:remote:Command::server-units";
  const events = parseEvents(
    [told("debug", "Registering"), told("error", "exit status 3\n", urn), "garbage"].join("\n"),
  );
  assert.deepEqual(events.errors, ["server-units: exit status 3"]);
});

test("a deleted stack has no outputs", () => {
  const event = line({
    resOutputsEvent: { metadata: { op: "delete", type: "pulumi:pulumi:Stack", new: null } },
  });
  assert.deepEqual(parseEvents(event), { outputs: {}, errors: [] });
});
