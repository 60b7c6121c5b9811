"""Where code draws next to the one door for private randomness (`tasks.privacy.noise`), read off its syntax tree.

Python can hide a draw from any such reader; this one sees the ways that someone takes who means no harm.
"""

import ast
import re
from collections.abc import Iterator

HIDING = {
    "normal", "standard_normal", "multivariate_normal", "lognormal", "laplace", "exponential",
    "standard_exponential", "geometric", "gumbel", "logistic", "gamma", "standard_gamma", "standard_cauchy",
    "standard_t", "chisquare", "negative_binomial", "noncentral_chisquare", "weibull", "pareto", "rayleigh", "vonmises",
    "wald", "triangular", "zipf", "logseries", "noncentral_f", "randn", "randn_like", "normal_", "trunc_normal_",
    "xavier_normal_", "kaiming_normal_", "exponential_", "geometric_", "cauchy_", "log_normal_", "Laplace",
    "add_gaussian", "add_laplace", "add_symmetric_gaussian", "draw_rounded", "SecureGenerator",
    "Normal", "sample", "sample_n", "rsample", "rvs", "gumbel_softmax", "gauss", "normalvariate", "expovariate",
    "orthogonal_",
}  # fmt: skip
"""Laws of noise: what a private model draws by these, it draws through the door or from `tasks.models.draws`."""
DRAWS = HIDING | {
    "random", "integers", "choice", "choices", "permutation", "permuted", "shuffle", "binomial", "uniform",
    "poisson", "multinomial", "bytes", "beta", "dirichlet", "hypergeometric", "random_raw", "rand", "rand_like",
    "randint", "randint_like", "randperm", "bernoulli", "bernoulli_", "uniform_", "random_", "token_bytes",
    "randbelow", "randbits", "getrandbits", "urandom", "Bernoulli", "dropout", "multivariate_hypergeometric",
    "power", "f", "random_sample", "random_integers", "tomaxint", "xavier_uniform_", "kaiming_uniform_", "sparse_",
    "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "RReLU",
    "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "rrelu", "getrandom",
    "feature_dropout", "native_dropout",
}  # fmt: skip
"""All laws: what decides about someone, as randomised response does, hides as well."""
DECIDING = DRAWS - {"beta", "bytes", "f", "power"}
"""What models that spend a budget draw by no generator besides the door; without names that parameters have."""
CALLED = {"dropout"}
"""Laws whose names configurations have, too: a draw is where they are called."""
DOORS = {"noise": "tasks.privacy", "draws": "tasks.models"}
SECRET = re.compile(r"\b_?noise_rngs?(\[[^]]*\])?$|\bnoise_stream\(.*\)$")
"""A generator of noise by its name, from which nothing is drawn next to the door, by whatever law. What it is called
elsewhere no reader sees: `test_generators_of_noise_are_asked_by_the_door_alone` watches who draws from it."""
KEYED = {"prefix_ids", "head_ids"}
"""What of `tasks.privacy.keyed` is no noise."""
BEHIND = ("keyed", "secure")
"""Modules of `tasks.privacy` behind the door."""
SYSTEM = ("random", "secrets")
"""Modules of Python that do nothing but draw."""


def draws(text: str, laws: set[str]) -> Iterator[str]:
    """Every draw of a module next to the door, as it stands there; `laws`: those that are draws by any generator."""
    module = _Module(ast.parse(text), laws)
    for node in module.nodes:
        if module.is_wrong(node):
            yield ast.unparse(node)


class _Module:
    """What names of a module stand for."""

    def __init__(self, tree: ast.Module, laws: set[str]) -> None:
        self.nodes, self.laws = list(ast.walk(tree)), laws
        self.called = {node.func for node in self.nodes if isinstance(node, ast.Call)}
        own = {node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        imported = {
            name.asname or name.name: (node.module or "", name.name)
            for node in self.nodes
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        self.imported = {name: where for name, where in imported.items() if name not in own}

    def is_wrong(self, node: ast.AST) -> bool:
        """Whether a node is a draw next to the door."""
        match node:
            case ast.Attribute(value=value, attr=attr) if attr not in CALLED or node in self.called:
                return self._draws(value, attr) or (self._stands_for(value) == "keyed" and attr not in KEYED)
            case ast.ImportFrom(module=module, names=names):
                return any(self._hides(module or "", name.name) for name in names)
            case ast.Import(names=names):
                return any(name.name in SYSTEM or name.name.endswith(BEHIND) for name in names)
            case ast.Call(func=func, args=args) if ast.unparse(func) in ("getattr", "methodcaller"):
                return any(isinstance(value, ast.Constant) and value.value in self.laws for value in args)
        return False

    def _draws(self, owner: ast.expr, attr: str) -> bool:
        if self._stands_for(owner) in DOORS or ast.unparse(owner) in ("np", "numpy"):
            return False
        return attr in (DRAWS if SECRET.search(ast.unparse(owner)) else self.laws)

    def _stands_for(self, owner: ast.expr) -> str:
        """The module that a name stands for, where it is a door or behind it."""
        text = ast.unparse(owner)
        module, name = self.imported.get(text, ("", ""))
        if DOORS.get(name) == module or (module == "tasks.privacy" and name in BEHIND):
            return name
        head, _, last = text.rpartition(".")
        return last if last in BEHIND and head.endswith("privacy") else ""

    def _hides(self, module: str, name: str) -> bool:
        if module.partition(".")[0] != "tasks":
            return name in self.laws or module in SYSTEM
        if module.endswith(".secure") or (module.endswith("privacy") and name == "secure"):
            return True
        if module == "tasks.privacy.noise" and name in (*BEHIND, "SecureGenerator"):
            return True
        return module.endswith(".keyed") and name not in KEYED
