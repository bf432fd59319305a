/** Who takes the hosts, as the configuration of a stack says. */
import type * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";

/** @throws Failure `usage` if the configuration of this stack does not say */
export function configuredOwner(config: pulumi.Config, stack: string): string {
  const owner = config.get("owner");
  if (owner !== undefined) return owner;
  throw new Failure("usage", "config ztbench:owner: not set, the name of who takes the hosts", {
    hint: `./ztbench init TESTBED, or pulumi config set ztbench:owner NAME -s ${stack}`,
  });
}
