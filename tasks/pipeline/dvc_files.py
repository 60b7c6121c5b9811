"""Every dvc.yaml, written from the table of stages: `dprec pipeline` writes them, CI refuses one that differs."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import yaml

from tasks.config.attacks import AttributeAttack
from tasks.config.params import OWN_FILES, PARAMS_FILE, SUITES, Params
from tasks.pipeline import table
from tasks.pipeline.common import atomic_write
from tasks.pipeline.stage import Stage

DECIDES_NOTHING = True
HEADER = "# Written by `dprec pipeline` from tasks/pipeline/table.py and the parameters: do not edit.\n"


def texts(params: Params) -> dict[Path, str]:
    """Path of every dvc.yaml -> its content."""
    files = {
        Path(file): [_stage(stage, Path(file)) for stage in stages] for file, stages in table.dvc_files(params).items()
    }
    files[Path(table.ROOT)].insert(0, _code(params))
    written = {path: f"{HEADER}stages:\n" + "\n".join(stages) for path, stages in files.items()}
    written[Path(table.ROOT)] += "\n" + _yaml(_shown_by_dvc(params))
    return written


def outdated_files(params: Params) -> dict[Path, str | None]:
    """The files that are not what the table and the parameters say -> that; None: of a suite that is gone.

    None where the root's file was not written from the table: such a pipeline is its author's own.
    """
    root = Path(table.ROOT)
    if root.is_file() and root.stat().st_size and not root.read_bytes().startswith(HEADER.encode()):
        return {}
    wanted = texts(params)
    gone: dict[Path, str | None] = dict.fromkeys(path for path in SUITES.glob("*/dvc.yaml") if path not in wanted)
    return gone | {
        path: text for path, text in wanted.items() if not path.is_file() or path.read_bytes() != text.encode()
    }


def write(params: Params) -> list[Path]:
    """Bring every dvc.yaml up to date; the ones that changed."""
    changed = outdated_files(params)
    for path, text in changed.items():
        if text is None:
            path.unlink()
        else:
            with atomic_write(path) as target:
                target.write_text(text, encoding="utf-8")
    return [*changed]


def _code(params: Params) -> str:
    """The stage before all others: it fingerprints their code."""
    files_read = [str(SUITES / name / file) for name in params.suites for file in OWN_FILES]
    files = {path for dataset in params.datasets.values() for path in dataset.own_files().values()}
    files_read += sorted(str(path) for path in files if path.is_file())  # other suites need none of them
    body = {
        "cmd": "python -m tasks.stages.code",
        "deps": ["tasks", "requirements.lock", str(PARAMS_FILE), *files_read],
        "outs": [{table.code_file(file): {"cache": False, "persist": True}} for file in table.dvc_files(params)],
    }
    return f"  code:\n{indent(_yaml(body), '    ')}"


def _shown_by_dvc(params: Params) -> dict[str, object]:
    """What `dvc metrics` and `dvc plots` read: in the root's file, since below it a wrong path is no error."""
    folders = {name: f"data/results/{name}" for name in params.suites}
    axes = {"utility": ("epsilon", "utility"), "attacks": ("k", "f1"), "curves": ("step", "valid")}
    plots = [
        {f"{name}-{table}": {"x": x, "y": {f"{folder}/plots/{table}.csv": y}, "template": table}}
        for name, folder in folders.items()
        for table, (x, y) in axes.items()
        if table != "attacks" or isinstance(params.suites[name].attack, AttributeAttack)
    ]
    return {"metrics": [f"{folder}/summary.json" for folder in folders.values()], "plots": plots}


def _stage(stage: Stage, path: Path) -> str:
    files = {table.code_file(path.as_posix()): (f"{stage.name}.${{key}}",), **stage.params}
    body = {
        "wdir": "/".join([".."] * len(path.parent.parts)),
        "cmd": f"python -m tasks.stages.{stage.module} {stage.argument}",
        "params": [{file: [*keys]} for file, keys in files.items()],
        "deps": [*stage.deps],
        "outs": [*stage.outs, *({out: {"cache": False, "persist": True}} for out in stage.committed)],
    }
    do = _yaml({key: value for key, value in body.items() if value})
    return f"  {stage.name}:\n    foreach:\n{indent(_yaml(stage.items), '      ')}    do:\n{indent(do, '      ')}"


def _yaml(value: object) -> str:
    """Innermost lists and tables on one line, as far as they fit."""
    return str(yaml.dump(value, Dumper=yaml.CSafeDumper, default_flow_style=None, sort_keys=False, width=110))
