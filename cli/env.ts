/** Prints what a shell needs for plain `pulumi` use. */
import { toolPaths } from "../tools/paths.ts";
import { engineEnvironment } from "./pulumi.ts";
import { readArguments, type Verb } from "./verb.ts";
import { currentWorkspace, root } from "./workspace.ts";

const usage = `./ztbench env

Use it as: eval "$(./ztbench env)"`;

export const env: Verb = {
  summary: "print the exports for plain pulumi use of the current testbed",
  usage,
  run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values } = readArguments(argv, options, { least: 0, most: 0 }, usage);
    const variables = engineEnvironment(currentWorkspace());
    const { bin } = toolPaths(root);
    if (values.json === true) {
      io.print(JSON.stringify({ ...variables, PATH: bin }));
      return Promise.resolve(0);
    }
    io.print(`export PATH=${quote(bin)}:"$PATH"`);
    for (const [name, value] of Object.entries(variables)) {
      io.print(`export ${name}=${quote(value)}`);
    }
    // An agent or cluster of the user's own must not leak into what is deployed.
    io.print("unset SSH_AUTH_SOCK KUBECONFIG");
    return Promise.resolve(0);
  },
};

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
