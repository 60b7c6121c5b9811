"""Names of models in params.yaml -> where they are defined; imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.models.base import Model

MODELS = {
    "popularity": "tasks.models.popularity:Popularity",
    "dp-popularity": "tasks.models.popularity:PrivatePopularity",
    "bpr": "tasks.models.bpr:BPR",
    "blurm": "tasks.models.blurm:Blurm",
    "ease": "tasks.models.ease:EASE",
    "dpmf": "tasks.models.dpmf:DPMF",
    "dpmf-rigorous": "tasks.models.dpmf:DPMF",
    "dpne": "tasks.models.dpne:DPNE",
    "gcn": "tasks.models.gerai.gcn:GCN",
    "gerai": "tasks.models.gerai.gerai:GERAI",
    "gerai-nl": "tasks.models.gerai.gerai:GERAI",
    "gerai-nf": "tasks.models.gerai.gcn:GCN",
    "dpae": "tasks.models.dpae:DPAE",
    "dpals": "tasks.models.dpals:DPALS",
    "rap": "tasks.models.rap:RAP",
    "knn": "tasks.models.knn:KNN",
    "lightfm": "tasks.models.lightfm:LightFM",
    "bprmf": "tasks.models.bpr:BPR",
    "lightgcn": "tasks.models.lightgcn:LightGCN",
    "dpmf-implicit": "tasks.models.dpmf_ranking:ImplicitDPMF",
    "dpmf-explicit": "tasks.models.dpmf_ranking:ExplicitDPMF",
    "sasrec": "tasks.models.sasrec:SASRec",
    "hrnn": "tasks.models.hrnn:HRNN",
    "srgnn": "tasks.models.sessions.srgnn:SRGNN",
    "apgnn": "tasks.models.sessions.srgnn:APGNN",
    "dipsgnn": "tasks.models.sessions.dipsgnn:DIPSGNN",
    "dipsgnn-rigorous": "tasks.models.sessions.dipsgnn:DIPSGNN",
    "dipsgnn-cached": "tasks.models.sessions.dipsgnn:DIPSGNN",
    "nonp": "tasks.models.sessions.dipsgnn:DIPSGNN",
    "nonp-u": "tasks.models.sessions.dipsgnn:PrivU",
    "priv-u": "tasks.models.sessions.dipsgnn:PrivU",
    "edgerand": "tasks.models.sessions.edgerand:EdgeRand",
    "dpsgd": "tasks.models.sessions.dpsgd:DPSGD",
    "ae": "tasks.models.vae.autoencoder:AE",
    "vae": "tasks.models.vae.vae:VAE",
    "dpvae": "tasks.models.vae.vae:VAE",
    "dpvae-rigorous": "tasks.models.vae.vae:VAE",
    "dpvae-compact": "tasks.models.vae.vae:VAE",
    "mf": "tasks.models.factorisation:MF",
    "svd": "tasks.models.factorisation:SVD",
    "rating-means": "tasks.models.rating_means:RatingMeans",
    "dp-rating-means": "tasks.models.rating_means:PrivateRatingMeans",
    "mf-ratings": "tasks.models.social.baselines:MF",
    "soreg": "tasks.models.social.baselines:SoReg",
    "dpmf-ratings": "tasks.models.social.baselines:DPMF",
    "privsr": "tasks.models.social.privsr:PrivSR",
    "privsr-rigorous": "tasks.models.social.privsr:PrivSR",
    "attributes": "tasks.models.networks.controls:Attributes",
    "degree": "tasks.models.networks.controls:Degree",
    "random": "tasks.models.networks.controls:Random",
    "word2vec": "tasks.models.networks.word2vec:Word2Vec",
    "santext": "tasks.models.networks.word2vec:Word2Vec",
    "deepwalk": "tasks.models.networks.deepwalk:DeepWalk",
    "sne": "tasks.models.networks.sne:SNE",
    "udmf": "tasks.models.networks.udmf:UDMF",
    "rgcn": "tasks.models.networks.rgcn:RGCN",
    "rgcn-attribute-free": "tasks.models.networks.rgcn:RGCN",
    "dp-rgcn": "tasks.models.networks.rgcn:RGCN",
    "crosue": "tasks.models.networks.crosue:CroGCN",
    "dp-crosue": "tasks.models.networks.crosue:CroGCN",
    "crogcn-nh": "tasks.models.networks.crosue:CroGCN",
    "crogcn-na": "tasks.models.networks.crosue:CroGCN",
}


def model_class(name: str) -> type[Model]:
    """The class registered under `name` (KeyError if there is none)."""
    module, _, attribute = MODELS[name].partition(":")
    return getattr(import_module(module), attribute)
