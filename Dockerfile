# Everything that requirements.lock pins, and the project at the revision that is checked out.
#   docker build --tag dprec:0.3 .
#   docker run --volume dprec-cache:/dprec/.dvc/cache dprec:0.3 dprec run demo
# torch's plain name takes its CUDA build from PyPI. For its CPU build, name a package index that has one. Its address is
# a secret of the build, for it may hold a token, and stays out of the image and its history:
#   PIP_EXTRA_INDEX_URL=... docker build --secret id=package-index,env=PIP_EXTRA_INDEX_URL --tag dprec:0.3 .
FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc git libc6-dev libgomp1 make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 dprec \
    && install --directory --owner dprec --group dprec /dprec
USER 1000
WORKDIR /dprec
COPY --chown=dprec:dprec Makefile requirements.lock ./
RUN --mount=type=secret,id=package-index,uid=1000 \
    PIP_NO_CACHE_DIR=1 PIP_EXTRA_INDEX_URL="$(cat /run/secrets/package-index 2>/dev/null)" \
    make .venv/.packages PYTHON=python3.11
COPY --chown=dprec:dprec . .
RUN make env PYTHON=python3.11 && mkdir --parents .dvc/cache
ENV PATH=/dprec/.venv/bin:$PATH
VOLUME /dprec/.dvc/cache
CMD ["dprec", "--help"]
