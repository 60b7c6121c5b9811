"""Names of models in params.yaml -> where they are defined; imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.models.base import Model

MODELS = {
    "popularity": "tasks.models.ranking.popularity:Popularity",
    "dp-popularity": "tasks.models.ranking.popularity:PrivatePopularity",
    "bpr": "tasks.models.ranking.bpr:BPR",
    "blurm": "tasks.models.ranking.private_attributes:Blurm",
    "ials": "tasks.models.ranking.ials:IALS",
    "ease": "tasks.models.ranking.ease:EASE",
    "dpmf": "tasks.models.ranking.dpmf:DPMF",
    "dpne": "tasks.models.ranking.dpmf:DPNE",
    "gcn": "tasks.models.ranking.gerai.gcn:GCN",
    "gcn-dot": "tasks.models.ranking.gerai.gcn:DotGCN",
    "gerai": "tasks.models.ranking.gerai.gerai:GERAI",
    "dpae": "tasks.models.ranking.dpae:DPAE",
    "dpals": "tasks.models.ranking.dpals:DPALS",
    "gram-svd": "tasks.models.ranking.gram:GramSVD",
    "gram-ease": "tasks.models.ranking.gram:GramEASE",
    "gram-ease-raw": "tasks.models.ranking.gram:RawGramEASE",
    "gaussian-popularity": "tasks.models.ranking.gram:GaussianPopularity",
    "rap": "tasks.models.ranking.private_attributes:RAP",
    "knn": "tasks.models.ranking.knn:KNN",
    "lightfm": "tasks.models.ranking.lightfm:LightFM",
    "lightgcn": "tasks.models.ranking.lightgcn:LightGCN",
    "dpmf-implicit": "tasks.models.ranking.dpmf:ImplicitDPMF",
    "dpmf-explicit": "tasks.models.ranking.dpmf:ExplicitDPMF",
    "sasrec": "tasks.models.sessions.sasrec:SASRec",
    "dp-sasrec": "tasks.models.sessions.dpsasrec:DPSASRec",
    "hrnn": "tasks.models.sessions.hrnn:HRNN",
    "srgnn": "tasks.models.sessions.gated:SRGNN",
    "apgnn": "tasks.models.sessions.gated:APGNN",
    "dipsgnn": "tasks.models.sessions.dipsgnn:DIPSGNN",
    "dipsgnn-released": "tasks.models.sessions.released:Released",
    "priv-u": "tasks.models.sessions.dipsgnn:PrivU",
    "edgerand": "tasks.models.sessions.edgerand:EdgeRand",
    "dpsgd": "tasks.models.sessions.dpsgd:DPSGD",
    "ae": "tasks.models.vae.autoencoder:AE",
    "vae": "tasks.models.vae.autoencoder:VAE",
    "mf": "tasks.models.ranking.factorisation:MF",
    "svd": "tasks.models.ranking.factorisation:SVD",
    "rating-means": "tasks.models.social.rating_means:RatingMeans",
    "dp-rating-means": "tasks.models.social.rating_means:PrivateRatingMeans",
    "mf-ratings": "tasks.models.social.privsr:MF",
    "soreg": "tasks.models.social.privsr:SoReg",
    "dpmf-ratings": "tasks.models.social.privsr:DPMF",
    "privsr": "tasks.models.social.privsr:PrivSR",
    "attributes": "tasks.models.user_networks.base:Attributes",
    "degree": "tasks.models.user_networks.base:Degree",
    "random": "tasks.models.user_networks.base:Random",
    "word2vec": "tasks.models.user_networks.skipgram:TrainedWord2Vec",
    "word2vec-closed": "tasks.models.user_networks.skipgram:Word2Vec",
    "deepwalk": "tasks.models.user_networks.skipgram:DeepWalk",
    "netmf": "tasks.models.user_networks.skipgram:NetMF",
    "sne": "tasks.models.user_networks.sne:SNE",
    "udmf": "tasks.models.user_networks.udmf:UDMF",
    "rgcn": "tasks.models.user_networks.rgcn:RGCN",
    "crosue": "tasks.models.user_networks.crosue:CroGCN",
}


def model_class(name: str) -> type[Model]:
    """The class registered under `name` (KeyError if there is none)."""
    module, _, attribute = MODELS[name].partition(":")
    return getattr(import_module(module), attribute)
