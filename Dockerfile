# Images of the gateway.
#
#   docker build -t drawbridge .                          the gateway alone: remote servers, or a base for your own
#   docker build -t drawbridge:tools --target tools .     with Node, npx, uv and uvx, for servers that package runners start
#
# Without a command of your own the image serves /etc/drawbridge/drawbridge.yaml (or .toml, .json) if there is one, else the three
# example servers, on all interfaces: 8080 for clients, 9090 for probes and metrics. It does not start without DRAWBRIDGE_TOKEN (or
# `auth` in the file) and DRAWBRIDGE_ADMIN_KEY (or `admin.key`). A command of your own says where to listen:
#
#   docker run -p 8080:8080 -e DRAWBRIDGE_TOKEN drawbridge:tools run --listen 0.0.0.0:8080 -- uvx mcp-server-time
#
# No init process is needed: the gateway takes SIGTERM as process 1, and each server runs under a keeper that reaps what it leaves. Only
# where a keeper itself is killed does its dead server keep an entry in the process table until the gateway ends; `--init` reaps that too.

ARG RUST_IMAGE=rust:1.95-slim-trixie
ARG BASE_IMAGE=debian:trixie-slim
ARG NODE_IMAGE=node:24-trixie-slim
ARG UV_IMAGE=ghcr.io/astral-sh/uv:0.9

FROM ${RUST_IMAGE} AS build
WORKDIR /src
# The dependencies first, with nothing of ours: they change seldom and are then taken from the cache.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src benches \
 && echo 'fn main() {}' | tee src/main.rs > benches/pure.rs \
 && touch src/lib.rs \
 && cargo build --release --locked
COPY src ./src
RUN touch src/main.rs src/lib.rs \
 && cargo build --release --locked --bin drawbridge

FROM ${UV_IMAGE} AS uv

# With package runners. Its user has a home, where they keep what they fetch: mount a volume there to keep it longer.
FROM ${NODE_IMAGE} AS tools
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git python3 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 drawbridge \
 && useradd --uid 10001 --gid 10001 --create-home drawbridge \
 && mkdir -p /etc/drawbridge
COPY --from=uv /uv /uvx /usr/local/bin/
COPY --from=build /src/target/release/drawbridge /usr/local/bin/drawbridge
COPY deploy/healthcheck /usr/local/bin/healthcheck
USER 10001:10001
ENV HOME=/home/drawbridge
WORKDIR /etc/drawbridge
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["healthcheck"]
ENTRYPOINT ["drawbridge"]
CMD ["--listen", "0.0.0.0:8080", "--admin-listen", "0.0.0.0:9090"]

# The gateway alone. Last, so that it is what `docker build` makes.
FROM ${BASE_IMAGE} AS slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 drawbridge \
 && useradd --uid 10001 --gid 10001 --create-home drawbridge \
 && mkdir -p /etc/drawbridge
COPY --from=build /src/target/release/drawbridge /usr/local/bin/drawbridge
COPY deploy/healthcheck /usr/local/bin/healthcheck
USER 10001:10001
ENV HOME=/home/drawbridge
WORKDIR /etc/drawbridge
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["healthcheck"]
ENTRYPOINT ["drawbridge"]
CMD ["--listen", "0.0.0.0:8080", "--admin-listen", "0.0.0.0:9090"]
