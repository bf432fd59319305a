import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, suite, test } from "node:test";
import type { Knob } from "../../../hosts/knobs.ts";
import { FakeMachine } from "./fake-machine.ts";

const nic = "ens1f0np0";
const machines: FakeMachine[] = [];
after(() => {
  for (const { root } of machines) rmSync(root, { recursive: true });
});

/** Acts on the file `tc`; without a root of its own, a NIC has what the file `tc-default` says. */
const trafficControl = `
tc() {
  local file=$root/tc
  echo "tc $*" >>"$root/calls"
  [ "$1 $3 $4" = "qdisc dev ${nic}" ] || { echo "unexpected: tc $*"; return 1; }
  case $2 in
    show) cat "$file" ;;
    delete) cp "$root/tc-default" "$file" ;;
    replace)
      case $5 in
        root)
          case $8 in
            mq) { echo "qdisc mq $7 root "
              for i in 1 2 a; do echo "qdisc pfifo_fast 0: parent $7$i bands 3"; done; } >"$file" ;;
            fq_codel) echo "qdisc fq_codel $7 root refcnt 2 limit 10240p" >"$file" ;;
            *) echo 'Error: Specified qdisc kind is unknown.'; return 2 ;;
          esac ;;
        parent)
          grep -q " parent $6 " "$file" || { echo 'Error: Failed to find class'; return 2; }
          sed -i "s/.* parent $6 .*/qdisc $7 8001: parent $6 limit 10240p/" "$file" ;;
      esac ;;
  esac
}`;

const several = [
  "qdisc mq 0: root ",
  ...["1", "2", "a"].map((queue) => `qdisc pfifo_fast 0: parent :${queue} bands 3`),
  "qdisc clsact ffff: parent ffff:fff1",
].join("\n");
const single = "qdisc pfifo_fast 0: root refcnt 2 bands 3";

function machine(tc: string, byDefault = tc): FakeMachine {
  const queues = [0, 1, 9].map((queue) => [`sys/class/net/${nic}/queues/tx-${queue}/xps_cpus`, ""]);
  const made = new FakeMachine({
    ...(Object.fromEntries(queues) as Record<string, string>),
    "tc-default": byDefault,
    tc,
  });
  made.extra = trafficControl;
  machines.push(made);
  return made;
}

const knobs: readonly Knob[] = [
  { id: "qdisc", scope: "device", kind: "qdisc", target: nic, want: "fq_codel", why: "a test" },
];

suite("the queueing discipline of a NIC", () => {
  for (const [name, before] of [
    ["several queues", several],
    ["a single queue", single],
  ] as const) {
    test(`with ${name} is set, read back and given back to the kernel`, () => {
      const host = machine(before);
      assert.deepEqual(host.create(knobs), { qdisc: "applied fq_codel" });
      assert.match(host.get("tc"), /^qdisc (mq|fq_codel) 7a74: root /);
      assert.deepEqual(host.verify(knobs), ["qdisc applied fq_codel"]);
      assert.deepEqual(host.create(knobs), { qdisc: "applied fq_codel" }, "and once more");
      assert.equal(host.remove(), "");
      assert.equal(host.get("tc"), before);
    });
  }

  test("is that of every queue, also of the tenth, which tc counts in hexadecimal", () => {
    const host = machine(several);
    host.create(knobs);
    const queues = host.get("tc").match(/^qdisc fq_codel 8001: parent 7a74:[12a] /gm);
    assert.equal(queues?.length, 3);
  });

  test("that is the kernel's own choice already is left alone", () => {
    for (const text of [single, several]) {
      const own = text.replaceAll("pfifo_fast", "fq_codel");
      const host = machine(own);
      assert.deepEqual(host.create(knobs), { qdisc: "already fq_codel" });
      assert.equal(host.remove(), "");
      assert.equal(host.get("tc"), own);
      assert.equal(host.calls("tc qdisc replace"), 0);
    }
  });

  test("that somebody else chose is refused, even of the same kind", () => {
    const foreign = "qdisc fq_codel 1: root refcnt 2 limit 42p";
    const host = machine(foreign, single);
    const reason = `chosen by somebody else: tc qdisc show dev ${nic}`;
    assert.deepEqual(host.create(knobs), { qdisc: `refused fq_codel 1:, ${reason}` });
    assert.equal(host.remove(), "");
    assert.equal(host.get("tc"), foreign);
  });

  test("that the kernel does not know is refused in its words, and nothing stays half-way", () => {
    for (const before of [single, several]) {
      const host = machine(before);
      const unknown = knobs.map((knob) => ({ ...knob, want: "fq" }));
      host.extra += `
        eval "real_$(declare -f tc)"
        tc() { [[ $* != *' fq' ]] || { echo 'Error: Specified qdisc kind is unknown.'; return 2; }
          real_tc "$@"; }`;
      const reason = "Error: Specified qdisc kind is unknown.";
      assert.deepEqual(host.create(unknown), { qdisc: `refused pfifo_fast, ${reason}` });
      assert.equal(host.get("tc"), before);
    }
  });

  test("is unsupported on a link without a queue, or where tc does not answer", () => {
    const link = machine("qdisc noqueue 0: root refcnt 2");
    assert.deepEqual(link.create(knobs), { qdisc: `unsupported, ${nic} has no queue of its own` });
    const bare = machine(single);
    bare.extra = 'tc() { echo "tc: command not found"; return 127; }';
    assert.deepEqual(bare.create(knobs), { qdisc: "unsupported, tc: command not found" });
  });

  test("is restored only while it is as it was set", () => {
    const host = machine(several);
    host.create(knobs);
    const foreign = "qdisc fq 1: root refcnt 2 limit 42p";
    host.set("tc", foreign);
    assert.deepEqual(host.verify(knobs), ["qdisc drifted fq 1:"]);
    assert.match(host.remove(), /^left qdisc: foreign change, found fq 1:, set was fq_codel/);
    assert.equal(host.get("tc"), foreign);
  });
});
