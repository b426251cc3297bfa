"""get_state_dict and set_state_dict: names without wrappers, options, errors."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from shards import Shard

import candelabra
import candelabra.distributed.checkpoint as dcp
from candelabra import nn, optim
from candelabra.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)


def trained(seed, steps=3):
    candelabra.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.1 * (seed + 1))
    for _ in range(steps):
        optimizer.zero_grad()
        model(candelabra.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def step(model, optimizer):
    candelabra.manual_seed(9)
    model(candelabra.randn(8, 3)).pow(2).mean().backward()
    optimizer.step()
    return [parameter.tolist() for parameter in model.parameters()]


def test_training_goes_on_as_before(tmp_path):
    model, optimizer = trained(0)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    dcp.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=tmp_path)
    other, its_optimizer = trained(1, steps=0)
    states = dict(zip(("model", "optimizer"), get_state_dict(other, its_optimizer), strict=True))
    dcp.load(states, checkpoint_id=tmp_path)
    set_state_dict(other, its_optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    assert its_optimizer.param_groups[0]["lr"] == 0.1
    assert step(other, its_optimizer) == step(model, optimizer)


def test_flat_states_of_optimizers():
    model = nn.Linear(2, 3)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    first = optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for group in first.param_groups:
        group.update({key: 0 for key, value in group.items() if not isinstance(value, (int, float, list))})
    state = get_optimizer_state_dict(model, first, options=options)
    assert "state.weight.momentum_buffer" in state and state["param_groups.bias.lr"] == 0.5
    other = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    set_optimizer_state_dict(model, other, state, options=options)
    assert other.param_groups[0]["lr"] == 0.5
    with pytest.raises(RuntimeError, match="no parameter group for"):
        set_optimizer_state_dict(model, other, {"param_groups.weight.lr": 0.5}, options=options)


def test_wrappers_leave_no_trace(job):
    program = """
    from candelabra import nn, optim
    from candelabra.distributed.data_parallel import DistributedDataParallel
    from candelabra.distributed.checkpoint.state_dict import *
    dist.init_process_group("cpu:reference")
    candelabra.manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.Linear(2, 3))
    optimizer = optim.Adam(model.parameters())
    of_model, of_optimizer = get_state_dict(model, optimizer)
    line("names", list(of_model), sorted(of_optimizer["state"]))
    of_model = {name: tensor + 1 for name, tensor in of_model.items()} if dist.get_rank() == 0 else {}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    before = model.module.bias.tolist()
    set_model_state_dict(model, of_model, options=options)
    set_optimizer_state_dict(model, optimizer, of_optimizer if dist.get_rank() == 0 else {}, options=options)
    line("set", [round(a - b) for a, b in zip(model.module.bias.tolist(), before)])
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    line("kept", sorted(get_model_state_dict(model, options=options)))
    """
    result = job(program, 2)
    assert result.lines("names") == ["['weight', 'bias'] ['bias', 'weight']"] * 2, result.errors
    assert result.lines("set") == ["[1, 1, 1]"] * 2
    assert result.lines("kept") == ["['bias', 'weight']", "[]"]


def test_options_and_errors():
    model, optimizer = trained(0)
    model[0].requires_grad_(False)
    names = list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True)))
    assert "0.weight" not in names and "2.weight" in names
    assert list(get_model_state_dict(model, submodules={model[2]})) == ["2.weight", "2.bias"]
    options = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(model, submodules={model[2]}, options=options)) == ["weight", "bias"]
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(RuntimeError, match="Missing key"):
        set_model_state_dict(model, {})
    assert set_model_state_dict(model, {}, options=StateDictOptions(strict=False)).missing_keys
    with pytest.raises(RuntimeError, match="not one of the model's"):
        get_optimizer_state_dict(nn.Linear(1, 1), optimizer)
    state = get_optimizer_state_dict(model, optimizer)
    del state["state"]["2.bias"]
    with pytest.raises(RuntimeError, match="Missing optimizer state for parameter '2.bias'"):
        set_optimizer_state_dict(model, optimizer, state)


class Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class Sharding:
    """A model whose weight is sharded."""

    def __init__(self, rank):
        self.full = candelabra.arange(10).reshape(5, 2).float()
        self.weight = Shard(self.full, 0, rank, 2, empty=True)

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state, strict):
        return Keys([key for key in self.state_dict() if key not in state], [key for key in state if key != "weight"])


def test_sharded_models_take_whole_and_sharded_tensors():
    for rank in range(2):
        model = Sharding(rank)
        set_model_state_dict(model, {"weight": model.full}, options=StateDictOptions(full_state_dict=True))
        assert model.weight.is_right()
        other = Sharding(rank)
        set_model_state_dict(other, get_model_state_dict(model))
        assert other.weight.is_right()
        whole = get_model_state_dict(other, options=StateDictOptions(full_state_dict=True))
        assert candelabra.equal(whole["weight"], model.full)
        with pytest.raises(RuntimeError, match="size mismatch for weight"):
            set_model_state_dict(model, {"weight": candelabra.ones(2)})
        with pytest.raises(RuntimeError, match="elements that this rank holds are not given"):
            set_model_state_dict(model, get_model_state_dict(Sharding(1 - rank)))
