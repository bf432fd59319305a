import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { $ } from "zx";
import { Failure } from "../../../contracts/failure.ts";
import { parseLibraries } from "../../../tools/host-files.ts";
import { readImage, writeImage } from "../../../tools/image-archive.ts";
import { imageIndexSchema, imageReference, readImageIndex } from "../../../tools/image-index.ts";
import { determinants, type Image, imageDocuments, layerEntries } from "../../../tools/image.ts";
import { composeImages } from "../../../tools/images.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "image-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

async function echo(content: string): Promise<Image> {
  const source = path.join(directory, `source-${sha256(content)}`);
  await writeFile(source, content);
  const about = { source, sha256: sha256(content), bytes: content.length };
  return {
    name: "example.local/echo",
    tag: "1.2.3",
    entrypoint: ["/bin/echo", "--loud"],
    environment: { PATH: "/bin" },
    user: "65534:65534",
    entries: [
      { kind: "file", path: "/bin/echo", executable: true, ...about },
      { kind: "link", path: "/bin/again", target: "echo" },
      { kind: "text", path: "/etc/passwd", text: "root:x:0:0::/:\n" },
      { kind: "directory", path: "/tmp", mode: 0o1777 },
    ],
  };
}

test("the same contents give the same bytes, and so the same digest", async () => {
  const [one, two] = [path.join(directory, "one.tar"), path.join(directory, "two.tar")];
  const image = await echo("#!hello");
  const first = await writeImage(one, image, "amd64");
  const reversed = { ...image, entries: [...image.entries].reverse() };
  assert.equal(await writeImage(two, reversed, "amd64"), first);
  assert.deepEqual(await readFile(one), await readFile(two));
});

test("one changed byte, name of a file or mode gives another digest", async () => {
  const digest = (image: Image) => writeImage(path.join(directory, "x.tar"), image, "amd64");
  const image = await echo("#!hello");
  const without = (kind: string) => image.entries.filter((entry) => entry.kind !== kind);
  const digests = [
    await digest(image),
    await digest(await echo("#!hellO")),
    await digest({ ...image, entrypoint: ["/bin/again"] }),
    await digest({
      ...image,
      entries: [...without("link"), { kind: "link", path: "/bin/more", target: "echo" }],
    }),
    await digest({
      ...image,
      entries: [...without("directory"), { kind: "directory", path: "/tmp", mode: 0o755 }],
    }),
  ];
  assert.equal(new Set(digests).size, digests.length);
});

test("the key of an image follows what is in it, not where that lies", async () => {
  const image = await echo("#!hello");
  const key = (of: Image) => JSON.stringify(determinants(of));
  const moved = image.entries.map((e) => (e.kind === "file" ? { ...e, source: "/elsewhere" } : e));
  assert.equal(key({ ...image, entries: moved }), key(image));
  assert.notEqual(key(await echo("#!hellO")), key(image));
  assert.notEqual(key({ ...image, user: "0:0" }), key(image));
});

test("the entry point is found by reading the archive as any runtime would", async () => {
  const file = path.join(directory, "echo.tar");
  const digest = await writeImage(file, await echo("#!hello"), "amd64");
  const found = await readImage(file);
  assert.deepEqual(found.entrypoint, ["/bin/echo", "--loud"]);
  assert.equal(found.user, "65534:65534");
  assert.equal(found.digest, digest);
  assert.deepEqual(found.names, ["example.local/echo:1.2.3", `example.local/echo@${digest}`]);
});

test("the layer unpacks to the files, with their modes and links", async () => {
  const file = path.join(directory, "echo.tar");
  await writeImage(file, await echo("#!hello"), "amd64");
  const { layers } = await readImage(file);
  const blob = `blobs/${(layers[0] ?? "").replace(":", "/")}`;
  const spawn = $({ quiet: true, cwd: directory, timeout: "20s" });
  await spawn`tar -xf ${file} ${blob}`;
  const listed = await spawn`tar --numeric-owner --utc -tvf ${blob}`;
  assert.deepEqual(
    listed.stdout
      .trim()
      .split("\n")
      .map((line) => line.replace(/ +/g, " ")),
    [
      "drwxr-xr-x 0/0 0 1970-01-01 00:00 bin/",
      "lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/again -> echo",
      "-rwxr-xr-x 0/0 7 1970-01-01 00:00 bin/echo",
      "drwxr-xr-x 0/0 0 1970-01-01 00:00 etc/",
      "-rw-r--r-- 0/0 15 1970-01-01 00:00 etc/passwd",
      "drwxrwxrwt 0/0 0 1970-01-01 00:00 tmp/",
    ],
  );
});

test("a damaged archive is refused", async () => {
  const file = path.join(directory, "echo.tar");
  await writeImage(file, await echo("#!hello"), "amd64");
  const bytes = await readFile(file);
  bytes.set(Buffer.from("#!hellO"), bytes.indexOf("#!hello"));
  await writeFile(file, bytes);
  await assert.rejects(readImage(file), (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.match(error.message, /blobs\/sha256\/[0-9a-f]{64} is damaged/);
    return true;
  });
  await writeFile(file, "no tar at all".repeat(100));
  await assert.rejects(readImage(file));
});

test("a source that shrank while it was written makes no image", async () => {
  const image = await echo("#!hello");
  const longer = image.entries.map((e) => (e.kind === "file" ? { ...e, bytes: e.bytes + 1 } : e));
  const file = path.join(directory, "echo.tar");
  await assert.rejects(writeImage(file, { ...image, entries: longer }, "amd64"));
});

test("digests of the documents are those of the OCI image format", () => {
  // Known by hand: the digest of `{}` and the layout file that the format prescribes.
  const layer = { digest: `sha256:${sha256("{}")}`, bytes: 2 };
  const image = { name: "n", tag: "t", entrypoint: ["/x"], environment: {}, entries: [] };
  const { files, manifestDigest, layerPath } = imageDocuments(image, layer, "amd64");
  assert.equal(
    layerPath,
    "blobs/sha256/44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
  );
  assert.equal(files.get("oci-layout")?.toString(), '{"imageLayoutVersion":"1.0.0"}');
  const manifest = files.get(`blobs/${manifestDigest.replace(":", "/")}`)?.toString() ?? "";
  assert.equal(manifestDigest, `sha256:${sha256(manifest)}`);
  assert.match(manifest, /"layers":\[{[^}]*"digest":"sha256:44136fa3/);
});

test("paths in an image are absolute, plain and there once", () => {
  const image = { name: "n", tag: "t", entrypoint: ["/x"], environment: {} };
  const text = (at: string) => ({ kind: "text", path: at, text: "" }) as const;
  for (const wrong of ["bin/x", "/bin/../x", "/bin//x"]) {
    assert.throws(() => layerEntries({ ...image, entries: [text(wrong)] }), /absolute and plain/);
  }
  assert.throws(() => layerEntries({ ...image, entries: [text("/x"), text("/x")] }), /twice/);
});

test("ldd's lines give paths, and what is missing by name", () => {
  const text = [
    "\tlinux-vdso.so.1 (0x00007f47f5df1000)",
    "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f47eff20000)",
    "\tlibmnl.so.0 => not found",
    "\t/lib64/ld-linux-x86-64.so.2 (0x00007f47f5df3000)",
  ].join("\n");
  assert.deepEqual(parseLibraries(text), {
    found: ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"],
    missing: ["libmnl.so.0"],
  });
  assert.deepEqual(parseLibraries("\tstatically linked\n"), { found: [], missing: [] });
});

test("each image has its program where its entry point says, and no registry in its name", () => {
  const take = (name: string) => ({ version: "9", source: name, sha256: sha256(name), bytes: 1 });
  const library = { kind: "text", path: "/lib/libc.so.6", text: "c" } as const;
  const iptables = [library, { kind: "text", path: "/usr/sbin/iptables", text: "i" } as const];
  const images = composeImages(take, [library], iptables);
  assert.deepEqual(
    images.map(({ id }) => id),
    ["pause", "service", "envoy", "proxyv2", "istiod"],
  );
  for (const { id, name, entrypoint, entries } of images) {
    assert.equal(name, `ztbench.local/${id}`);
    const paths = entries.map((entry) => entry.path);
    assert.ok(paths.includes(entrypoint[0] ?? ""), id);
    assert.equal(new Set(paths).size, paths.length, id);
  }
  const proxy = images.find(({ id }) => id === "proxyv2");
  const has = (at: string) => proxy?.entries.some((entry) => entry.path === at);
  assert.ok(has("/var/lib/istio/envoy/envoy_bootstrap_tmpl.json"));
  assert.ok(has("/usr/local/bin/envoy"));
  assert.ok(has("/usr/sbin/iptables"));
});

test("pods name an image by digest alone", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  assert.equal(imageReference({ name: "a.local/b", digest }), `a.local/b@${digest}`);
  assert.equal(
    imageIndexSchema.safeParse({ schema: "ztbench/images/1", images: [] }).success,
    true,
  );
});

test("a checkout without images names the command that makes them", async () => {
  await assert.rejects(readImageIndex(directory), (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.match(error.message, /index\.json: images were not made/);
    assert.match(error.hint ?? "", /--with-cluster/);
    return true;
  });
});
