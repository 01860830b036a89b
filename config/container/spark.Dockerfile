# The jobs of `horolog spark`, with Spark and a Java runtime from Python's package index: a large image, apart from the broker's.
#   docker build -t horolog-spark -f config/container/spark.Dockerfile .   (--network=host where registries are reached that way)
#   docker run --rm horolog-spark audit-time --bootstrap HOST:9092 --topic TOPIC
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev python3.11-dev python3.11-venv procps \
    && rm -rf /var/lib/apt/lists/*
RUN python3.11 -m venv /opt/horolog && /opt/horolog/bin/pip install --no-cache-dir 'setuptools>=77' wheel 'cython>=3.1'
WORKDIR /src
COPY pyproject.toml README.md ./
# Libraries first: they change less often than the code.
RUN /opt/horolog/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *p['optional-dependencies']['spark'], sep='\n')" >/tmp/needs \
    && /opt/horolog/bin/pip install --no-cache-dir -r /tmp/needs
COPY scripts/compile scripts/compile
COPY protocol protocol
COPY config config
COPY storage storage
COPY broker broker
COPY pipeline pipeline
RUN /opt/horolog/bin/python scripts/compile && /opt/horolog/bin/pip install --no-cache-dir --no-deps --no-build-isolation .
# Hadoop, which is in Spark, wants a user to have a name.
RUN echo 'horolog:x:10092:10092::/tmp:/usr/sbin/nologin' >>/etc/passwd
ENV PATH=/opt/horolog/bin:/usr/bin:/bin HOME=/tmp
USER 10092:10092
WORKDIR /tmp
ENTRYPOINT ["horolog", "spark"]
CMD ["--help"]
