# Build with the host's network where package registries are reached that way: docker build --network=host -t horolog .
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv python3-dev gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
RUN python3 -m venv /opt/horolog && /opt/horolog/bin/pip install --no-cache-dir 'setuptools>=77' wheel
COPY pyproject.toml README.md ./
COPY protocol protocol
COPY storage storage
COPY config config
COPY broker broker
COPY scripts/compile scripts/compile
# The walker is compiled beside its source, then goes into the wheel with it.
RUN /opt/horolog/bin/pip install --no-cache-dir 'cython>=3.1' \
    && /opt/horolog/bin/python scripts/compile \
    && /opt/horolog/bin/pip install --no-cache-dir --no-build-isolation . \
    && /opt/horolog/bin/python -m compileall -q /opt/horolog/lib

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10092 horolog && useradd --uid 10092 --gid 10092 --no-create-home --shell /usr/sbin/nologin horolog \
    && install -d -o horolog -g horolog -m 0700 /data
COPY --from=build /opt/horolog /opt/horolog
USER 10092:10092
VOLUME /data
EXPOSE 9092 9404
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/horolog/bin/horolog"]
CMD ["serve", "--data-dir", "/data", "--listen", "0.0.0.0:9092", "--http", "0.0.0.0:9404"]
