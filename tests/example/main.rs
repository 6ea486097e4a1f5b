//! The built-in example servers, each in every revision, on stdio and over HTTP.

mod eras;
mod http;
mod http_modern;
mod matrix;
mod peer;
mod process;
