import assert from "node:assert/strict";
import { test } from "node:test";
import { renderGateway } from "../../../topologies/envoy.ts";
import { renderFirewall } from "../../../topologies/firewall.ts";
import { quoteArgument } from "../../../topologies/units.ts";

const socket = (port: number) => ({ address: "198.18.0.9", port });

function gatewayFilters(): { name: string; typed_config: Record<string, unknown> }[] {
  const text = renderGateway({
    listen: socket(1),
    admin: socket(2),
    downstreamHttp: "1.1",
    upstream: socket(3),
    upstreamHttp: "2",
    issuer: socket(4),
  });
  const bootstrap = JSON.parse(text) as {
    static_resources: {
      listeners: { filter_chains: { filters: { typed_config: { http_filters: [] } }[] }[] }[];
    };
  };
  const chain = bootstrap.static_resources.listeners[0]?.filter_chains[0]?.filters[0];
  assert.ok(chain);
  return chain.typed_config.http_filters;
}

test("the gateway strips identity headers before it looks at tokens", () => {
  const [first, second] = gatewayFilters();
  assert.equal(first?.name, "envoy.filters.http.header_mutation");
  assert.deepEqual(first.typed_config["mutations"], {
    request_mutations: [
      { remove: "x-user-id" },
      { remove: "x-tenant-id" },
      { remove: "x-user-roles" },
    ],
  });
  assert.equal(second?.name, "envoy.filters.http.jwt_authn");
});

test("identity headers are stripped by a filter of the whole chain, not of single routes", () => {
  const text = JSON.stringify(gatewayFilters());
  assert.doesNotMatch(text, /typed_per_filter_config/);
});

test("a packet filter refuses everybody but those it allows", () => {
  const rules = renderFirewall([{ port: 8080, allows: ["198.18.0.20", "198.18.0.21"] }])
    .split("\n")
    .filter((line) => line.includes("dport"));
  assert.deepEqual(rules, [
    "    tcp dport 8080 ip saddr { 198.18.0.20, 198.18.0.21 } counter accept",
    "    tcp dport 8080 counter reject with tcp reset",
  ]);
});

test("arguments of a unit are taken literally", () => {
  assert.equal(quoteArgument("-listen=198.18.0.1:80"), "-listen=198.18.0.1:80");
  assert.equal(quoteArgument("50%"), "50%%");
  assert.equal(quoteArgument("$HOME"), "$$HOME");
  assert.equal(quoteArgument('a "b" c\\'), '"a \\"b\\" c\\\\"');
  assert.equal(quoteArgument(""), '""');
  assert.throws(() => quoteArgument("a\nb"), /line break/);
});
