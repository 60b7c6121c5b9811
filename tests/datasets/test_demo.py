from hashlib import sha256
from pathlib import Path

from tasks.datasets.synthetic import demo
from tests.datasets import formats

DIGESTS = {
    "README": "ff85574c07d245c4ae8fd49ffc20d23fbe02c0a7716c3edcaead0bba3c4c0e41",
    "u.data": "ada63b6429f4250628986afb7b33bc2d33cefc1cea19f433f3c5d5b490c56823",
    "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
    "u.info": "1e2cc235f6a80cdbc6747d3bf84b823c2f3a5a26d75e05b0614b7acfafd55651",
    "u.item": "507a593caa1729774f8cf0b63262eee8ceabb35b2698a91143da3b0966e98e87",
    "u.occupation": "cd5fbec9afe345d993a62fc7817df1a4a9079c4feb267b3118763b8fd942137d",
    "u.user": "9c69ec8115762bbe539d3effd0590adf071172d730175ebe8b06100c90846d47",
}
"""SHA-256 of the files that the committed results of the demo are of."""


def test_its_files_are_those_of_the_committed_results(tmp_path: Path) -> None:
    folder = formats.obtained(demo, tmp_path)
    assert {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()} == DIGESTS
