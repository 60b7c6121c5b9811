"""Message passing and attention: all kernels agree with each other and with a slow, obvious loop."""

import numpy as np
import pytest
import torch

from tasks.graph import attention, ops


@pytest.fixture(params=["dgl", "torch"])
def kernels(request, monkeypatch):
    """Run a test with DGL's kernels and with the torch operations that serve CUDA tensors."""
    if request.param == "torch":
        monkeypatch.setattr(ops, "_on_cpu", lambda _: False)


def random_graph(seed: int, n_edges: int = 30, *, loops: bool = True) -> ops.Neighbourhoods:
    """Of 7 users and 11 items."""
    codes = np.random.default_rng(seed).choice(77, n_edges, replace=False)
    return ops.Neighbourhoods.bipartite(
        (codes // 11).astype(np.int32), (codes % 11).astype(np.int32), 7, 11, loops=loops
    )


def test_every_node_hears_its_neighbours_and_itself():
    graph = ops.Neighbourhoods.bipartite(np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32), 2, 3)
    heard = [set(graph.sources[a:b].tolist()) for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]
    assert heard == [{0, 3, 4}, {1, 4}, {2}, {3, 0}, {4, 0, 1}]


def test_without_loops_no_node_hears_itself():
    with_loops, graph = random_graph(0), random_graph(0, loops=False)
    for node in range(18):
        heard = graph.sources[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        before = with_loops.sources[with_loops.indptr[node] : with_loops.indptr[node + 1]].tolist()
        assert heard == [other for other in before if other != node]


@pytest.mark.parametrize("seed", range(3))
def test_a_block_holds_exactly_the_edges_of_its_centres(seed):
    graph = random_graph(seed)
    centres = torch.from_numpy(np.random.default_rng(seed).permutation(18)[:6])
    block = graph.block(centres)
    for position, centre in enumerate(centres.tolist()):
        expected = graph.sources[graph.indptr[centre] : graph.indptr[centre + 1]]
        assert torch.equal(block.sources[block.indptr[position] : block.indptr[position + 1]], expected)
        assert (block.centres[block.indptr[position] : block.indptr[position + 1]] == position).all()


@pytest.mark.usefixtures("kernels")
def test_softmax_survives_large_scores():
    block = random_graph(0).all()
    scores = torch.linspace(-500, 500, len(block.sources))
    weights = ops.softmax(block, scores)
    assert torch.isfinite(weights).all()
    totals = torch.zeros(18).index_add(0, block.centres, weights)
    torch.testing.assert_close(totals, torch.ones(18))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_constant_weights_equals_a_loop_in_value_and_gradient(seed):
    graph = random_graph(seed)
    block = graph.block(torch.tensor([3, 9, 17, 0]))
    rng = np.random.default_rng(seed)
    weights, given, outer = (torch.from_numpy(rng.normal(size=size)) for size in (len(block.sources), (18, 5), (4, 5)))
    messages = given.clone().requires_grad_()
    out = ops.ConstantSum(block, weights)(messages)
    (out * outer).sum().backward()
    expected, gradient = torch.zeros(4, 5, dtype=torch.float64), torch.zeros(18, 5, dtype=torch.float64)
    for centre in range(4):
        for edge in range(block.indptr[centre], block.indptr[centre + 1]):
            expected[centre] += weights[edge] * given[block.sources[edge]]
            gradient[block.sources[edge]] += weights[edge] * outer[centre]
    torch.testing.assert_close(out.detach(), expected)
    torch.testing.assert_close(messages.grad, gradient)


def inputs(n_centres: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Rows of sources, rows of centres, the weight, messages of another width than the rows."""
    generator = torch.Generator().manual_seed(n_centres)
    shapes = (18, 5), (n_centres, 5), (5,), (18, 3)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def gradients(out: torch.Tensor, of: list[torch.Tensor]) -> list[torch.Tensor]:
    weights = torch.from_numpy(np.random.default_rng(9).normal(size=out.shape)).to(out.dtype)
    return list(torch.autograd.grad((out * weights).sum(), of))


def steps(block, sources, centres, weight, messages, counts=None):
    """The same by `ops` alone."""
    scores = ops.additive_scores(block, sources, centres, weight)
    return ops.weighted_sum(block, ops.softmax(block, scores) if counts is None else scores * counts, messages)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("attend", [attention.attend, steps])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("loops", [True, False])  # without them some centres have no edges
@pytest.mark.parametrize("seed", range(3))
def test_attention_equals_a_loop_over_centres_in_value_and_gradient(seed, loops, counted, attend, monkeypatch):
    monkeypatch.setattr(ops._AdditiveScores, "PIECE", 7)  # so that pieces and centres overlap
    graph = random_graph(seed, n_edges=12 if not loops else 30, loops=loops)
    centres = torch.tensor([3, 9, 17, 0, 4])
    given = inputs(len(centres))
    block = graph.block(centres)
    counts = torch.arange(1.0, len(block.sources) + 1) if counted else None
    out = attend(block, *given, counts)
    sources, rows, weight, messages = given
    slow = []
    for position, centre in enumerate(centres.tolist()):
        heard = graph.sources[graph.indptr[centre] : graph.indptr[centre + 1]]
        scores = torch.sigmoid(sources[heard] + rows[position]) @ weight
        edges = slice(block.indptr[position], block.indptr[position + 1])
        weights = torch.softmax(scores, 0) if counts is None else scores * counts[edges]
        slow.append(weights @ messages[heard])
    torch.testing.assert_close(out, torch.stack(slow))
    for fast, expected in zip(gradients(out, given), gradients(torch.stack(slow), given), strict=True):
        torch.testing.assert_close(fast, expected)


@pytest.mark.parametrize("largest", [1.0, 39.9, 300.0])  # the last beyond what exponentials can be multiplied of
def test_attention_of_float32_equals_its_steps_however_large_the_rows(largest):
    block = random_graph(2).all()
    given = [t.detach() for t in inputs(18, torch.float32)]
    for rows in given[:2]:
        rows *= largest / rows.abs().max()
    given = [t.requires_grad_() for t in given]
    out = attention.attend(block, *given)
    assert (out.grad_fn.name() == "_AttendBackward") == (largest <= attention.LARGEST)
    slow = steps(block, *given)
    torch.testing.assert_close(out, slow)
    for fast, expected in zip(gradients(out, given), gradients(slow, given), strict=True):
        torch.testing.assert_close(fast, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_a_number_is_not_hidden(place, value):
    given = inputs(18)
    with torch.no_grad():
        given[place].view(-1)[3] = value
    out = attention.attend(random_graph(2).all(), *given)
    assert not torch.isfinite(out).all() or (place < 2 and value == torch.inf)  # a sigmoid of infinity is a number


def test_a_graph_without_edges_gives_zeros():
    block = ops.Block(torch.zeros(5, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), 18)
    given = inputs(4)
    out = attention.attend(block, *given)
    assert torch.equal(out, torch.zeros(4, 3, dtype=torch.float64))
    assert all(torch.equal(g, torch.zeros_like(g)) for g in gradients(out, given))


@pytest.mark.parametrize(
    ("place", "shape"), [(0, (17, 5)), (0, (18, 4)), (1, (17, 5)), (1, (18, 6)), (2, (4,)), (3, (17, 3)), (3, (19, 3))]
)
def test_other_shapes_are_refused_before_anything_is_read(place, shape):
    given = inputs(18)
    given[place] = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(ValueError, match="a block of 18 sources and 18 centres got"):
        attention.attend(random_graph(2).all(), *given)


def test_numbers_of_two_types_are_refused():
    given = inputs(18)
    with pytest.raises(ValueError, match="float32"):
        attention.attend(random_graph(2).all(), *given[:3], given[3].float())


@pytest.mark.parametrize(("indptr", "sources"), [([0, 1, 2], [0, 18]), ([0, 1, 2], [-1, 0]), ([0, 3, 2], [0, 1]),
                                             ([0, 1, 3], [0, 1]), ([1, 1, 2], [0, 1])])  # fmt: skip
def test_an_edge_that_leads_out_of_the_block_is_refused(indptr, sources):
    block = ops.Block(torch.tensor(indptr), torch.tensor(sources), 18)
    with pytest.raises(ValueError, match="lead out of its 18 sources"):
        attention.attend(block, *inputs(2))


def test_a_second_derivative_is_refused():
    given = inputs(18)
    out = attention.attend(random_graph(2).all(), *given)
    (first,) = torch.autograd.grad(out.square().sum(), given[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA not run")
def test_cuda_agrees_with_cpu():
    graph, given = random_graph(4), inputs(18, torch.float32)
    moved = [t.detach().cuda() for t in given]
    there = attention.attend(graph.to("cuda").all(), *moved)
    torch.testing.assert_close(there.cpu(), attention.attend(graph.all(), *given))
