# The jobs of `horolog spark`, with Spark and a Java runtime from Python's package index: a large image, apart from the broker's.
#   docker build -t horolog-spark -f config/container/spark.Dockerfile .   (--network=host where registries are reached that way)
#   docker run --rm horolog-spark audit-time --bootstrap HOST:9092 --topic TOPIC
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev python3.11-dev python3.11-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3.11 -m venv /opt/horolog && /opt/horolog/bin/pip install --no-cache-dir 'setuptools>=77' wheel 'cython>=3.1'
WORKDIR /src
# Libraries first, then what is compiled: both take long, and change less often than the rest.
COPY pyproject.toml .
RUN /opt/horolog/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *p['optional-dependencies']['spark'], sep='\n')" >/tmp/needs \
    && /opt/horolog/bin/pip install --no-cache-dir -r /tmp/needs
COPY scripts/compile scripts/compile
COPY protocol protocol
RUN /opt/horolog/bin/python scripts/compile && ls protocol/records/walk.*.so
COPY README.md .
COPY config config
COPY storage storage
COPY broker broker
COPY pipeline pipeline
RUN /opt/horolog/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

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
