"""Where code draws next to the one door for private randomness (`tasks.privacy.noise`), read off its syntax tree.

Python can hide a draw from any such reader; this one sees the ways that someone takes who means no harm.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

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
SECRET = re.compile(r"\b_?noise_rngs?$|\bnoise_stream$|\bnoise\.(stream|generator|secure_generator)$")
"""A generator of noise, from which nothing is drawn next to the door, by whatever law."""
KEYED = {"prefix_ids", "head_ids", "INSECURE"}
"""What of `tasks.privacy.keyed` is no noise."""
BEHIND = ("keyed", "secure")
"""Modules of `tasks.privacy` behind the door."""
SYSTEM = ("random", "secrets")
"""Modules of Python that do nothing but draw."""
SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
)  # fmt: skip
Known = set[tuple[ast.AST | None, str]]
"""Names that hold generators of noise, each with the function that it is local to; attributes are so everywhere."""
CONTAINERS = {"dict", "list", "tuple", "zip", "iter", "next", "enumerate", "reversed"}


def draws(text: str, laws: set[str]) -> Iterator[str]:
    """Every draw of a module next to the door, as it stands there; `laws`: those that are draws by any generator."""
    module = _Module(ast.parse(text), laws)
    for node in module.nodes:
        yield from module.wrong(node)


class _Module:
    """What names of a module stand for."""

    def __init__(self, tree: ast.Module, laws: set[str]) -> None:
        self.nodes, self.laws = list(ast.walk(tree)), laws
        self.scopes: dict[ast.AST, tuple[ast.AST | None, ...]] = {tree: (None,)}
        for node in self.nodes:  # parents come before their children
            inner = (*self.scopes[node], node) if isinstance(node, SCOPES) else self.scopes[node]
            self.scopes.update(dict.fromkeys(ast.iter_child_nodes(node), inner))
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

    @cached_property
    def secrets(self) -> Known:
        """All names that hold a generator of noise, or several."""
        known: Known = set()
        while True:
            more = set(known)
            for node in self.nodes:
                for target, value in _assigned(node):
                    if self.secret(value, known):
                        more |= {(self._scope(name), ast.unparse(name)) for name in _names(target)}
            if more == known:
                return known
            known = more

    def _scope(self, node: ast.expr) -> ast.AST | None:
        return self.scopes[node][-1] if isinstance(node, ast.Name) else None

    def secret(self, node: ast.expr | None, known: Known) -> bool:
        """Whether an expression is a generator of noise, a part of one, or a container of such."""
        match node:
            case None:
                return False
            case ast.Call(func=func):
                if SECRET.search(ast.unparse(func)):
                    return True
                if isinstance(func, ast.Attribute) and self.secret(func.value, known):
                    return True
                return ast.unparse(func) in CONTAINERS and any(self.secret(value, known) for value in _given(node))
            case ast.Name() | ast.Attribute():
                text = ast.unparse(node)
                of = isinstance(node, ast.Attribute) and node.attr != "state" and self.secret(node.value, known)
                return any((scope, text) in known for scope in self.scopes[node]) or bool(SECRET.search(text)) or of
            case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.secret(value, known)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return any(self.secret(part, known) for part in parts)
            case ast.IfExp(body=body, orelse=orelse):
                return self.secret(body, known) or self.secret(orelse, known)
            case ast.BoolOp(values=parts):
                return any(self.secret(part, known) for part in parts)
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                return self.secret(part, known)
        return False

    def wrong(self, node: ast.AST) -> Iterator[str]:
        """What of a node is a draw next to the door."""
        match node:
            case ast.Attribute(value=value, attr=attr) if attr not in CALLED or node in self.called:
                if self._draws(value, attr) or (self._stands_for(value) == "keyed" and attr not in KEYED):
                    yield ast.unparse(node)
            case ast.ImportFrom(module=module, names=names):
                if any(self._hides(module or "", name.name) for name in names):
                    yield ast.unparse(node)
            case ast.Import(names=names):
                if any(name.name in SYSTEM or name.name.endswith(BEHIND) for name in names):
                    yield ast.unparse(node)
            case ast.Call(func=func):
                called = ast.unparse(func)
                if called in ("getattr", "methodcaller") and any(
                    isinstance(value, ast.Constant) and value.value in self.laws for value in node.args
                ):
                    yield ast.unparse(node)
                if not self._takes_noise(func) and any(self.secret(value, self.secrets) for value in _given(node)):
                    yield f"{called} is given a generator of noise"

    def _draws(self, owner: ast.expr, attr: str) -> bool:
        if self._stands_for(owner) in DOORS or ast.unparse(owner) in ("np", "numpy"):
            return False
        return attr in (DRAWS if self.secret(owner, self.secrets) else self.laws)

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

    def _takes_noise(self, func: ast.expr) -> bool:
        """The door, a mechanism (which draws through the door), a container, and what makes a generator of another."""
        called = ast.unparse(func)
        module, name = self.imported.get(called.partition(".")[0], ("", ""))
        if called.count(".") == 1 and (module, name) == ("tasks.privacy", "noise"):
            return True
        if module == "tasks.privacy.noise" or module.startswith("tasks.privacy.mechanisms"):
            return True
        return called in CONTAINERS or bool(SECRET.search(called))


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Targets with what they are given; parts of a tuple one by one, where both sides have as many."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            pairs = [(target, value)]
        case ast.withitem(context_expr=value, optional_vars=target) if target is not None:
            pairs = [(target, value)]
        case _:
            return
    for target, value in pairs:
        several = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
        if several and len(target.elts) == len(value.elts) and not any(_starred(part) for part in target.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _names(target: ast.expr) -> list[ast.expr]:
    """What an assignment to a target fills."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for part in target.elts for name in _names(part)]
    return [target.value if isinstance(target, ast.Starred | ast.Subscript) else target]


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]
