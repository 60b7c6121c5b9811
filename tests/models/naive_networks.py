"""The embedding networks written slowly: loops over nodes, relations and neighbours, and dense matrix powers."""

import numpy as np

from tasks.models.user_networks.base import NetworkData, Posts


def network(n_users=9, n_links=10, n_columns=3, n_words=7, seed=0, **absent) -> NetworkData:
    """A random network. Its last user has neither friends nor posts; a post of the first user is empty."""
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n_users - 1, 1), axis=1)
    links = rng.permutation(pairs)[:n_links].astype(np.int32)
    writers = np.sort(rng.integers(0, n_users - 1, 2 * n_users)).astype(np.int32)
    writers[0] = 0
    lengths = rng.integers(1, 5, len(writers))
    lengths[0] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = rng.integers(0, n_words, indptr[-1]).astype(np.int32)
    known = {
        "links": links,
        "features": rng.uniform(-1, 1, (n_users, n_columns)).astype(np.float32),
        "posts": Posts(writers, indptr, tokens, n_words),
        "word_vectors": rng.normal(size=(n_words, 4)).astype(np.float32),
    }
    return NetworkData(n_users, **{name: value for name, value in (known | absent).items() if value is not None})


def friends_of(links: np.ndarray, user: int) -> list[int]:
    return [int(b if a == user else a) for a, b in links if user in (a, b)]


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.01 * x)


def mean(rows: list[np.ndarray], width: int) -> np.ndarray:
    return np.mean(rows, axis=0) if rows else np.zeros(width)


def unit(rows: np.ndarray) -> np.ndarray:
    """Scaled to a mean square of 1."""
    return rows / np.sqrt((rows.astype(np.float64) ** 2).mean())


def rgcn(data: NetworkData, net) -> np.ndarray:
    """Equation 8 twice, a node, a relation and a neighbour at a time, with the weights of `net`."""
    weights = {name: value.detach().double().numpy() for name, value in net.named_parameters()}
    users = unit(data.features) if data.features is not None else weights["free"]
    n, width = users.shape
    friends = [friends_of(data.links, user) for user in range(n)]
    posts, written = [], [[] for _ in range(n)]
    if data.posts is not None:
        vectors = unit(data.word_vectors - data.word_vectors.mean(0))
        for post, writer in enumerate(data.posts.users):
            words = data.posts.tokens[data.posts.indptr[post] : data.posts.indptr[post + 1]]
            posts.append(mean([vectors[w] for w in words], data.word_vectors.shape[1]))
            written[writer].append(post)
    elif data.text_vectors is not None:
        known = data.text_vectors[data.has_text]
        vectors = iter(unit(known - known.mean(0)))
        for user in np.flatnonzero(data.has_text):
            written[user].append(len(posts))
            posts.append(next(vectors))
    own, of_friends, of_posts = np.split(weights["users_first.weight"], [width, 2 * width], axis=1)
    first = []
    for user in range(n):
        heard = own @ users[user] + of_friends @ mean([users[f] for f in friends[user]], width)
        if posts:
            heard = heard + of_posts @ mean([posts[p] for p in written[user]], of_posts.shape[1])
        first.append(leaky(heard + weights["users_first.bias"]))
    first_posts = {}
    for user in range(n):
        for post in written[user]:  # a post has one neighbour, its writer
            heard = weights["posts_own.weight"] @ posts[post] + weights["posts_writer.weight"] @ users[user]
            first_posts[post] = leaky(heard + weights["posts_own.bias"])
    second = []
    for user in range(n):
        heard = weights["own_second.weight"] @ first[user] + weights["own_second.bias"]
        hidden = len(first[user])
        heard = heard + weights["friends_second.weight"] @ mean([first[f] for f in friends[user]], hidden)
        if posts:
            heard = heard + weights["posts_second.weight"] @ mean([first_posts[p] for p in written[user]], hidden)
        second.append(heard)
    return np.array(second)


def adjacency(data: NetworkData) -> np.ndarray:
    """Row-normalised and dense."""
    dense = np.zeros((data.n_users, data.n_users))
    for a, b in data.links:
        dense[a, b] = dense[b, a] = 1
    return dense / np.maximum(dense.sum(1, keepdims=True), 1)


def crosue(data, net, config) -> list[np.ndarray]:
    """Equations 10 and 11 with dense matrix powers and the stack, with the weights of `net`."""
    weights = {name: value.detach().double().numpy() for name, value in net.named_parameters()}
    outputs = []
    for side, (network, carry) in enumerate(zip(data.networks, ("to_first", "to_second"), strict=True)):
        users, others = data.embeddings[side].astype(np.float64), data.embeddings[1 - side]
        met = users.copy()
        emphasis = np.zeros((network.n_users, network.n_users))
        for user in np.unique(data.anchors[:, side]):
            partners = np.unique(data.anchors[data.anchors[:, side] == user, 1 - side])
            met[user] = leaky(users[user] + np.mean([weights[f"{carry}.weight"] @ others[p] for p in partners], 0))
            emphasis[user, user] = 1
        dense = adjacency(network)
        if config.propagation == "iterative":
            for layer in range(config.hops):
                weight, bias = (weights[f"around.{side}.layers.{layer}.{part}"] for part in ("weight", "bias"))
                met = leaky(dense @ (met @ weight.T + bias))
            outputs.append(met)
            continue
        powers = [np.linalg.matrix_power(dense, hop) for hop in range(1, config.hops + 1)]
        stack = np.concatenate([met, *((config.alpha * emphasis + power) @ met for power in powers)], axis=1)
        weight = np.concatenate([weights[f"around.{side}.layers.{i}.weight"] for i in range(config.hops + 1)], axis=1)
        outputs.append(leaky(stack @ weight.T + weights[f"around.{side}.bias"]))
    return outputs
