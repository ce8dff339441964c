"""What is saved comes back bit for bit: weights, Adam's state, the random generator, the model folder."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load as load_with_library
from torch import Tensor

from clearhead.checkpoint.model import load_model, save_model
from clearhead.checkpoint.model_folder import find_model
from clearhead.checkpoint.optimizer import load_optimizer, load_rng, optimizer_tensors, rng_tensors
from clearhead.checkpoint.run import checkpoint_folder, clean_run, newest_valid, save_checkpoint, steps, thin
from clearhead.checkpoint.weights import NonFinite, average, load_weights, read_tensors, to_safetensors
from clearhead.errors import DAMAGED, MISSING, USAGE, UserError
from clearhead.training.muon import Muon
from clearhead.training.step import set_rate
from tests.samples import PAPER, VARIANTS, make_model, position_in_steps, random_ids, random_source

from .states import SMALL, newest, save, value_of


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> float:
    """One step on data of this seed, with dropout from torch's own generator."""
    data = torch.Generator().manual_seed(seed)
    src, tgt = (torch.randint(4, 17, (3, length), generator=data) for length in (5, 8))
    hidden = model(src, torch.ones(3, 5, dtype=torch.bool), tgt[:, :-1])
    loss = F.cross_entropy(model.logits(hidden).flatten(0, 1), tgt[:, 1:].flatten())  # type: ignore[operator]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def make_optimizer(model: torch.nn.Module, fused: bool = True) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.003, fused=fused)


@pytest.mark.parametrize("kind", ["fused", "loop", "muon"])
def test_resumed_training_equals_uninterrupted_training(tmp_path: Path, kind: str) -> None:
    def start() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = make_model(replace(PAPER, tied="all", source_vocabulary=17)).train()
        if kind != "muon":
            return model, make_optimizer(model, kind == "fused")
        muon = Muon(model, (0.9, 0.98), 1e-9)
        set_rate(muon, 0.003)
        return model, muon

    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, which: range) -> list[float]:
        return [update(model, optimizer, seed) for seed in which]

    model, optimizer = start()
    torch.manual_seed(5)
    train(model, optimizer, range(3))
    state = {"losses": [0.1, 1 / 3], "words": "十"}
    save_checkpoint(tmp_path, 3, model.state_dict(), optimizer_tensors(optimizer, model) | rng_tensors(), state)
    losses = train(model, optimizer, range(3, 6))

    torch.manual_seed(99)
    resumed, resumed_optimizer = start()
    checkpoint = newest(tmp_path)
    assert checkpoint.state == {**state, "format": 1, "step": 3}
    load_weights(resumed, checkpoint.folder)
    load_optimizer(resumed_optimizer, resumed, checkpoint.optimizer())
    load_rng(checkpoint.optimizer())
    assert train(resumed, resumed_optimizer, range(3, 6)) == losses
    assert same(resumed.state_dict(), model.state_dict())
    assert same(optimizer_tensors(resumed_optimizer, resumed), optimizer_tensors(optimizer, model))


def test_an_optimizer_that_has_not_stepped_has_no_state(tmp_path: Path) -> None:
    model = make_model(SMALL)
    save_checkpoint(tmp_path, 0, model.state_dict(), optimizer_tensors(make_optimizer(model), model), {})
    optimizer = make_optimizer(model)
    load_optimizer(optimizer, model, newest(tmp_path).optimizer())
    assert optimizer_tensors(optimizer, model) == {}


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        ("exp_avg.nobody", torch.zeros(2), "no parameter 'nobody'"),
        ("exp_avg.output.weight", torch.zeros(2), r"is torch.float32 \[2\], expected float32"),
        ("step.output.weight", torch.zeros(()), "output.weight has step, expected step, exp_avg and exp_avg_sq"),
    ],
)
def test_another_optimizers_state_is_refused(name: str, tensor: Tensor, said: str) -> None:
    model = make_model(replace(PAPER, tied="none"))
    with pytest.raises(UserError, match=said) as error:
        load_optimizer(make_optimizer(model), model, {name: tensor})
    assert error.value.exit_code == DAMAGED


@pytest.mark.parametrize("state", [{}, {"rng.cpu": torch.zeros(3, dtype=torch.uint8)}, {"rng.cpu": torch.zeros(3)}])
def test_another_random_state_is_refused(state: dict[str, Tensor]) -> None:
    with pytest.raises(UserError, match=r"rng\.cpu"):
        load_rng(state)


def test_the_safetensors_library_reads_what_we_write() -> None:
    torch.manual_seed(3)
    tensors = {
        "b": torch.rand(3, 5),
        "a": torch.tensor(7),
        "turned": torch.rand(2, 3).t(),
        "half": torch.rand(3).bfloat16(),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "none": torch.zeros(0, 3),
        "flags": torch.tensor([True, False, True]),
        "double": torch.rand(2).double(),
    }
    assert same(load_with_library(b"".join(to_safetensors(tensors))), tensors)
    assert load_with_library(b"".join(to_safetensors({}))) == {}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_model_comes_back(tmp_path: Path, name: str) -> None:
    rule = position_in_steps if name == "own-positions" else None
    model = make_model(VARIANTS[name])
    save_model(tmp_path / "model", model, {"about": {"step": 3}, "data": {"target_language": "zh"}}, {"w.txt": b"1"})
    random = torch.get_rng_state()
    loaded, config, folder = load_model(tmp_path, rule)
    assert torch.equal(random, torch.get_rng_state())
    assert folder == tmp_path / "model"
    assert config["data"] == {"target_language": "zh"}
    assert loaded.options == model.options
    assert same(loaded.state_dict(), model.state_dict())
    assert not loaded.training
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in model.named_parameters()]  # tied as before
    src, src_mask = random_source(2, 5)
    tgt = random_ids(2, 3)
    assert torch.equal(loaded(src, src_mask, tgt), model(src, src_mask, tgt))


def test_a_rule_of_ones_own_must_be_given(tmp_path: Path) -> None:
    save_model(tmp_path / "m", make_model(VARIANTS["own-positions"]), {}, {})
    with pytest.raises(UserError, match="a rule go together") as error:
        load_model(tmp_path / "m")
    assert error.value.exit_code == USAGE


def test_tied_weights_are_stored_once(tmp_path: Path) -> None:
    model = make_model(VARIANTS["tied-all"])
    save_model(tmp_path / "m", model, {}, {})
    stored = read_tensors(tmp_path / "m" / "model.safetensors")
    assert {"source_embedding.weight"} == {name for name in stored if "embedding" in name or name == "output.weight"}
    loaded = load_model(tmp_path / "m")[0]
    assert loaded.output.weight is loaded.source_embedding.weight


def test_a_better_model_replaces_the_model(tmp_path: Path) -> None:
    for seed in (1, 2):
        model = make_model(SMALL, seed)
        save_model(tmp_path / "model", model, {"about": {"seed": seed}}, {})
        loaded, config, _ = load_model(tmp_path / "model")
        assert config["about"] == {"seed": seed}
        assert same(loaded.state_dict(), model.state_dict())
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_model_replaced_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clearhead.checkpoint import model as module

    first, second = make_model(SMALL, 1), make_model(SMALL, 2)
    save_model(tmp_path / "model", first, {"about": {"n": 1}}, {})

    def replace_first(path: Path) -> dict[str, Tensor]:
        if replacements:
            save_model(tmp_path / "model", replacements.pop(), {"about": {"n": 2}}, {})
        return read_tensors(path)

    replacements = [second]
    monkeypatch.setattr(module, "read_tensors", replace_first)
    loaded, config, _ = load_model(tmp_path)
    assert config["about"] == {"n": 2}
    assert same(loaded.state_dict(), second.state_dict())


def test_average_is_the_mean(tmp_path: Path) -> None:
    models = [make_model(VARIANTS["batch-norm"], seed) for seed in (1, 2, 3)]
    for seed, model in enumerate(models):
        save_checkpoint(tmp_path, seed, model.state_dict(), {}, {})
    folders = [checkpoint_folder(tmp_path, step) for step in steps(tmp_path)]
    mean = average([*folders[:2], folders[2] / "model.safetensors"])
    for name, tensor in mean.items():
        each = torch.stack([model.state_dict()[name] for model in models])
        assert torch.equal(tensor, each.double().mean(0).float() if tensor.is_floating_point() else each[-1])
    assert same(average(folders[:1] * 3), read_tensors(folders[0] / "model.safetensors"))


def test_average_of_what_does_not_fit(tmp_path: Path) -> None:
    save_model(tmp_path / "a", make_model(SMALL), {}, {})
    save_model(tmp_path / "b", make_model(PAPER), {}, {})
    with pytest.raises(UserError, match=r"is damaged: it has no tensor|, expected F32") as error:
        average([tmp_path / "a", tmp_path / "b"])
    assert error.value.exit_code == DAMAGED
    with pytest.raises(UserError, match="does not exist") as error:
        average([tmp_path / "c"])
    assert error.value.exit_code == MISSING
    with pytest.raises(UserError, match=r"has no MANIFEST\.json"):
        average([tmp_path])
    with pytest.raises(ValueError, match="no weights to average"):
        average([])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_only_finite_parameters_are_saved(tmp_path: Path, value: float) -> None:
    model = make_model(SMALL)
    with torch.no_grad():
        model.output.weight[3, 1] = value
    with pytest.raises(NonFinite, match="has 1 numbers of 66 that are infinite or NaN"):
        save_checkpoint(tmp_path, 1, model.state_dict(), {}, {})
    with pytest.raises(NonFinite):
        save_model(tmp_path / "model", model, {}, {})
    assert list(tmp_path.iterdir()) == []


def test_thin_keeps_two_whole_ones_and_the_weights_of_the_best(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40, 50):
        save(tmp_path, step)
    thin(tmp_path, keep={20, 99})
    assert steps(tmp_path) == [20, 40, 50]
    assert not (checkpoint_folder(tmp_path, 20) / "optimizer.safetensors").exists()
    thin(tmp_path, keep={20, 99})
    load_weights(make_model(SMALL), checkpoint_folder(tmp_path, 20))  # verifies
    assert value_of(newest(tmp_path)) == 50
    thin(tmp_path, keep=set(), keep_optimizer=1)
    assert steps(tmp_path) == [50]


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    for value in (1, 2):
        save_checkpoint(tmp_path, 7, make_model(SMALL).state_dict(), {}, {"value": value})
    assert newest(tmp_path).state["value"] == 2


def test_no_checkpoint_yet(tmp_path: Path) -> None:
    clean_run(tmp_path / "run")
    assert newest_valid(tmp_path / "run", pytest.fail) is None


def test_paths_that_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "file").write_text("text")
    for name, code, said in (
        ("nowhere", MISSING, "does not exist"),
        ("", DAMAGED, "has neither config.json nor a model folder"),
        ("run", DAMAGED, "run folder without a model"),
        ("file", DAMAGED, "is a file"),
    ):
        with pytest.raises(UserError, match=said) as error:
            find_model(tmp_path / name)
        assert error.value.exit_code == code
