import assert from "node:assert/strict";
import { test } from "node:test";
import { debianPackages } from "../../../tools/debian-packages.ts";
import { refusal } from "../../../tools/debian.ts";

const missing = debianPackages.filter(({ name }) => ["nftables", "openssh-client"].includes(name));

test("without root the missing packages and the command are named", () => {
  const failure = refusal(missing, { isRoot: false, hasApt: true });
  assert.equal(failure?.code, "testbed");
  assert.equal(failure.message, "Debian packages: missing nftables, openssh-client, and not root");
  const command = "apt-get install -y --no-install-recommends nftables openssh-client";
  assert.ok(failure.hint?.includes(command), failure.hint);
});

test("without apt-get the commands are named that another system must provide", () => {
  const failure = refusal(missing, { isRoot: true, hasApt: false });
  assert.match(failure?.message ?? "", /no apt-get$/);
  assert.equal(failure?.hint, "install what has the commands nft, ssh, ssh-keygen");
});

test("root with apt-get is not refused", () => {
  assert.equal(refusal(missing, { isRoot: true, hasApt: true }), undefined);
});
