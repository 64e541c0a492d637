# Not run yet: no image was built of it. hadolint reads it, and its steps were run by hand.
# For a server with NVIDIA GPUs (docs/how-to/install.md).  Neither image has CUDA: PyTorch's wheels bring
# the CUDA libraries that they were built with, the driver is the server's own.  A CUDA image would
# bring those libraries a second time, and another Python than the one that is tested.
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# What OpenCV's wheels expect of the system, and git, which names the revision of a clone.  Debian
# keeps only the newest build of a package, so that a pinned version would soon not be there.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
ARG EXTRAS=run,local,data
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]"

# HOME too: --user may name somebody who has none in the image.
ENV HOME=/data \
    LMUData=/data/LMUData \
    HF_HOME=/data/huggingface \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN useradd --uid 1000 --home-dir /data --no-create-home findit \
    && install --directory --owner=findit --group=findit /data /data/LMUData /data/huggingface /work
USER 1000
# /data: tables, images and checkpoints; /work: results, and the folder in which commands run.
VOLUME ["/data", "/work"]
WORKDIR /work
ENTRYPOINT ["findit"]
