import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { completeArtifacts, readArtifacts } from "../../../tools/artifacts.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-artifacts-"));
const served = new Map([["/k3s", "the program"]]);
const server = createServer((request, response) => {
  const content = served.get(request.url ?? "");
  response.writeHead(content === undefined ? 404 : 200).end(content);
});
let origin = "";
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.close();
  rmSync(scratch, { recursive: true });
});

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
const contents: Readonly<Record<string, string>> = {
  k3s: "the program",
  "images.tar.zst": "the images",
  "tigera-operator.yaml": "the operator",
};
const roleOf: Readonly<Record<string, string>> = {
  k3s: "k3s",
  "images.tar.zst": "k3s-images",
  "tigera-operator.yaml": "calico-operator",
};

/** A complete directory; `urls` are what the document says of where files are. */
async function directoryWith(urls: Readonly<Record<string, string>> = {}) {
  const directory = mkdtempSync(path.join(scratch, "air-"));
  const files = Object.entries(contents).map(([name, text]) => {
    writeFileSync(path.join(directory, name), text);
    const url = urls[name];
    return { name, role: roleOf[name], sha256: digestOf(text), ...(url ? { url } : {}) };
  });
  const document = path.join(directory, "artifacts.yaml");
  const head = { schema: "ztbench/artifacts/1", k3s: "1.28.5+k3s1", calico: "3.26.4" };
  writeFileSync(document, JSON.stringify({ ...head, imagesFrom: "archives", files }));
  return { directory, store: await readArtifacts(document) };
}

const rejects = (run: Promise<void>, message: RegExp) =>
  assert.rejects(run, (error) => {
    assert.ok(error instanceof Failure && error.code === "testbed");
    assert.match(error.message, message);
    return true;
  });

suite("files of a cluster", () => {
  test("that are all there with their digests pass, without a network", async () => {
    const { store } = await directoryWith();
    await completeArtifacts(store);
  });

  test("that are missing in an air gap are named, all of them", async () => {
    const { directory, store } = await directoryWith();
    rmSync(path.join(directory, "images.tar.zst"));
    rmSync(path.join(directory, "k3s"));
    await rejects(
      completeArtifacts(store),
      /^artifact k3s: missing.*\nartifact images\.tar\.zst: /,
    );
  });

  test("with a wrong digest are refused with both digests", async () => {
    const { directory, store } = await directoryWith();
    writeFileSync(path.join(directory, "images.tar.zst"), "something else");
    const [found, wanted] = [digestOf("something else"), digestOf("the images")];
    const message = new RegExp(`^artifact images.tar.zst: .*${found}, expected ${wanted}$`);
    await rejects(completeArtifacts(store), message);
  });

  test("that nobody named are refused, since they would go to the hosts unseen", async () => {
    const { directory, store } = await directoryWith();
    writeFileSync(path.join(directory, "surprise.tar"), "");
    await rejects(
      completeArtifacts(store),
      /^artifact surprise\.tar: not named by artifacts\.yaml$/,
    );
  });

  test("are fetched where the document says so, once", async () => {
    const { directory, store } = await directoryWith({ k3s: `${origin}/k3s` });
    rmSync(path.join(directory, "k3s"));
    await completeArtifacts(store);
    assert.equal(readFileSync(path.join(directory, "k3s"), "utf8"), "the program");
    served.delete("/k3s");
    await completeArtifacts(store);
    served.set("/k3s", "the program");
  });

  test("that were fetched with a wrong digest are not kept", async () => {
    const { directory, store } = await directoryWith({ k3s: `${origin}/k3s` });
    rmSync(path.join(directory, "k3s"));
    served.set("/k3s", "another program");
    await rejects(completeArtifacts(store), /^artifact k3s: not the file that was meant/);
    served.set("/k3s", "the program");
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.startsWith("k3s")),
      [],
    );
  });

  test("that cannot be fetched say why", async () => {
    for (const [url, reason] of [
      [`${origin}/absent`, /answered 404$/],
      ["http://127.0.0.1:1/k3s", /cannot be fetched from .*/],
    ] as const) {
      const { directory, store } = await directoryWith({ k3s: url });
      rmSync(path.join(directory, "k3s"));
      await rejects(completeArtifacts(store), reason);
      assert.equal(existsSync(path.join(directory, "k3s")), false);
    }
  });
});

test("an artifacts document that cannot be read is named", async () => {
  const nowhere = path.join(scratch, "nowhere.yaml");
  await assert.rejects(readArtifacts(nowhere), (error) => {
    assert.ok(error instanceof Failure && error.code === "document");
    return true;
  });
});
