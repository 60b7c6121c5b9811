"""Equations 3-11 of GERAI written down as they stand: full graph, concatenation per edge and per pair. The oracle."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tasks.graph.ops import Neighbourhoods
from tasks.models.ranking.gerai.gcn import GCNNetwork


def node_vectors(network: GCNNetwork, graph: Neighbourhoods) -> Tensor:
    """z* of every node (Eq. 3-9)."""
    z = torch.cat([network.features @ network.embed_users.weight.T, network.embed_items])
    m = network.message(z)
    centres = torch.repeat_interleave(torch.arange(len(z)), graph.indptr.diff())
    concatenated = torch.cat([m[graph.sources], z[centres]], dim=1)
    w1 = torch.cat([network.attend_message.weight, network.attend_centre.weight], dim=1)
    hidden = torch.sigmoid(concatenated @ w1.T + network.attend_centre.bias)
    b2 = 0.7  # any value: softmax does not see it
    scores = hidden @ network.attention.weight[0] + b2
    exponents = torch.exp(scores)
    totals = torch.zeros(len(z), dtype=z.dtype).index_add(0, centres, exponents)
    attention = exponents / totals[centres]
    aggregated = torch.zeros_like(z).index_add(0, centres, attention[:, None] * m[graph.sources])
    return torch.relu(aggregated @ network.aggregate.weight.T + network.aggregate.bias)


def pair_vectors(network: GCNNetwork, users: Tensor, items: Tensor) -> Tensor:
    """W3(z*_u ⊕ z*_v) + b3 (Eq. 10, before the ReLU) for rows of user and item vectors."""
    w3 = torch.cat([network.pair_user.weight, network.pair_item.weight], dim=1)
    return torch.cat([users, items], dim=1) @ w3.T + network.pair_item.bias


def ranking_loss(network: GCNNetwork, graph: Neighbourhoods, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
    """Mean of −log σ(s_uv − s_uv') over the triples (Eq. 11)."""
    z = node_vectors(network, graph)
    q = torch.relu(pair_vectors(network, z[users], z[network.n_users + items]))
    q_negative = torch.relu(pair_vectors(network, z[users], z[network.n_users + negatives]))
    h = network.project.weight[0]
    return -logsigmoid(q @ h - q_negative @ h).mean()
