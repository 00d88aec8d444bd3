"""Where to put the nodes of a pool: a plain search over 192 hosts, the same answer every time.

It knows no entity and no host of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

ZONES, RACKS, SLOTS = 3, 8, 8
HOSTS = ZONES * RACKS * SLOTS

BUDGET = 20_000
"""Placements looked at per search: about a second of Python in a component."""

PATIENCE = 20_000
"""After so many in a row that were no better, begin from another random placement."""

_MASK = 2**64 - 1


def search(count: int, image: str) -> list[str] | None:
    """Names of ``count`` hosts for this image, spread well; none if there is no room.

    An image whose name ends in a number of gigabytes (``train-80g``) needs as much free memory on each host; others
    need 4.
    """
    hosts = [_host(index) for index in range(HOSTS)]
    need_gb = _need_gb(image)
    fit = [host.index for host in hosts if host.free_gb >= need_gb]
    if not 0 < count <= len(fit):
        return None
    dice = _Dice(_seed(image) | 1)
    best: tuple[int, set[int]] | None = None
    spent = 0
    while spent < BUDGET:
        chosen = _at_random(count, fit, dice)
        cost = _cost(chosen, hosts)
        in_vain = 0
        while in_vain < PATIENCE and spent < BUDGET:
            spent += 1
            in_vain += 1
            if count == len(fit):
                return _names(chosen)  # all that fit are in
            other = _swapped(chosen, fit, dice)
            other_cost = _cost(other, hosts)
            if other_cost < cost:
                chosen, cost, in_vain = other, other_cost, 0
        if best is None or cost < best[0]:
            best = (cost, chosen)
    return _names(best[1]) if best else None


@dataclass(frozen=True)
class _Host:
    """A host of the inventory, which is made up, but always the same."""

    index: int
    free_gb: int
    load: int


class _Dice:
    """Xorshift: the search must come out the same in every attempt."""

    def __init__(self, state: int) -> None:
        self._state = state

    def roll(self, sides: int) -> int:
        state = self._state
        state ^= (state << 13) & _MASK
        state ^= state >> 7
        state ^= (state << 17) & _MASK
        self._state = state
        return state % sides


def _host(index: int) -> _Host:
    dice = _Dice(0x9E37_79B9_7F4A_7C15 ^ (index + 1))
    dice.roll(1)
    return _Host(index, 8 << dice.roll(5), dice.roll(50))


def _at_random(count: int, fit: list[int], dice: _Dice) -> set[int]:
    left, chosen = list(fit), set()
    for _ in range(count):
        at = dice.roll(len(left))
        chosen.add(left[at])
        left[at] = left[-1]
        left.pop()
    return chosen


def _swapped(chosen: set[int], fit: list[int], dice: _Dice) -> set[int]:
    """One host exchanged for one outside."""

    def pick(inside: bool) -> int:
        start = dice.roll(len(fit))
        return next(host for host in fit[start:] + fit[:start] if (host in chosen) == inside)

    out, come = pick(True), pick(False)
    return chosen - {out} | {come}


def _cost(chosen: set[int], hosts: list[_Host]) -> int:
    """Loaded hosts cost their load, crowded racks and zones the square of their number."""
    load, racks, zones = 0, [0] * (ZONES * RACKS), [0] * ZONES
    for index in chosen:
        load += hosts[index].load
        racks[index // SLOTS] += 1
        zones[index // SLOTS // RACKS] += 1
    return load + 40 * sum(n * n for n in racks) + 5 * sum(n * n for n in zones)


def _names(chosen: set[int]) -> list[str]:
    return [_name(index) for index in sorted(chosen)]


def _name(index: int) -> str:
    rack = index // SLOTS
    return f"{'abc'[rack // RACKS]}{rack % RACKS + 1}-{index % SLOTS + 1:02}"


def _need_gb(image: str) -> int:
    last = image.rsplit("-", 1)[-1]
    return int(last[:-1]) if last.endswith("g") and last[:-1].isdecimal() else 4


def _seed(image: str) -> int:
    """FNV-1a: other images, other searches."""
    value = 0xCBF2_9CE4_8422_2325
    for byte in image.encode():
        value = ((value ^ byte) * 0x100_0000_01B3) & _MASK
    return value
