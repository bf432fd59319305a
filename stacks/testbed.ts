/** Where a Pulumi program gets its testbed from: the document, or what the hosts stack put out. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as pulumi from "@pulumi/pulumi";
import { parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { type Testbed, testbedSchema } from "../contracts/testbed.ts";
import type { Facts } from "../hosts/facts.ts";
import { resolveIdentities } from "../hosts/identity.ts";

/** The stack that prepares the hosts, as other stacks name it. */
const hostsStack = "organization/ztbench/hosts";

const root = path.resolve(import.meta.dirname, "..");

/**
 * The testbed document that the stack's configuration names, its paths made absolute.
 *
 * @throws Failure `document` if none is named, it cannot be read, or it is not a testbed
 */
export function configuredTestbed(): Testbed {
  const named = new pulumi.Config("ztbench").get("testbed");
  if (named === undefined) {
    throw new Failure(
      "document",
      "config ztbench:testbed: not set, the path of a testbed document",
      {
        hint: "pulumi config set ztbench:testbed testbeds/rack.local.yaml -s hosts",
      },
    );
  }
  const file = path.resolve(root, named);
  const testbed = parseDocument(testbedSchema, readDocument(file), named);
  return resolveIdentities(testbed, file);
}

function readDocument(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Failure("document", `config ztbench:testbed: cannot be read, found ${file}`, {
      cause,
      hint: "name a testbed document that exists, e.g. a copy of testbeds/rack.example.yaml",
    });
  }
}

export type DeployedTestbed = {
  readonly testbed: Testbed;
  /** Short facts by host, as of the last change to the hosts stack. */
  readonly facts: Readonly<Record<string, Facts>>;
};

/**
 * The testbed whose hosts are prepared, from the outputs of the hosts stack.
 *
 * @throws Failure `testbed` if the hosts are not up, or not as the configured document says by now
 */
export async function deployedTestbed(): Promise<DeployedTestbed> {
  const configured = configuredTestbed();
  const outputs = await stackOutputs(hostsStack).catch((cause: unknown) => {
    throw notUp("there is no such stack", cause);
  });
  const testbed = testbedSchema.safeParse(outputs["testbed"]);
  if (!testbed.success) {
    throw notUp(
      outputs["testbed"] === undefined
        ? "the stack has no outputs"
        : "its outputs are those of another version",
      testbed.error,
    );
  }
  if (testbed.data.instance !== configured.instance) {
    throw notUp(
      `they were prepared in boot ${testbed.data.instance ?? "none"} of the lab, ` +
        `this is ${configured.instance ?? "none"}`,
    );
  }
  if (!isDeepStrictEqual(testbed.data, configured)) {
    throw notUp("they were prepared for the testbed document as it was before");
  }
  return { testbed: testbed.data, facts: outputs["facts"] as DeployedTestbed["facts"] };
}

/**
 * Outputs of another stack, secrets in the open. By a plain invoke: a StackReference that fails
 * ends the program before it can say why.
 */
export async function stackOutputs(name: string): Promise<Record<string, unknown>> {
  const result = (await pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", { name })) as {
    outputs?: Record<string, unknown>;
  };
  return result.outputs ?? {};
}

function notUp(problem: string, cause?: unknown): Failure {
  return new Failure("testbed", `hosts: not up, ${problem}`, {
    cause,
    hint: "pulumi up -s hosts",
  });
}
