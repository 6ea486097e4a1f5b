//! What the project says of itself is true: the README, the pages in `docs/`, and what is in `deploy/`.

mod blocks;
mod configuration;
mod deploy;
mod pages;
