"""Names of protocols in params.yaml -> the modules that prepare a data set as a paper does."""

PROTOCOLS = {"gerai": "tasks.protocols.gerai"}
