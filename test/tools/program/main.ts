/** One command here and one over SSH, so that a test can watch them through their lives. */
import { readFileSync } from "node:fs";
import { local, remote } from "@pulumi/command";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
if (config.getBoolean("broken") === true) {
  const error = new pulumi.RunError("broken on purpose");
  delete error.stack; // formatting it takes Node 20 a minute
  throw error;
}
const directory = config.require("directory");
const generation = config.require("generation");

const here = new local.Command("here", {
  create: `echo made ${generation} | tee -a ${directory}/here`,
  update: `echo changed ${generation} | tee -a ${directory}/here`,
  delete: `echo gone >> ${directory}/here`,
  addPreviousOutputInEnv: false,
});

const connection = {
  host: "127.0.0.1",
  port: config.requireNumber("port"),
  user: config.require("user"),
  privateKey: pulumi.secret(readFileSync(config.require("keyFile"), "utf8")),
  hostKey: config.require("hostKey"),
  dialErrorLimit: 3,
};

const there = new remote.Command(
  "there",
  {
    connection,
    create: `cat; echo made ${generation} >> ${directory}/there`,
    delete: `echo gone >> ${directory}/there`,
    stdin: config.requireSecret("token"),
    triggers: [generation],
    addPreviousOutputInEnv: false,
  },
  { dependsOn: here, deleteBeforeReplace: true },
);

if (config.getBoolean("endless") === true) {
  const create = `echo $$ > ${directory}/endless; sleep 600`;
  new remote.Command("endless", { connection, create });
}

export const said = here.stdout;
export const secretly = there.stdout;
export const title = process.title;
