"""Every model and attack on another device than the CPU: a pretended one everywhere, CUDA where there is one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.attacks.canaries import Watcher, draw, insert
from tasks.audits import auditor
from tasks.core import device
from tasks.core.errors import ConfigurationError
from tasks.models import MODELS, model_class
from tasks.models.ranking.lightfm import LightFM
from tasks.models.sessions.dipsgnn import DIPSGNN
from tasks.models.social.factorisation import SocialFactorisation
from tasks.models.training import EpochModel
from tasks.privacy import noise
from tests.models.alignment.clouds import clustered, rotated
from tests.models.alignment.test_adversarial import CONFIG, start
from tests.models.contract import LISTS, NETWORKS, Stretch, checkerboard, grammar, make, outputs, small
from tests.models.pretended import PRETENDED, Elsewhere, pretended

# of `load_state_dict`, which asks for the name of the device and not whether its tensors have numbers
pytestmark = pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")
WITH_DROPOUT = {"dropout": 0.2}
CONFIGS = {
    "ae": WITH_DROPOUT | {"tied": True},
    "vae": WITH_DROPOUT | {"tied": True, "examples": 2},
    "dpvae": {},
    "dpvae-rigorous": {},
    "gerai": {"redraw": "step"},
    "dipsgnn": WITH_DROPOUT,
    "dipsgnn-cached": {},
    "dipsgnn-rigorous": {},
    "dpsgd": WITH_DROPOUT,
    "edgerand": {"steps": 2},
    "crogcn-nh": {},
}
LEARNT = [name for name in MODELS if issubclass(model_class(name), EpochModel)]
MOVED = [name for name in LEARNT if not issubclass(model_class(name), (SocialFactorisation, LightFM))]
"""Those that compute with NumPy stay on the CPU."""
ALL = sorted({*MOVED, *CONFIGS})
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA not run")


@pytest.fixture(params=["pretended", pytest.param("cuda", marks=needs_cuda)])
def elsewhere(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[None]]:
    """Models and attacks work on another device than the CPU."""
    return pretended if request.param == "pretended" else lambda: device.hold(torch.device("cuda"))


def assert_alike(elsewhere, actual: torch.Tensor, expected: torch.Tensor, what: str, atol: float = 1e-5) -> None:
    """On CUDA to a hundredth of all: Adam makes whole steps of the rounding of gradients that are all but zero."""
    if elsewhere is pretended or not expected.is_floating_point():
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=atol, msg=lambda text: f"{what}: {text}")
        return
    distance, length = float((actual - expected).norm()), float(expected.norm())
    assert distance <= 0.01 * length + 1e-6, f"{what}: {distance} of {length}"


def learn(name, progress):
    """A model, and the data that it trained on."""
    model = make(name, epochs=2, **CONFIGS.get(name, {}))
    data = small(name) if name in NETWORKS else grammar(n_users=20)
    if name in LISTS:
        data = checkerboard(n_users=20, n_items=14)[0]
    return model.fit(data, rng=np.random.default_rng(0), progress=progress), data


def learnt(name: str, where: AbstractContextManager, folder: Path):
    """All tensors of a short fit, the scores before and after it is saved and loaded, and what noise was drawn."""
    with where, noise.recording() as draws:
        progress = Stretch(1)
        model, data = learn(name, progress)
        assert {type(tensor) for tensor in model.weights().values()} == {torch.Tensor}, "what is kept is on the CPU"
        model.save(folder / f"{name}.safetensors")
        loaded = type(model).load(folder / f"{name}.safetensors")
        if hasattr(model, "key"):
            loaded.key = model.key
        scores, again = (torch.cat(outputs(either, data)) for either in (model, loaded))
        assert type(again) is type(scores)
        return progress.state[0], scores.cpu(), again.cpu(), draws, type(scores)


@pytest.fixture
def comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what differs by design: noise by key is named by the bits of weights, which each device rounds itself."""
    monkeypatch.setattr(DIPSGNN, "vectors", 0)


@pytest.mark.usefixtures("comparable")
@pytest.mark.parametrize("name", ALL)
def test_every_model_learns_the_same_from_the_same_draws_on_another_device(name, elsewhere, tmp_path):
    expected, scores, _, draws, _ = learnt(name, nullcontext(), tmp_path)
    actual, there, again, same, where = learnt(name, elsewhere(), tmp_path)
    assert where is Elsewhere or name in NETWORKS or elsewhere is not pretended  # embeddings are arrays
    assert {type(tensor) for tensor in actual.values()} == {torch.Tensor}, "what is kept is on the CPU"
    for key, tensor in expected.items():
        assert_alike(elsewhere, actual[key], tensor, key, atol=1e-4)
    assert_alike(elsewhere, there, scores, "scores")
    assert_alike(elsewhere, again, there, "scores of the loaded model")
    assert torch.equal(again, there) or elsewhere is not pretended
    assert [(draw.release, draw.law, draw.shape) for draw in same] == [(d.release, d.law, d.shape) for d in draws]
    for drawn, expected_draw in zip(same, draws, strict=True):
        np.testing.assert_array_equal(drawn.values, expected_draw.values)


@pytest.mark.parametrize("name", ["sasrec", "dpvae-rigorous", "gerai", "rgcn"])
@pytest.mark.parametrize("back", [False, True])
def test_a_run_goes_on_on_another_device(name, back, elsewhere):
    """From the CPU to the other device, or `back`."""
    there, here = (elsewhere, nullcontext) if back else (nullcontext, elsewhere)
    with there():
        begun = Stretch(1)
        learn(name, begun)
    with here():
        ended = Stretch(1, begun.state)
        learn(name, ended)
    unbroken = Stretch(2)
    learn(name, unbroken)
    for key, tensor in unbroken.state[0].items():
        assert_alike(elsewhere, ended.state[0][key], tensor, key)
    assert ended.state[1] == unbroken.state[1]


def test_adversarial_alignment_ends_alike_on_another_device(elsewhere):
    rng = np.random.default_rng(0)
    pair, config = rotated(clustered(80, 5, 4, rng), rng), CONFIG.model_copy(update={"dropout": 0.1, "epochs": 1})
    expected = start(pair, 1, config).train()
    with elsewhere():
        actual = start(pair, 1, config).train()
    np.testing.assert_allclose(actual.mapping, expected.mapping, atol=1e-5 if elsewhere is pretended else 1e-2)


@pytest.mark.parametrize("name", ["dpae", "dpvae-rigorous"])
def test_canaries_are_scored_alike_on_another_device(name, elsewhere):
    def scores():
        rng = np.random.default_rng(0)
        data, _ = checkerboard(n_users=20, n_items=14)
        canaries = draw(data, 4, 2, rng)
        model = make(name, epochs=1)
        model.watch = Watcher(model, canaries, data)
        model.fit(insert(data, canaries, rng), rng=rng)
        return model.watch.scores

    expected = scores()
    near = 1e-4 if elsewhere is pretended else 1e-2
    with elsewhere():
        np.testing.assert_allclose(scores(), expected, rtol=near, atol=near)


def test_worst_case_audits_stay_on_the_cpu(elsewhere):
    audit = auditor("dpae")
    expected = audit(seed=0, n_samples=2)
    with elsewhere():
        np.testing.assert_array_equal(audit(seed=0, n_samples=2).present, expected.present)


def test_the_pretended_device_refuses_what_cuda_refuses():
    here = torch.ones(2)
    with pretended():
        there = here.to(PRETENDED)
        assert type(there[torch.tensor([1, 0])]) is Elsewhere, "an index may be on the CPU"
        for mixed in (
            lambda: there + here,
            lambda: torch.cat([there, here]),
            lambda: there.index_select(0, torch.tensor([1])),
            lambda: here[torch.tensor([1, 0]).to(PRETENDED)],
            lambda: there.bernoulli_(0.5, generator=torch.Generator()),
        ):
            with pytest.raises(AssertionError, match="on the CPU"):
                mixed()
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()
        assert torch.equal(there.cpu(), here)


@pytest.mark.parametrize("text", ["gpu", "cuda:", "cuda:-1", "CPU", ""])
def test_another_device_is_refused_and_the_message_names_those_there_are(text, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, text)
    with pytest.raises(ConfigurationError, match=r"DPREC_DEVICE: .* auto, cpu, cuda and cuda:N"):
        device.chosen()


@pytest.mark.parametrize(
    ("there", "text", "expected"), [(0, "auto", "cpu"), (2, "auto", "cuda:0"), (2, "cuda:1", "cuda:1")]
)
def test_auto_is_cuda_where_there_is_one(there, text, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    assert device.parse.__wrapped__(text) == torch.device(expected)


@pytest.mark.parametrize(("there", "text"), [(0, "cuda"), (0, "cuda:0"), (2, "cuda:2")])
def test_cuda_where_there_is_none_is_one_line(there, text, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    with pytest.raises(ConfigurationError, match=f"{text} was asked for, and this machine has .*; say auto or cpu"):
        device.parse.__wrapped__(text)


def test_without_the_variable_models_are_on_the_cpu(monkeypatch):
    monkeypatch.delenv(device.VARIABLE, raising=False)
    assert device.chosen() == torch.device("cpu")
    assert device.accelerator(asked=True) == ""


def test_provenance_names_the_accelerator_and_no_other_place(monkeypatch):
    from tasks.pipeline import provenance

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100")
    with device.hold(torch.device("cuda", 0)):
        device.chosen()
    assert device.accelerator(asked=False) == "cuda:0 (NVIDIA H100)"
    assert provenance.processor("cuda:0 (NVIDIA H100)") == f"{provenance.processor()}, cuda:0 (NVIDIA H100)"
    device.chosen()
    assert device.accelerator(asked=False) == ""
