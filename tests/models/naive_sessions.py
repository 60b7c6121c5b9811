"""Gated graph networks one prefix at a time, as docs/methods.md §3 has them: slow code.

Every prefix gets a dense adjacency matrix of its own and goes alone through `torch.nn.GRUCell`. Nothing is shared with
`tasks.models.sessions` but the parameters.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Pair = tuple[Tensor, Tensor]


def adjacency(items: list[int], *, normalised: bool = False) -> tuple[list[int], Tensor, Tensor]:
    """Distinct items in order of first visit, A_out and A_in: (n, n); A_out[i, j]: how often j came right after i."""
    nodes = list(dict.fromkeys(items))
    a_out = torch.zeros(len(nodes), len(nodes))
    for item, following in pairwise(items):
        a_out[nodes.index(item), nodes.index(following)] += 1
    a_in = a_out.T.clone()
    if normalised:
        for matrix in (a_out, a_in):
            for row in matrix:
                row /= max(float(row.sum()), 1.0)
    return nodes, a_out, a_in


def user_vector(network, user: int) -> Tensor | None:
    """e_u: of a user's features (Eq. 5), of the id (the mean of all who trained, where this one did not), or none."""
    if network.user is None:
        return None
    if isinstance(network.user, torch.nn.Embedding):
        weight, trained = network.user.weight, network.user.trained
        return weight[user] if trained[user] else weight[trained].mean(dim=0)
    return network.user.weight @ network.profiles[user]


def joint_states(states: Tensor, user: Tensor | None, clip: float | None) -> Tensor:
    """h = e_item ⊕ e_user, with length `clip` where there is one (Eq. 4 and 6)."""
    rows = []
    for state in states:
        joint = state if user is None else torch.cat([state, user])
        rows.append(joint if clip is None else clip * joint / joint.norm())
    return torch.stack(rows)


def prefix_scores(
    network,
    items: list[int],
    user: int,
    *,
    steps: int,
    clip: float | None = None,
    normalised: bool = False,
    matrix_noise: Callable[[int], Pair] | None = None,
    aggregates: Callable[[int, list[int]], Pair] | None = None,
) -> Tensor:
    """Scores of all items after one prefix: (n_items,).

    Args:
        matrix_noise: of a user, what is added to A_out and to A_in, each at least (n_nodes, n_nodes).
        aggregates: of a user and a prefix, what takes the place of A_out H and A_in H, each (n_nodes, d + d').
    """
    nodes, a_out, a_in = adjacency(items, normalised=normalised)
    if matrix_noise is not None:
        of_out, of_in = (noise[: len(nodes), : len(nodes)] for noise in matrix_noise(user))
        a_out, a_in = a_out + of_out, a_in + of_in
    d = network.items.weight.shape[1]
    e_user = user_vector(network, user)
    states = network.items.weight[nodes]
    for _ in range(steps):
        joint = joint_states(states, e_user, clip)
        h_out, h_in = (a_out @ joint, a_in @ joint) if aggregates is None else aggregates(user, items)
        after = h_out @ network.successors.weight.T + network.successors.bias
        before = h_in @ network.predecessors.weight.T + network.predecessors.bias
        states = network.gates(torch.cat([after, before], dim=1), joint[:, :d])
    last = states[nodes.index(items[-1])]
    attended = torch.zeros(d)
    for state in (states[nodes.index(item)] for item in items):
        hidden = network.attend_last.weight @ last + network.attend_last.bias + network.attend_node.weight @ state
        attended = attended + (network.attention.weight[0] @ torch.sigmoid(hidden)) * state
    parts = [attended, last] if e_user is None else [attended, last, e_user]
    return network.items.weight @ (network.readout.weight @ torch.cat(parts))


def prefixes(sequences) -> list[tuple[int, list[int]]]:
    """User and items of every prefix, in the order of the events."""
    result = []
    for row, user in enumerate(sequences.users):
        items = sequences.items[sequences.indptr[row] : sequences.indptr[row + 1]].tolist()
        result += [(int(user), items[: end + 1]) for end in range(len(items))]
    return result


def all_scores(network, sequences, **how) -> Tensor:
    """Scores after every event: (n_events, n_items)."""
    return torch.stack([prefix_scores(network, items, user, **how) for user, items in prefixes(sequences)])


def mean_loss(network, sequences, **how) -> Tensor:
    """Mean cross-entropy of the next item over all prefixes that have one."""
    losses = []
    for user, items in prefixes(sequences):
        if len(items) > 1:
            scores = prefix_scores(network, items[:-1], user, **how)
            losses.append(cross_entropy(scores, torch.tensor(items[-1])))
    return torch.stack(losses).mean()
