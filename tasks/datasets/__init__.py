"""Names of sources and raw formats in params.yaml -> the modules that obtain and read them."""

SOURCES = {
    "demo": "tasks.datasets.demo",
    "ml_100k": "tasks.datasets.ml_100k",
    "tmall": "tasks.datasets.tmall",
    "yelp": "tasks.datasets.yelp",
    "yelp_hin": "tasks.datasets.yelp_hin",
}
FORMATS = {
    "ml_100k": "tasks.datasets.ml_100k",
    "tmall": "tasks.datasets.tmall",
    "yelp": "tasks.datasets.yelp",
    "yelp_hin": "tasks.datasets.yelp_hin",
}
