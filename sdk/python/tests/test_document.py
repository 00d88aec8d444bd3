"""Documents are exact, or refused with what was expected, got, and where."""

import math
import unittest
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from interlock import Rejection
from interlock.document import decode, encode


class Colour(Enum):
    RED = "red"


@dataclass
class Pool:
    size: int
    colour: Colour = Colour.RED
    max_size: int = field(default=9, metadata={"json": "max-size"})


class Documents(unittest.TestCase):
    def refused(self, value: Any, subject: str, expected: str, got: str) -> None:
        with self.assertRaises(Rejection) as caught:
            encode(value, "data")
        no = caught.exception
        self.assertEqual((no.kind, no.code, no.retryable), ("invalid", "json", False))
        self.assertEqual((no.subject, no.expected, no.got), (subject, expected, got))

    def test_integers_of_64_bits_are_exact_both_ways(self) -> None:
        for number in (0, -1, 2**53 + 1, 9007199254740993, -(2**63), 2**63 - 1, 2**64 - 1):
            self.assertEqual(encode(number, "data"), str(number))
            self.assertEqual(decode(str(number)), number)

    def test_larger_integers_are_refused_wherever_they_are(self) -> None:
        expected = f"an integer from {-(2**63)} to {2**64 - 1}"
        self.refused(2**64, "data", expected, str(2**64))
        self.refused({"a": [0, -(2**63) - 1]}, "data.a[1]", expected, str(-(2**63) - 1))
        self.refused(10**5000, "data", expected, "one of 16610 bits")

    def test_numbers_that_are_not_finite_are_refused(self) -> None:
        self.refused({"at": math.nan}, "data.at", "a finite number", "nan")
        self.refused([math.inf], "data[0]", "a finite number", "inf")
        self.assertEqual(encode(-0.0, "data"), "-0.0")

    def test_dataclasses_enums_and_mappings_are_written_as_their_values(self) -> None:
        self.assertEqual(encode(Pool(4), "data"), '{"size":4,"colour":"red","max-size":9}')
        self.assertEqual(encode(OrderedDict(a=(1, None, True)), "data"), '{"a":[1,null,true]}')
        self.assertEqual(encode(MappingProxyType({"ü": "\u2028\n"}), "data"), '{"ü":"\u2028\\n"}')

    def test_what_json_cannot_hold_is_refused_and_named(self) -> None:
        self.refused({"tags": {1, 2}}, "data.tags", "a value that JSON can hold", "builtins.set")
        self.refused([b"x"], "data[0]", "a value that JSON can hold", "builtins.bytes")
        self.refused({"a": {1: 2}}, "data.a", "text as a key", "int 1")
        self.refused(Pool, "data", "a value that JSON can hold", "builtins.type")

    def test_half_of_a_surrogate_pair_is_refused(self) -> None:
        self.refused({"a": "\ud800"}, "data", "text that Unicode can hold", "'\\ud800'")

    def test_a_value_that_contains_itself_is_refused(self) -> None:
        itself: list[Any] = []
        itself.append(itself)
        self.refused(itself, "data", "a value that ends", "one that contains itself, or is nested too deep")


if __name__ == "__main__":
    unittest.main()
