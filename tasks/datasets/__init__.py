"""Names of sources and raw formats in params.yaml -> the modules that obtain and read them."""

SOURCES = {
    "ciao": "tasks.datasets.ciao",
    "custom": "tasks.datasets.custom",
    "demo": "tasks.datasets.demo",
    "epinions": "tasks.datasets.epinions",
    "foursquare_twitter": "tasks.datasets.foursquare_twitter",
    "ione": "tasks.datasets.ione",
    "ml_100k": "tasks.datasets.ml_100k",
    "ml_1m": "tasks.datasets.ml_1m",
    "ml_20m": "tasks.datasets.ml_20m",
    "netflix": "tasks.datasets.netflix",
    "tmall": "tasks.datasets.tmall",
    "twin_trust": "tasks.datasets.twin_trust",
    "yelp": "tasks.datasets.yelp",
    "yelp_hin": "tasks.datasets.yelp_hin",
}
FORMATS = {
    "ciao": "tasks.datasets.ciao",
    "custom": "tasks.datasets.custom",
    "epinions": "tasks.datasets.epinions",
    "foursquare_twitter": "tasks.datasets.foursquare_twitter",
    "ione": "tasks.datasets.ione",
    "ml_100k": "tasks.datasets.ml_100k",
    "ml_1m": "tasks.datasets.ml_1m",
    "ml_20m": "tasks.datasets.ml_20m",
    "netflix": "tasks.datasets.netflix",
    "tmall": "tasks.datasets.tmall",
    "yelp": "tasks.datasets.yelp",
    "yelp_hin": "tasks.datasets.yelp_hin",
}
