"""What of a module counts in a fingerprint, and what of its imports: on a project of a few lines."""

from pathlib import Path

import pytest

from tasks.core.fingerprints import Source

FILES = {
    "__init__.py": "", "a.py": "X = Y = 1", "twin.py": "X = Y = 1", "b.py": "X = Y = 2",
    "silent.py": "DECIDES_NOTHING = True", "quiet.py": "import tasks.b\nX = 2\nDECIDES_NOTHING = True",
    "p/__init__.py": "", "p.py": "X = 3", "p/m.py": "", "q/__init__.py": "import os", "q/m.py": "",
}  # fmt: skip
"""What is imported below; a package comes before a module of its name."""
FROM_A, FROM_B, TWIN = (f"from tasks.{name} import X as {name}\n" for name in ("a", "b", "twin"))
INSIDE = "def f():\n from tasks.a import X\n return X\ndef g():\n from tasks.b import X\n return X"
SWAPPED = INSIDE.replace(".a", ".c").replace(".b", ".a").replace(".c", ".b")


A = "from tasks.a import X"
CASES = [
    (A, "from tasks.b import X", True), (A, "from tasks.a import Y as X", True), (A, "from tasks import a as X", True),
    (A, "from tasks.a import X as Y", True), (A, "from tasks.twin import X", False),
    ("from math import sin as f", "from math import cos as f", True), (FROM_A + FROM_B, FROM_B + FROM_A, False),
    (FROM_A + FROM_B, FROM_A.replace(".a", ".b") + FROM_B.replace(".b", ".a"), True),
    (FROM_A + FROM_B + "from tasks.a import X as z", FROM_A + FROM_B + "from tasks.b import X as z", True),
    (FROM_A + TWIN, FROM_A + TWIN.replace(".twin", ".a"), True), (INSIDE, SWAPPED, True),
    (FROM_A + "from tasks.b import *", "from tasks.b import *\n" + FROM_A, True),
    ("from tasks.p import m", "from tasks.q import m", True), ("import tasks.p as n", "import tasks.p.m as n", False),
    ("from tasks import p, q\nfrom tasks.p import m", "from tasks import p, q\nfrom tasks.q import m", False),
    ("from tasks.silent import X", "from tasks.quiet import X", False),
    ("x = 1", "if TYPE_CHECKING:\n    import torch\nx = 1", False), ("x = 1", "from typing import Any\nx = 1", False),
    ("def f(a: int) -> int:\n    return a", "def f(a):\n    '''Say it.'''\n    return (a)", False),
    ("def f():\n    x: int = 1\n    return x", "def f():\n    x = 1\n    return x", False),
    ("def f():\n    return 1", "def f():\n    return 1\nf()", True), ("def f(a=1): ...", "def f(a=2): ...", True),
    ("class A:\n    lr: int", "class A:\n    lr: float", True), ("@a\ndef f(): ...", "@b\ndef f(): ...", True),
    ("@tool\ndef f(a: int): ...", "@tool\ndef f(a: float): ...", True),
    ("@property\ndef f(a) -> int: ...", "@property\ndef f(a) -> float: ...", False),
    ("x = 1\nHOLDS_PARAMETERS = True", "x = 1", False), ("x = 1", "x = 1  # one", False), ("x = 1", "x = 2", True),
    ("x: int = 1", "x: float = 1", False), ("x = 'a' 'b'", 'x = "ab"', False), ("x = 1", "x = 1.0", True),
    ("raise AError(f'no {x}')", "raise AError('none')", False), ("raise AError('a')", "raise BError('a')", True),
    ("raise Again('a')", "raise Again('b')", True), ("return AError('a')", "return AError('b')", False),
    ("assert x, 'a'", "assert x, 'b'", False), ("assert x, 'a'", "assert y, 'a'", True),
    ("return AError('a')", "return BError('a')", True), ("return str(AError('a'))", "return str(AError('b'))", True),
 ("f('a')", "f('b')", True),
    ("print('a')", "print('b')", False), ("x = print('a')", "x = print('b')", True),
    ("x = 0.0", "x = -0.0", True), ("a, b = 1, 2", "b, a = 1, 2", True), ("x = not a", "x = a", True),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "moves"), CASES)
def test_what_counts(old: str, new: str, moves: bool, tmp_path: Path) -> None:
    digests = []
    for name, text in (("old", old), ("new", new)):
        for file, content in {**FILES, "s.py": text}.items():
            (path := tmp_path / name / "tasks" / file).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        digests.append(Source(tmp_path / name).digest("tasks.s"))
    assert (digests[0] != digests[1]) == moves


def test_a_registry_has_the_entries_of_those_that_it_unpacks(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/__init__.py").write_text("")
    (tmp_path / "tasks/a.py").write_text('A = {"x": "tasks.a"}\nB = {**A, "y": "tasks.a"}\nC = {**D, "y": "tasks.a"}\n')
    assert Source(tmp_path).module("tasks.a").registries == {
        "A": {"x": "tasks.a"}, "B": {"x": "tasks.a", "y": "tasks.a"}
    }  # fmt: skip
