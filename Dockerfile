# The image has only what runs: Python and a shell from Debian, and the broker with compiled walkers. Nothing in it builds.
#   docker build -t horolog .                    (--network=host where package registries are reached that way)
#   docker run -p 9092:9092 horolog
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
        binutils gcc libc6-dev python3.11 python3.11-dev python3.11-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Libraries are checked by their hashes (scripts/lock). Compiled walkers do not need Cython; sources of compiled libraries are removed,
# and what zstandard has for PyPy (its _cffi); the _cffi_backend beside it is loaded by cryptography.
COPY config/container/build.lock config/container/requirements.lock /locks/
RUN python3.11 -m venv /opt/build && python3.11 -m venv --without-pip /opt/horolog \
    && /opt/build/bin/pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r /locks/build.lock \
    && /opt/build/bin/pip --python /opt/horolog/bin/python install --no-cache-dir --no-compile \
        --no-deps --only-binary :all: --require-hashes -r /locks/requirements.lock \
    && cd /opt/horolog/lib/python3.11/site-packages \
    && find . -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.c' -o -name '*.pyi' -o -path './zstandard/_cffi*.so' | xargs rm -f \
    && find . -name '*.so' -exec strip --strip-unneeded {} +
# Compiling takes longest and its sources change least, so it has a layer of its own; the wheel below takes the result from build/.
COPY pyproject.toml .
COPY protocol protocol
RUN touch README.md && /opt/build/bin/python -c 'from setuptools import setup; setup()' -q build_ext \
    && find build -name '*.so' -exec strip --strip-unneeded {} +
COPY README.md .
COPY config config
COPY storage storage
COPY broker broker
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && /opt/build/bin/pip --python /opt/horolog/bin/python install --no-cache-dir --no-compile --no-deps /tmp/wheel/*.whl \
    && /opt/horolog/bin/horolog --version | grep '(compiled)$' \
    && rm -f /opt/horolog/bin/*ctivate* \
    && python3.11 -m compileall -q --invalidation-mode unchecked-hash /opt/horolog/lib

# These packages and no others are in the image: no package manager, no compiler.
FROM debian:bookworm-slim AS root
COPY --from=build /opt/horolog /root-fs/opt/horolog
COPY config/container /src
RUN apt-get update && mkdir /tmp/packages && cd /tmp/packages && chmod 777 . && apt-get download \
        base-files netbase bash dash coreutils hostname sed \
        libc6 libacl1 libattr1 libcrypt1 libgcc-s1 libgmp10 libpcre2-8-0 libselinux1 libstdc++6 libtinfo6 \
        libbz2-1.0 libexpat1 libffi8 liblzma5 libssl3 libuuid1 zlib1g openssl ca-certificates \
        python3.11-minimal libpython3.11-minimal libpython3.11-stdlib \
    && mkdir -p /root-fs/var/lib/dpkg/status.d \
    && for package in *.deb; do \
        dpkg-deb -x "$package" /root-fs && dpkg-deb -f "$package" >"/root-fs/var/lib/dpkg/status.d/${package%%_*}" || exit 1; \
    done \
    && cat /root-fs/usr/share/ca-certificates/mozilla/*.crt >/root-fs/etc/ssl/certs/ca-certificates.crt \
    && cd /root-fs/usr && rm -rf sbin/update-ca-certificates share/ca-certificates \
        share/doc share/man share/info share/locale share/lintian share/bash-completion \
        lib/*/gconv lib/python3.11/lib2to3 lib/python3.11/pydoc_data lib/python3.11/test \
    && chroot /root-fs python3.11 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3.11 \
    && cd /root-fs \
    && echo 'root:x:0:0:root:/root:/bin/sh\nhorolog:x:10092:10092::/data:/usr/sbin/nologin' >etc/passwd \
    && echo 'root:x:0:\nhorolog:x:10092:' >etc/group \
    && install -d -o 10092 -g 10092 -m 0700 data \
    && install -D -m 0644 /src/server.yaml etc/horolog/server.yaml \
    && install -D -m 0755 /src/entrypoint usr/bin/entrypoint \
    && install -D -m 0755 /src/run etc/kafka/docker/run \
    && mkdir -p etc/confluent/docker && touch etc/confluent/docker/bash-config \
    && ln -s /etc/kafka/docker/run etc/confluent/docker/run && ln -s run etc/confluent/docker/launch \
    && ln -s /bin/true etc/confluent/docker/configure

FROM scratch
COPY --from=root /root-fs /
ENV PATH=/opt/horolog/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
USER 10092:10092
VOLUME /data
EXPOSE 9092 9404
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["horolog", "health"]
ENTRYPOINT ["entrypoint"]
CMD ["serve"]
