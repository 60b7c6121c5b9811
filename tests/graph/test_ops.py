"""Message passing: both kernels agree with each other and with a slow, obvious loop."""

import numpy as np
import pytest
import torch

from tasks.graph import ops


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
