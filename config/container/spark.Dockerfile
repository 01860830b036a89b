# The jobs of `horolog spark`, with Spark and a Java runtime from Python's package index: a large image, apart from the broker's.
#   docker build -t horolog-spark -f config/container/spark.Dockerfile .   (--network=host where registries are reached that way)
#   docker run --rm horolog-spark audit-time --bootstrap HOST:9092 --topic TOPIC
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev python3.11-dev python3.11-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Libraries first, by their hashes (scripts/lock), then what is compiled: both take long, and change less often than the rest.
# PySpark is no wheel: it is built with the locked setuptools.
COPY config/container/build.lock config/container/spark.lock /locks/
RUN python3.11 -m venv /opt/horolog \
    && /opt/horolog/bin/pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r /locks/build.lock \
    && /opt/horolog/bin/pip install --no-cache-dir --no-deps --only-binary :all: --no-binary pyspark --no-build-isolation \
        --require-hashes -r /locks/spark.lock
COPY pyproject.toml .
COPY protocol protocol
RUN touch README.md && /opt/horolog/bin/python -c 'from setuptools import setup; setup()' -q build_ext
COPY README.md .
COPY config config
COPY storage storage
COPY broker broker
COPY pipeline pipeline
RUN /opt/horolog/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && /opt/horolog/bin/pip install --no-cache-dir --no-deps /tmp/wheel/*.whl \
    && /opt/horolog/bin/horolog --version | grep '(compiled)$'

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends procps python3.11 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/horolog /opt/horolog
# Hadoop, which is in Spark, wants a user to have a name.
RUN echo 'horolog:x:10092:10092::/tmp:/usr/sbin/nologin' >>/etc/passwd
ENV PATH=/opt/horolog/bin:/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 10092:10092
WORKDIR /tmp
ENTRYPOINT ["horolog", "spark"]
CMD ["--help"]
