"""A declaration becomes a slotted class whose fields have defaults and version spans."""

from typing import Any
from uuid import UUID

import pytest

from protocol.codec import decode, encode_bytes
from protocol.schema import field, message, struct_of
from protocol.types import Array, Boolean, Bytes, Float64, Int16, Int32, String, UInt16, Uuid


@message
class Leaf:
    """A part."""

    name: str = field(String)
    note: str | None = field(String, since=2, nullable=True)


@message(flexible_from=2)
class Tree:
    """A whole message."""

    height: int = field(Int32, default=-1)
    age: int = field(Int16, until=1)
    port: int = field(UInt16, since=3)
    leaves: list[Leaf] = field(Array(Leaf))
    roots: list[int] | None = field(Array(Int32), nullable=True)
    owner: str | None = field(String, nullable=1)
    seal: bytes = field(Bytes, since=1)
    token: UUID = field(Uuid, since=1)
    ratio: float = field(Float64, since=1)
    felled: bool = field(Boolean, since=1)
    top: Leaf | None = field(Leaf, since=2, tag=1)
    rings: int = field(Int32, since=2, tag=0)


@message(flexible_from=None)
class Old:
    """A message of which no version is flexible."""

    name: str = field(String)


def test_everything_has_a_default() -> None:
    tree = Tree()
    assert (tree.height, tree.age, tree.leaves, tree.roots) == (-1, 0, [], None)
    assert (tree.owner, tree.seal, tree.token, tree.ratio) == ("", b"", UUID(int=0), 0.0)
    assert (tree.felled, tree.top, tree.rings) == (False, None, 0)


def test_a_default_list_belongs_to_one_message() -> None:
    Tree().leaves.append(Leaf())
    assert Tree().leaves == []


def test_only_declared_fields_exist() -> None:
    with pytest.raises(TypeError):
        Tree(widht=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Tree().widht = 3  # type: ignore[attr-defined]
    assert not hasattr(Tree(), "__dict__")


def test_fields_are_named_not_counted() -> None:
    with pytest.raises(TypeError):
        Leaf("oak")  # type: ignore[misc]


def test_equality_is_of_class_and_fields() -> None:
    assert Tree(leaves=[Leaf(name="a")]) == Tree(leaves=[Leaf(name="a")])
    assert Tree(leaves=[Leaf(name="a")]) != Tree(leaves=[Leaf(name="b")])
    assert Leaf(name="a") != Old(name="a")
    with pytest.raises(TypeError):
        hash(Leaf())


def test_repr_shows_what_differs_from_the_defaults() -> None:
    assert (
        repr(Tree(height=3, leaves=[Leaf(name="a")])) == "Tree(height=3, leaves=[Leaf(name='a')])"
    )
    assert repr(Tree()) == "Tree()"


def test_a_declaration_keeps_its_name_and_text() -> None:
    assert (Leaf.__name__, Leaf.__doc__, Leaf.__module__) == ("Leaf", "A part.", __name__)


def names(version: int) -> list[str]:
    return [part.name for part in struct_of(Tree, version).subcons]


def test_a_version_has_the_fields_of_its_span_in_order() -> None:
    assert names(0) == ["height", "age", "leaves", "roots", "owner"]
    assert "age" in names(1)
    assert names(2)[:2] == ["height", "leaves"]
    assert "port" not in names(2)
    assert names(3)[:3] == ["height", "port", "leaves"]


def test_a_struct_ends_with_tags_from_the_flexible_version_on() -> None:
    assert "_tags" not in names(1)
    assert names(2)[-1] == "_tags"
    assert list(struct_of(Tree, 2).tags.tags) == [0, 1]


def test_a_part_is_not_a_message() -> None:
    with pytest.raises(TypeError, match="Leaf is a part"):
        struct_of(Leaf, 0)
    with pytest.raises(TypeError, match="Leaf is a part"):
        encode_bytes(Leaf(), 0)


def test_a_message_may_never_turn_flexible() -> None:
    assert encode_bytes(Old(name="a"), 100) == b"\0\1a"


def test_fields_that_a_version_lacks_are_left_out_and_read_as_defaults() -> None:
    tree = Tree(height=1, age=7, seal=b"x", leaves=[Leaf(name="a", note="b")])
    wire = encode_bytes(tree, 0)
    assert decode(Tree, 0, wire) == Tree(height=1, age=7, leaves=[Leaf(name="a")])
    assert decode(Tree, 2, encode_bytes(tree, 2)).age == 0


@pytest.mark.parametrize("top", [None, Leaf()])
def test_a_tagged_field_with_its_default_is_not_sent(top: Leaf | None) -> None:
    wire = encode_bytes(Tree(top=top), 2)
    assert wire == encode_bytes(Tree(), 2)
    assert decode(Tree, 2, wire).top is None


def test_tagged_fields_come_in_the_order_of_their_tags() -> None:
    wire = encode_bytes(Tree(top=Leaf(name="a"), rings=5), 2)
    assert wire.endswith(b"\x02" + b"\x00\x04\0\0\0\5" + b"\x01\x04\x02a\x00\x00")


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_type_of_field_comes_back(version: int) -> None:
    tree: Any = Tree(
        height=-5, leaves=[Leaf(name="ä"), Leaf()], roots=[1, -2], owner="me", seal=b"\0\1",
        token=UUID(int=9), ratio=0.5, felled=True,
    )  # fmt: skip
    if version == 0:
        tree.seal, tree.token, tree.ratio, tree.felled = b"", UUID(int=0), 0.0, False
    assert decode(Tree, version, encode_bytes(tree, version)) == tree
