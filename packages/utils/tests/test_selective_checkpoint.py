"""Checkpoints that keep the results of some operators."""

import functools

import pytest

import candelabra
from candelabra.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = candelabra.ops.aten


def network(weight, x):
    values, _ = (x @ weight).sin().max(0)
    return values.sum()


def gradients(run):
    weight = candelabra.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    x = candelabra.linspace(0, 1, 16).reshape(4, 4).requires_grad_()
    run(functools.partial(network, weight), x).backward()
    return weight.grad, x.grad


def keep_products(context, operator, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if operator is aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.parametrize(
    "policy",
    [[aten.mm.default], [aten.sin.default, aten.mm.default], keep_products],
    ids=["mm", "sin and mm", "function"],
)
def test_gradients_are_the_same(policy):
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    expected = gradients(lambda function, x: function(x))
    found = gradients(lambda function, x: checkpoint(function, x, use_reentrant=False, context_fn=contexts))
    assert all(candelabra.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_kept_results_are_not_computed_again():
    seen = []

    def policy(context, operator, *args, **kwargs):
        seen.append((str(operator), context.is_recompute))
        return keep_products(context, operator)

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    gradients(lambda function, x: checkpoint(function, x, use_reentrant=False, context_fn=contexts))
    assert ("aten.mm.default", False) in seen and ("aten.mm.default", True) in seen


def test_kept_results_may_not_change():
    def changing(x):
        product = x @ x
        return product.mul_(2).sin().sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.mm.default])
    x = candelabra.ones(2, 2, requires_grad=True)
    result = checkpoint(changing, x, use_reentrant=False, context_fn=contexts)
    with pytest.raises(RuntimeError, match="mutated"):
        result.backward()


def test_what_is_no_policy():
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(1)


def test_a_list_has_overloads():
    with pytest.raises(ValueError, match="to be an OpOverload but got: 2"):
        create_selective_checkpoint_contexts([2])
    with pytest.raises(ValueError, match="update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([aten.sin])
