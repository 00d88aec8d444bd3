"""Values become the types that the step asks for, or a failure says where they are something else."""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, Literal, NewType, TypedDict

from interlock import Failure
from interlock.shape import prepare, read, reader

NodeId = NewType("NodeId", str)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    id: NodeId
    below: list[Node] = field(default_factory=list)


@dataclass
class Data:
    size: int
    load: float = 0.0
    label: str | None = None
    colour: Colour = Colour.RED
    mode: Literal["fast", "safe"] = "safe"
    nodes: list[Node] = field(default_factory=list)
    tags: dict[str, list[int]] = field(default_factory=dict)
    class_: str = field(default="", metadata={"json": "class"})


class Wanted(TypedDict, total=False):
    size: int


class Shapes(unittest.TestCase):
    def refused(self, shape: Any, value: Any, why: str) -> None:
        with self.assertRaises(Failure) as caught:
            read(shape, value, "data", "data-shape")
        self.assertTrue(caught.exception.is_permanent)
        self.assertEqual(caught.exception.code, "data-shape")
        self.assertEqual(caught.exception.reason, f"data is not what the step expects: {why}")

    def test_a_dataclass_takes_its_fields_defaults_and_names(self) -> None:
        value = {"size": 3, "load": 2, "colour": "blue", "nodes": [{"id": "a", "below": [{"id": "b"}]}], "class": "x"}
        data = read(Data, value | {"unknown": 1}, "data", "data-shape")
        self.assertEqual(
            data,
            Data(3, 2.0, None, Colour.BLUE, "safe", [Node(NodeId("a"), [Node(NodeId("b"))])], {}, "x"),
        )
        self.assertIs(type(data.load), float)

    def test_what_does_not_fit_is_told_with_its_place(self) -> None:
        self.refused(Data, None, "expected an object (Data), got null")
        self.refused(Data, {}, "expected an object with `size`, got an object with nothing in it")
        self.refused(Data, {"size": "3"}, "at size: expected an integer, got '3'")
        self.refused(Data, {"size": True}, "at size: expected an integer, got true")
        self.refused(Data, {"size": 3.0}, "at size: expected an integer, got 3.0")
        self.refused(Data, {"size": 1, "nodes": [{"id": "a"}, {"id": 7}]}, "at nodes[1].id: expected text, got 7")
        self.refused(Data, {"size": 1, "tags": {"x": [1, None]}}, "at tags.x[1]: expected an integer, got null")
        self.refused(Data, {"size": 1, "mode": "slow"}, "at mode: expected 'fast' or 'safe', got 'slow'")
        self.refused(Data, {"size": 1, "colour": "green"}, "at colour: expected 'red' or 'blue', got 'green'")
        self.refused(Data, {"size": 1, "label": 5}, "at label: expected text or null, got 5")
        self.refused(Data, {"size": 1, "class": None}, "at class: expected text, got null")

    def test_an_integer_that_no_float_holds_is_no_float(self) -> None:
        self.assertEqual(read(float, 2**53, "data", "data-shape"), float(2**53))
        self.refused(float, 2**53 + 1, f"expected a number that a float can hold, got {2**53 + 1}")

    def test_of_a_union_the_first_that_fits_is_taken(self) -> None:
        self.assertEqual(read(Node | None, {"id": "a"}, "data", "data-shape"), Node(NodeId("a")))
        self.assertIsNone(read(Node | None, None, "data", "data-shape"))
        self.refused(Node | None, {"id": 1}, "at id: expected text, got 1")

    def test_containers_and_other_types(self) -> None:
        self.assertEqual(read(tuple[int, ...], [1, 2], "data", "data-shape"), (1, 2))
        self.assertEqual(read(Sequence[int], [1], "data", "data-shape"), [1])
        self.assertEqual(read(Mapping[str, Any], {"a": [None]}, "data", "data-shape"), {"a": [None]})
        self.assertEqual(read(Annotated[int, "bytes"], 5, "data", "data-shape"), 5)
        self.assertEqual(read(Wanted, {"size": 5, "other": 1}, "data", "data-shape"), {"size": 5})
        self.refused(Wanted, {"size": ""}, "at size: expected an integer, got ''")
        self.refused(list[int], {}, "expected a list, got an object with nothing in it")

    def test_a_type_that_no_document_holds_is_the_authors_mistake(self) -> None:
        for shape in (set[int], bytes, dict[int, str], tuple[int, str], complex):
            with self.assertRaises(TypeError):
                reader(shape)

    def test_preparing_a_module_leaves_alone_what_no_document_holds(self) -> None:
        module = ModuleType("authors")

        @dataclass
        class Odd:
            callback: object
            data: bytes

        module.__dict__.update(Odd=Odd, Data=Data)
        prepare(module)


if __name__ == "__main__":
    unittest.main()
