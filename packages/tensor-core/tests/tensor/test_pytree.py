"""Nested containers: flattening, mapping, key paths, structures and their files."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import pickle
import time

import pytest

import candelabra
from candelabra import pytree

Point = collections.namedtuple("Point", "x y")
Labelled = collections.namedtuple("Labelled", "value")


class Color(enum.Enum):
    RED = 1


class Box:
    def __init__(self, *items):
        self.items = items


@pytest.fixture
def registered():
    from candelabra.pytree import registry

    kinds = []
    yield lambda kind, register, *arguments, **keywords: (kinds.append(kind), register(kind, *arguments, **keywords))
    for kind in kinds:
        registry.forget(kind)


TREE = [1, {"b": 2, "a": (3, None)}, Point(4, [5]), collections.deque([6], 2), collections.OrderedDict(z=7)]


def test_flattening_and_rebuilding():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7] == pytree.tree_leaves(TREE)
    again = spec.unflatten(leaves)
    assert again == TREE and type(again[2]) is Point and again[3].maxlen == 2
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (8, 15, 5)
    assert pytree.tree_unflatten(spec, leaves) == TREE
    assert pytree.tree_leaves(TREE, is_leaf=lambda node: isinstance(node, dict))[1] == {"b": 2, "a": (3, None)}
    assert pytree.tree_leaves(candelabra.ones(2, 2).max(0))[1].tolist() == [0, 0]
    assert pytree.tree_leaves(candelabra.Size([2, 3])) == [2, 3]
    assert pytree.tree_is_leaf(time.localtime()) and pytree.is_structseq(time.localtime())
    assert pytree.arg_tree_leaves([1], 2, third=(3,)) == [1, 2, 3]
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 8 items"):
        spec.unflatten([1])
    with pytest.raises(TypeError, match="instance of PyTreeSpec"):
        pytree.tree_unflatten([1], 2)


def test_structures():
    spec = pytree.tree_structure({"a": 1, "b": [2, 3]})
    assert repr(spec) == "TreeSpec(dict, ['a', 'b'], [*,\n  TreeSpec(list, None, [*,\n    *])])"
    assert spec == copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) and hash(spec) == hash(copy.deepcopy(spec))
    assert spec != pytree.tree_structure({"a": 1, "b": (2, 3)})
    assert spec.child(1) == spec.children()[1] and spec.context == ["a", "b"]
    assert pytree.treespec_leaf().is_leaf() and pytree.tree_structure(1) is pytree.treespec_leaf()
    assert pytree.treespec_dict(a=pytree.treespec_leaf()) == pytree.tree_structure({"a": 0})
    assert pytree.treespec_tuple([spec]) == pytree.tree_structure(({"a": 1, "b": [2, 3]},))
    assert pytree.treespec_pprint(spec) == "{'a': *, 'b': [*, *]}"
    with pytest.warns(FutureWarning, match="LeafSpec"):
        assert pytree.LeafSpec() == pytree.treespec_leaf()
    with pytest.warns(FutureWarning, match="children_specs"):
        assert spec.children_specs == spec.children()
    with pytest.raises(AssertionError, match="leaf node"):
        pytree.TreeSpec(None, 1, [])
    for make in (pytree.treespec_tuple, lambda values: pytree.treespec_dict(a=values[0])):
        with pytest.raises(ValueError, match="of TreeSpec values"):
            make([1])


def test_mapping():
    assert pytree.tree_map(lambda x, y: (x, y), [1, (2,)], [3, ([4],)]) == [(1, 3), ((2, [4]),)]
    assert pytree.tree_map(lambda x, y: x + y, {"a": 1, "b": 2}, collections.OrderedDict(b=10, a=20)) == {
        "a": 21,
        "b": 12,
    }
    seen: list = []
    tree = [1, {"a": "x"}]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, "x"]
    assert pytree.tree_map_only(int, str, [1, 2.0]) == ["1", 2.0]
    assert pytree.tree_map_only((int, float), str, [1, 2.0]) == ["1", "2.0"]
    assert pytree.tree_map_only(int | float, str, [1, 2.0]) == ["1", "2.0"]
    assert pytree.tree_map_only(lambda x: x == 1, str, [1, 2.0]) == ["1", 2.0]
    assert pytree.tree_map_only_(int, seen.append, tree) is tree and seen == [1, "x", 1]
    assert pytree.tree_all(bool, [1, (2,)]) and not pytree.tree_any(bool, [0, None])
    assert pytree.tree_all_only(int, bool, [1, ""]) and not pytree.tree_any_only(int, bool, [0, "a"])
    with pytest.raises(TypeError, match="must be a type"):
        pytree.map_only(3)
    for tree, other, match in [
        ((1, 2), (1,), "Node arity mismatch; expected 2, but got 1"), ([1], (1,), "Node type mismatch"),
        ({"a": 1}, {"b": 1}, "missing key\\(s\\): {'a'}; extra key\\(s\\): {'b'}"), (Point(1, 2), (1, 2), "Node type mismatch"),
        (Point(1, 2), Labelled(1), "Node arity mismatch"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            pytree.tree_map(max, tree, other)


def test_key_paths():
    pairs, spec = pytree.tree_flatten_with_path(TREE)
    assert spec == pytree.tree_structure(TREE)
    names = [pytree.keystr(path) for path, _ in pairs]
    assert names == ["[0]", "[1]['b']", "[1]['a'][0]", "[1]['a'][1]", "[2].x", "[2].y[0]", "[3][0]", "[4]['z']"]
    assert all(pytree.key_get(TREE, path) == leaf for path, leaf in pairs)
    assert pytree.tree_map_with_path(lambda path, x, y: (len(path), x + y), [1, (2,)], [3, (4,)]) == [(1, 4), ((2, 6),)]
    assert pytree.tree_map_with_path(lambda path, x: x, []) == []


def test_registered_types(registered):
    registered(
        Box, pytree.register_pytree_node, lambda box: (list(box.items), len(box.items)), lambda items, _: Box(*items),
        serialized_type_name="Box",
    )  # fmt: skip
    leaves, spec = pytree.tree_flatten([Box(1, Box(2)), 3])
    assert leaves == [1, 2, 3] and spec.unflatten(leaves)[0].items[1].items == (2,)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Box, None, None)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        pytree.tree_leaves_with_path(Box(1))
    with pytest.raises(ValueError, match="Node context mismatch for custom node type|arity"):
        pytree.tree_map(max, Box(1), Box(1, 2))
    with pytest.raises(ValueError, match="Both to_dumpable_context and from_dumpable_context"):
        pytree.register_pytree_node(Color, None, None, to_dumpable_context=str)


def test_dataclasses_and_constants(registered):
    @dataclasses.dataclass
    class Pair:
        first: object
        second: object = None

    @dataclasses.dataclass(frozen=True)
    class Setting:
        name: str

    registered(Pair, pytree.register_dataclass)
    registered(Setting, pytree.register_constant)
    leaves, spec = pytree.tree_flatten([Pair(1), Pair(2, 3), Setting("a")])
    assert leaves == [1, 2, 3]
    assert spec.unflatten([4, 5, 6]) == [Pair(4), Pair(5, 6), Setting("a")]
    assert pytree.keystr(pytree.tree_leaves_with_path(Pair(1, 2))[1][0]) == ".second"
    assert pytree.is_constant_class(Setting) and not pytree.is_constant_class(Pair)
    with pytest.raises(ValueError, match="Missing fields in `field_names`: {'second'}"):
        pytree.register_dataclass(Pair, field_names=["first"])
    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(Box)
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(Box)


def test_files(registered):
    from candelabra.pytree import containers

    spec = pytree.tree_structure([collections.defaultdict(list, a=1), (2,), collections.deque([1], 3)])
    text = pytree.treespec_dumps(spec)
    assert text.startswith(
        '[1, {"type": "builtins.list", "context": "null", "children_spec": [{"type": "collections.def'
    )
    assert pytree.treespec_loads(text) == spec
    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        pytree.treespec_dumps(pytree.tree_structure(Labelled(1)))
    registered(Labelled, containers.register_namedtuple, serialized_type_name="tests.Labelled")
    labelled = pytree.tree_structure(Labelled(1))
    assert pytree.treespec_loads(pytree.treespec_dumps(labelled)) == labelled
    with pytest.raises(ValueError, match="Unknown protocol 3"):
        pytree.treespec_dumps(spec, 3)
    with pytest.raises(TypeError, match="instance of PyTreeSpec"):
        pytree.treespec_dumps(1)
    with pytest.raises(NotImplementedError, match="Deserializing strange"):
        pytree.treespec_loads('[1, {"type": "strange", "context": "null", "children_spec": []}]')
