import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { planSchema } from "../../../contracts/plan.ts";
import { testbedSchema } from "../../../contracts/testbed.ts";

const plan = `schema: ztbench/plan/1
name: tiny
purpose: a test
seed: 1
blocks: 2
baseline: base
treatments:
  - { label: base, topology: baseline }
load:
  rateQps: 100
  warmupSeconds: 1
  durationSeconds: 2
  connections: 4
equivalenceMargin: 0.05
`;

const host = (name: string, role: string, last: number) => `  - name: ${name}
    role: ${role}
    managementAddress: 198.18.1.${last}
    identityFile: id
    hostKey: ssh-ed25519 AAAA
    dataAddress: 198.18.0.${last}
    nic: data0
    cpus: { system: "", irq: "", load: "0", proxy: "1", service: "1" }
`;
const testbed = `schema: ztbench/testbed/1
name: lab
class: lab
instance: 0123456789abcdef
dataNetwork: 198.18.0.0/24
scheduling: rr
hosts:
${host("client", "client", 10)}${host("gateway", "gateway", 20)}${host("server", "server", 30)}`;

function complaint(schema: Parameters<typeof parseDocument>[0], text: string): string {
  try {
    parseDocument(schema, text, "doc.yaml");
  } catch (error) {
    assert.ok(error instanceof Failure);
    assert.equal(error.code, "document");
    return error.message;
  }
  throw new Error("the document was accepted");
}

test("a good plan and a good testbed are accepted, with their defaults", () => {
  const parsed = parseDocument(planSchema, plan, "doc.yaml");
  assert.equal(parsed.treatments[0]?.driver, "vegeta-paced");
  assert.equal(parseDocument(testbedSchema, testbed, "doc.yaml").hosts[0]?.managementPort, 22);
});

const planCases: [name: string, from: string, to: string, expected: RegExp][] = [
  ["misspelt key", "seed: 1", "sede: 1", /doc\.yaml:4:1: sede: unknown key/],
  ["missing key", "seed: 1\n", "", /doc\.yaml:1:1: seed: .*found nothing/],
  ["wrong type", "blocks: 2", "blocks: two", /doc\.yaml:5:9: blocks: .*number.*found "two"/],
  ["rate 0", "rateQps: 100", "rateQps: 0", /10:12: load\.rateQps: must be greater than 0, found 0/],
  [
    "negative rate",
    "rateQps: 100",
    "rateQps: -5",
    /10:12: load\.rateQps: must be greater.*found -5/,
  ],
  [
    "duration shorter than warm-up",
    "warmupSeconds: 1",
    "warmupSeconds: 9",
    /12:20: load\.durationSeconds: must not be shorter than warmupSeconds \(9\), found 2/,
  ],
  [
    "baseline that is no label",
    "baseline: base",
    "baseline: none",
    /6:11: baseline: must be the label of a treatment \(base\), found "none"/,
  ],
  [
    "schema of the future",
    "plan/1",
    "plan/2",
    /1:9: schema: made by a newer ztbench, ztbench\/plan\/2, this one reads ztbench\/plan\/1$/,
  ],
  ["a rate beyond any driver", "rateQps: 100", "rateQps: 200000", /must be at most 100000, found/],
  [
    "more treatments than can be compared",
    "treatments:\n",
    `treatments:\n${"  - { label: base, topology: baseline }\n".repeat(20_000)}`,
    /^doc\.yaml:8:3: treatments: must be 100 treatments at most, found \[[^\n]{1,80}$/,
  ],
  ["broken YAML", "blocks: 2", "blocks: [2", /doc\.yaml:\d+:\d+: /],
  ["key given twice", "seed: 1", "seed: 1\nseed: 2", /doc\.yaml:5:1: /],
];
for (const [name, from, to, expected] of planCases) {
  test(`a plan with ${name} is refused with its position`, () => {
    assert.match(complaint(planSchema, plan.replace(from, to)), expected);
  });
}

const testbedCases: [name: string, from: string, to: string, expected: RegExp][] = [
  ["a duplicate role", "role: gateway", "role: server", /hosts\.2\.role: role server is already/],
  ["a missing role", "role: gateway", "role: client", /a host with role gateway is missing/],
  [
    "a duplicate address",
    "198.18.0.20",
    "198.18.0.10",
    /dataAddress is already used by hosts\[0\]/,
  ],
  [
    "no host key",
    "hostKey: ssh-ed25519 AAAA",
    "hostKey: AAAA",
    /12:14: hosts\.0\.hostKey: must be/,
  ],
  [
    "CPUs in descending order",
    'load: "0"',
    'load: "3-1"',
    /15:40: hosts\.0\.cpus\.load: must be numbers and asc/,
  ],
  [
    "CPUs beyond any machine",
    'load: "0"',
    'load: "0-99999999999"',
    /0\.cpus\.load: must be numbers/,
  ],
  ["an IPv6 address", "198.18.1.10", "::1", /hosts\.0\.managementAddress: must be an IPv4 address/],
  [
    "one machine for two roles",
    "198.18.1.20",
    "198.18.1.10",
    /hosts\.1\.managementAddress: address and port are already used by hosts\[0\]/,
  ],
  [
    "a data address outside of its network",
    "198.18.0.20",
    "198.18.7.20",
    /hosts\.1\.dataAddress: must lie in dataNetwork 198\.18\.0\.0\/24, found "198\.18\.7\.20"/,
  ],
  [
    "a line break in a path that SSH reads",
    "identityFile: id",
    'identityFile: "id\\nProxyCommand x"',
    /11:19: hosts\.0\.identityFile: must be a path without control characters/,
  ],
  [
    "a user that SSH takes for an option",
    "identityFile: id",
    'identityFile: id\n    user: "-oProxyCommand=x"',
    /hosts\.0\.user: must be a user name/,
  ],
  ["an empty document", testbed, "", /doc\.yaml:1:1: document: /],
];
for (const [name, from, to, expected] of testbedCases) {
  test(`a testbed with ${name} is refused with its position`, () => {
    assert.match(complaint(testbedSchema, testbed.replace(from, to)), expected);
  });
}

test("all problems are told at once", () => {
  const text = plan.replace("seed: 1", "sede: 1").replace("blocks: 2", "blocks: 0");
  assert.equal(complaint(planSchema, text).split("\n").length, 3);
});

const syntaxCases: [name: string, text: string, expected: RegExp][] = [
  ["an alias bomb", bombOf(9), /doc\.yaml:2:8: aliases: repeat too much/],
  ["an alias of itself", "a: &a [*a]\n", /1:8: alias \*a: repeats what it is a part of/],
  ["an alias without anchor", plan.replace("seed: 1", "seed: *no"), /4:7: alias \*no: has no/],
  ["nesting without end", "[".repeat(100_000), /doc\.yaml:1:\d+: document: is nested too deep/],
  ["a second document", `${plan}---\n${plan}`, /:15:1: document: must be the only one/],
  ["a key that is a list", `? [a]\n: 1\n${plan}`, /1:3: key: must be plain text/],
  ["a tag that nobody knows", plan.replace("tiny", "!foo tiny"), /2:7: not YAML: unresolved tag/],
  ["a version of YAML to come", `%YAML 9.9\n---\n${plan}`, /1:7: not YAML: unsupported YAML/],
  ["bytes that are no text", "\0\x01\xff{", /doc\.yaml:1:1: /],
  ["tabs for indentation", plan.replace("  - {", "\t- {"), /8:1: not YAML: tabs are not/],
  ["more characters than any document has", "#".repeat(4_194_305), /too long, 4194305 characters/],
];
for (const [name, text, expected] of syntaxCases) {
  test(`a document with ${name} is refused with its position`, () => {
    assert.match(complaint(planSchema, text), expected);
  });
}

/** Ten times as many with each line, were it ever written out. */
function bombOf(lines: number): string {
  const names = "abcdefghijklmnop";
  const line = (index: number) => {
    const tenfold = Array(10)
      .fill(`*${names.charAt(index)}`)
      .join(",");
    return `${names.charAt(index + 1)}: &${names.charAt(index + 1)} [${tenfold}]\n`;
  };
  return `a: &a [x]\n${Array.from({ length: lines }, (_, index) => line(index)).join("")}`;
}

test("JSON as ztbench writes it is read as the same YAML is, with what the schema adds", () => {
  const read = parseDocument(planSchema, plan, "doc.yaml");
  const json = `${JSON.stringify(read, null, 2)}\n`;
  assert.deepEqual(parseDocument(planSchema, json, "doc.json"), read);
  const bare = json.replace(/\n *"driver": "vegeta-paced",/, "");
  assert.notEqual(bare, json);
  assert.equal(parseDocument(planSchema, bare, "doc.json").treatments[0]?.driver, "vegeta-paced");
});

test("JSON with a key that comes twice or does not belong is refused with its position", () => {
  const json = JSON.stringify(parseDocument(planSchema, plan, "doc.yaml"), null, 2);
  const twice = json.replace('"seed": 1,', '"seed": 1,\n  "seed": 1,');
  assert.match(complaint(planSchema, twice), /^doc\.yaml:6:3: seed: key is already used above$/);
  const strange = json.replace('"seed": 1,', '"sede": 1,');
  assert.match(complaint(planSchema, strange), /doc\.yaml:5:3: sede: unknown key/);
});

test("byte order mark and Windows line ends do no harm", () => {
  const text = `\uFEFF${plan.replaceAll("\n", "\r\n")}`;
  assert.equal(parseDocument(planSchema, text, "doc.yaml").seed, 1);
});

test("no message quotes the parser's own position, which would be a second one", () => {
  assert.doesNotMatch(complaint(planSchema, plan.replace("blocks: 2", "blocks: [2")), /at line/);
});

test("of a hundred thousand problems the first are told, and how many more there are", () => {
  const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}: 1\n`).join("");
  const lines = complaint(planSchema, plan + keys).split("\n");
  assert.match(lines[0] ?? "", /doc\.yaml:15:1: k0: unknown key/);
  assert.equal(lines.at(-1), "doc.yaml: and 99980 problems more");
});
