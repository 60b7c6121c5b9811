"""The suite that `dprec init` writes for own files: common systems, attacks on classes of users, what may be tuned."""

from __future__ import annotations

SUITE = """\
# What the suite `{name}` runs, as `dprec init` wrote it: common systems at settings to begin with, not tuned ones.
# `dprec tune EXPERIMENT` tries those of tuning.yaml on validation data.

title: "Systems on {name}"
paper: null
data: "{name}"
task: top-k
about: {{part: "", limits: ""}}  # what the report says of the data beyond what is computed
evaluation: {{k: {cutoffs}, negatives: {negatives}, seed: 2021, recall: relevant}}
training: {{patience: 30, validation_k: {last}}}
ceilings: {{{name}-dp-popularity: {name}-popularity}}  # the same without privacy, to compare with
defaults:
  experiments: {{data: "{name}", features: processed/{name}, seeds: [0, 1, 2, 3, 4]}}

# An epsilon is per user: all interactions of one, of which `contribution` count. These settings hang on the numbers of
# users and items; whoever publishes a model with an epsilon takes both as public.
experiments:
  {name}-popularity: {{model: popularity}}
  {name}-ease: {{model: ease, config: {{regularization: 200.0}}}}
  {name}-bpr:
    model: bpr
    config: {{epochs: 40, batch_size: 512, learning_rate: 0.005, regularization: 0.00005, dimension: 32}}
  {name}-dp-popularity: {{model: dp-popularity, config: {{epsilon: 1.0, contribution: 10}}}}
  {name}-dpals:
    model: dpals
    config:
      {{epsilon: 1.0, delta: {delta}, dimension: 4, iterations: 2, user_ridge: 0.1, item_ridge: 100.0, clip: 1.0,
       lengthen: true, contribution: 10.0, denoise: true, head: {head}, counts_share: 0.4, gramian_share: 0.02}}
  {name}-dpae:
    model: dpae
    config:
      {{epochs: 40, batch_size: {batch}, learning_rate: 0.1, momentum: 0.9, dimension: 4, epsilon: 1.0, delta: {delta},
       clip_norm: 5.0}}
"""
ATTRIBUTES = """\
# What is tried on everything that the systems of `{name}` release.

attack:
  kind: attribute             # inference of the users' attributes that params.yaml calls sensitive
  k: {cutoffs}
  attackers: [neural, naive_bayes]
  sweep: {{k: [{last}], attackers: [neural]}}
  control_k: [{last}]
  target_share: 0.2
  split_seed: 2021
training_audit: null
"""
NO_ATTACK = """\
# Attacks need sensitive attributes of users, which params.yaml names under `users`.

attack: null
training_audit: null
"""
TUNING = """\
# What `dprec tune` tries for the systems of `{name}`. No stage reads it.

tuning:
  seed: 1000                  # not among the seeds of any result
  grid:
    ease: {{regularization: [50.0, 200.0, 800.0]}}
    bpr: {{learning_rate: [0.002, 0.005, 0.01], regularization: [0.00001, 0.0001]}}
    dp-popularity: {{contribution: [1, 5, 10, 50]}}
    dpals: {{contribution: [5.0, 10.0, 20.0]}}
    dpae: {{clip_norm: [2.5, 5.0, 10.0], learning_rate: [0.05, 0.1]}}
"""


def texts(name: str, n_users: int, n_items: int, *, attacked: bool) -> dict[str, str]:
    """File -> text of the suite; attacked: there are attributes of users to infer."""
    cutoffs = [k for k in (5, 10, 20) if k <= n_items // 2] or [1]
    fills = {
        "name": name,
        "cutoffs": cutoffs,
        "last": cutoffs[min(1, len(cutoffs) - 1)],
        "negatives": max(1, min(100, n_items // 2)),
        "delta": f"1.0e-{len(str(n_users))}",
        "head": min(300, n_items),
        "batch": min(1000, n_users),
    }
    files = {"params.yaml": SUITE, "attack.yaml": ATTRIBUTES if attacked else NO_ATTACK, "tuning.yaml": TUNING}
    return {file: text.format(**fills) for file, text in files.items()}
