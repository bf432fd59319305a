/** IPv4 addresses as numbers, and which networks share some of them. Pure. */

/** `198.18.0.1` as a number of 32 bits. */
export function numberOfAddress(address: string): number {
  return address.split(".").reduce((number, octet) => number * 256 + Number(octet), 0);
}

/** The address that is this number of 32 bits. */
export function addressOfNumber(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

/** Whether two networks in CIDR form share an address; a bare address is a /32. */
export function overlaps(left: string, right: string): boolean {
  const [a, b] = [parsePrefix(left), parsePrefix(right)];
  const size = 2 ** (32 - Math.min(a.length, b.length));
  return Math.floor(a.number / size) === Math.floor(b.number / size);
}

function parsePrefix(text: string): { number: number; length: number } {
  const [address = "", length = "32"] = text.split("/");
  return { number: numberOfAddress(address), length: Number(length) };
}
