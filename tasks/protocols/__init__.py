"""Names of protocols in params.yaml -> the modules that prepare a data set as a paper does."""

PROTOCOLS = {
    "dipsgnn": "tasks.protocols.dipsgnn",
    "dpcrosue": "tasks.protocols.dpcrosue",
    "dpvae": "tasks.protocols.dpvae",
    "gerai": "tasks.protocols.gerai",
    "privsr": "tasks.protocols.privsr",
}
