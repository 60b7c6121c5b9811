"""Names of sources and raw formats in params.yaml -> what obtains and reads them: a module, or an object in one.

`convert` of each raises a DataError, on one line that names file and line, where a file is missing, empty, malformed or
in another encoding, a value is not allowed, a key is repeated, or an id is not in the file that lists all ids.
"""

FORMATS = {
    "ciao": "tasks.datasets.trust:CIAO",
    "custom": "tasks.datasets.custom",
    "epinions": "tasks.datasets.trust:EPINIONS",
    "foursquare_twitter": "tasks.datasets.foursquare_twitter",
    "foursquare_twitter_text": "tasks.datasets.foursquare_twitter_text",
    "ione": "tasks.datasets.ione",
    "ml_100k": "tasks.datasets.movielens:ML_100K",
    "ml_1m": "tasks.datasets.movielens:ML_1M",
    "ml_20m": "tasks.datasets.movielens:ML_20M",
    "netflix": "tasks.datasets.netflix",
    "tmall": "tasks.datasets.tmall",
    "weibo": "tasks.datasets.weibo",
    "yelp": "tasks.datasets.yelp",
    "yelp_hin": "tasks.datasets.yelp_hin",
}
"""What reads files; the same modules say where these come from."""
SOURCES = {
    **FORMATS,
    "demo": "tasks.datasets.synthetic.demo",
    "ml_25m": "tasks.datasets.movielens:ML_25M",
    "ml_32m": "tasks.datasets.movielens:ML_32M",
    "ml_latest_small": "tasks.datasets.movielens:LATEST_SMALL",
    "twin_foursquare_twitter": "tasks.datasets.synthetic.foursquare_twitter:REPLICA",
    "twin_movielens": "tasks.datasets.synthetic.movielens:REPLICA",
    "twin_netflix": "tasks.datasets.synthetic.netflix:REPLICA",
    "twin_tmall": "tasks.datasets.synthetic.tmall:REPLICA",
    "twin_trust": "tasks.datasets.synthetic.trust:REPLICA",
    "twin_weibo": "tasks.datasets.synthetic.weibo:REPLICA",
    "twin_yelp": "tasks.datasets.synthetic.yelp:REPLICA",
}
"""What obtains files: also generators, which write those of a format."""
