# Short names for what is done here often. `just check` is what CI runs (.ci/run, which needs no just).

# list the recipes
default:
    @just --list

# everything that CI runs
check:
    .ci/run

# the Rust tests; `just test NAME` for some
test *ARGS:
    cargo nextest run --cargo-profile ci {{ARGS}}
    cargo test --quiet --profile ci --doc

# real clients, real servers, the conformance suite; `just clients matrix -s everything` for some
clients *ARGS:
    tests/clients/setup
    tests/clients/run {{ARGS}}

# the micro-benchmarks
bench *ARGS:
    cargo bench {{ARGS}}

# format everything
fmt:
    cargo fmt
    cargo fmt --manifest-path tests/clients/rmcp-parts/Cargo.toml

# start the gateway; `just run serve --config FILE` for yours
run *ARGS:
    cargo run --release -- {{ARGS}}

# licences, bans and sources of the dependencies (cargo install --locked cargo-deny)
deny:
    cargo fetch --locked
    cargo deny --offline check bans licenses sources
