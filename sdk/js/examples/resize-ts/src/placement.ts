// Where to put the nodes of a pool: a plain search over 192 hosts, the same answer every time. It finds what
// guests/resource finds in as many looks.

const ZONES = 3;
const RACKS = 8;
const SLOTS = 8;
const HOSTS = ZONES * RACKS * SLOTS;

/** Placements looked at per search. */
const BUDGET = 2_000;

/** After so many in a row that were no better, begin from another random placement. */
const PATIENCE = 20_000;

/**
 * Names of `count` hosts for this image, spread well; undefined if there is no room.
 *
 * An image whose name ends in a number of gigabytes (`train-80g`) needs as much free memory on each host; others need 4.
 */
export function search(count: number, image: string, budget = BUDGET): string[] | undefined {
  const needGb = Number(/-(\d+)g$/.exec(image)?.[1] ?? 4);
  const hosts = Array.from({ length: HOSTS }, (_, index) => host(index));
  const fit = hosts.filter((one) => one.freeGb >= needGb).map((one) => one.index);
  if (count === 0 || count > fit.length) return undefined;

  const roll = dice(seed(image) | 1n);
  let best: { cost: number; chosen: Set<number> } | undefined;
  for (let spent = 0; spent < budget; ) {
    let chosen = atRandom(count, fit, roll);
    let cost = costOf(chosen, hosts);
    for (let inVain = 0; inVain < PATIENCE && spent < budget; spent++, inVain++) {
      const other = swapped(chosen, fit, roll);
      if (!other) return names(chosen); // all that fit are in
      const otherCost = costOf(other, hosts);
      if (otherCost < cost) [chosen, cost, inVain] = [other, otherCost, -1];
    }
    if (!best || cost < best.cost) best = { cost, chosen };
  }
  return best && names(best.chosen);
}

/** A host of the inventory, which is made up, but always the same. */
type Host = { index: number; freeGb: number; load: number };

function host(index: number): Host {
  const roll = dice(0x9e3779b97f4a7c15n ^ BigInt(index + 1));
  roll(1);
  return { index, freeGb: 8 << roll(5), load: roll(50) };
}

const rack = (index: number) => Math.floor(index / SLOTS);
const zone = (index: number) => Math.floor(rack(index) / RACKS);

/** Which hosts are in a placement. */
function atRandom(count: number, fit: number[], roll: Roll): Set<number> {
  const left = [...fit];
  const chosen = new Set<number>();
  for (let n = 0; n < count; n++) {
    const at = roll(left.length);
    chosen.add(left[at]!);
    left[at] = left.at(-1)!;
    left.pop();
  }
  return chosen;
}

/** One host exchanged for one outside; undefined if all that fit are in. */
function swapped(chosen: Set<number>, fit: number[], roll: Roll): Set<number> | undefined {
  const pick = (inside: boolean) => {
    const from = roll(fit.length);
    for (let step = 0; step < fit.length; step++) {
      const index = fit[(from + step) % fit.length]!;
      if (chosen.has(index) === inside) return index;
    }
  };
  const [out, come] = [pick(true), pick(false)];
  if (out === undefined || come === undefined) return undefined;
  const other = new Set(chosen);
  other.delete(out);
  return other.add(come);
}

/** Loaded hosts cost their load, crowded racks and zones the square of their number. */
function costOf(chosen: Set<number>, hosts: Host[]): number {
  let load = 0;
  const racks = new Array<number>(ZONES * RACKS).fill(0);
  const zones = new Array<number>(ZONES).fill(0);
  for (const index of chosen) {
    load += hosts[index]!.load;
    racks[rack(index)]!++;
    zones[zone(index)]!++;
  }
  const squares = (counts: number[]) => counts.reduce((sum, n) => sum + n * n, 0);
  return load + 40 * squares(racks) + 5 * squares(zones);
}

function names(chosen: Set<number>): string[] {
  const name = (index: number) => `${"abc"[zone(index)]}${(rack(index) % RACKS) + 1}-${String((index % SLOTS) + 1).padStart(2, "0")}`;
  return [...chosen].sort((a, b) => a - b).map(name);
}

/** Xorshift: the search must come out the same in every attempt. */
type Roll = (sides: number) => number;

function dice(state: bigint): Roll {
  return (sides) => {
    state ^= BigInt.asUintN(64, state << 13n);
    state ^= state >> 7n;
    state ^= BigInt.asUintN(64, state << 17n);
    return Number(state % BigInt(sides));
  };
}

/** FNV-1a: other images, other searches. */
function seed(image: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(image)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash;
}
