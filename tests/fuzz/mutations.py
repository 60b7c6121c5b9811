"""Ways to spoil a file: bytes, fields, lines, all of it. Each is (content, random) -> content."""

import random
import re
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]

TOKENS: tuple[bytes, ...] = (
    b"", b" ", b"\x00", b"\r", b"\n", b"\r\n", b"\t", b"\x1a", b"\x1e", b"\x1f", b'"', b'""', b"'", b",", b"::", b"|",
    b";", b"\xff", b"\xc3", b"\xe9", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    "\u2028\u0085\u200b".encode(),
    *b"-1 -0 00 +1 0x10 1e5 1.0 1,5 1_000 nan inf -inf 1e308 -1e308 1e999 1e-400 2147483648".split(),
    b"9223372036854775807", b"9223372036854775808", b"9" * 40, b"9" * 5000,
    *b"null None true yes ~ {} [] { *a &a !!python/object:os.system # % @ ` \\ \\u0000 \\ud800 ../.. / =1+1".split(),
    b"[" * 2000, b'{"a":' * 2000, b"<<: *a", b"- ", b": ", b"${key}", b"$(id)", b"; touch x",
    b"2024-13-45", b"9999-12-31 25:61:61", b"0000-00-00", b"a" * 5000,
)  # fmt: skip
"""What parsers stumble over."""
_FIELDS = re.compile(rb"[^\s,:|;\"{}\[\]\t]+")


def _place(content: bytes, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


def _span(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = _place(content, rng)
    return start, min(len(content), start + int(2 ** rng.uniform(0, 8)))


def flip(content: bytes, rng: random.Random) -> bytes:
    """Some bits are others."""
    spoilt = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 4, 16))):
        if spoilt:
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def byte(content: bytes, rng: random.Random) -> bytes:
    """A byte is another, often an extreme one."""
    if not content:
        return b"\0"
    at = rng.randrange(len(content))
    return content[:at] + bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))]) + content[at + 1 :]


def cut(content: bytes, rng: random.Random) -> bytes:
    """A piece is missing."""
    start, end = _span(content, rng)
    return content[:start] + content[end:]


def truncate(content: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return content[: _place(content, rng)]


def repeat(content: bytes, rng: random.Random) -> bytes:
    """A piece is there several times."""
    start, end = _span(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 2, 50)) + content[end:]


def insert(content: bytes, rng: random.Random) -> bytes:
    """Something stands where it should not."""
    at = _place(content, rng)
    return content[:at] + rng.choice(TOKENS) + content[at:]


def field(content: bytes, rng: random.Random) -> bytes:
    """A value is another."""
    fields = list(_FIELDS.finditer(content))
    if not fields:
        return insert(content, rng)
    place = rng.choice(fields)
    other = rng.choice((rng.choice(TOKENS), rng.choice(fields)[0]))
    return content[: place.start()] + other + content[place.end() :]


def line(content: bytes, rng: random.Random) -> bytes:
    """A line is missing, repeated, empty or elsewhere."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    moved = lines.pop(at)
    match rng.randrange(4):
        case 0:
            lines[at:at] = [moved, moved]
        case 1:
            lines.insert(at, b"")
        case 2:
            lines.insert(rng.randrange(len(lines) + 1), moved)
    return b"\n".join(lines)


def ends(content: bytes, rng: random.Random) -> bytes:
    """Lines end in another way, or the last one does not."""
    other = rng.choice((b"\r", b"\r\n", b"\n\r", b"\n\n", b"\x00\n", b" \n", b"\t\n", b""))
    return content.replace(b"\n", other) if rng.random() < 0.7 else content.rstrip(b"\n") + other


def encoding(content: bytes, rng: random.Random) -> bytes:
    """Another encoding, or a mark at the beginning."""
    known = content.decode("latin-1")
    kind = rng.choice(("utf-16", "utf-8-sig", "utf-32-le", "cp037", "utf-7"))
    return known.encode(kind, "replace")


def replace(content: bytes, rng: random.Random) -> bytes:
    """Something else altogether."""
    size = int(2 ** rng.uniform(0, 10))
    return rng.choice(
        (b"", b"\n", b" \n" * 3, b"\xef\xbb\xbf", rng.randbytes(size), rng.choice(TOKENS) * 20, content * 2)
    )


BINARY: tuple[Mutation, ...] = (flip, byte, byte, cut, truncate, repeat, insert, replace)
ALL: tuple[Mutation, ...] = (*BINARY, field, field, field, line, ends, encoding)


def spoilt(name: str, content: bytes, rng: random.Random) -> bytes:
    """The content of a file after one to three mutations."""
    kinds = BINARY if name.endswith((".parquet", ".npy", ".zip")) else ALL
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(kinds)(content, rng)
    return content
