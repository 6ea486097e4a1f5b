//! The `drawbridge` command.

use drawbridge::{config::Config, gateway::{Gateway, Options}};
use std::path::Path;

#[global_allocator]
static ALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    drawbridge::backend::stdio::child_main_if_asked();
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    rt.block_on(run());
}

async fn run() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "example" {
        #[derive(clap::Parser)]
        struct C { #[command(subcommand)] c: X }
        #[derive(clap::Subcommand)]
        enum X { Example(drawbridge::example::ExampleArgs) }
        let C { c: X::Example(a) } = clap::Parser::parse();
        if let Err(e) = drawbridge::example::run(a).await { eprintln!("{e}"); }
        return;
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(std::env::var("RUST_LOG").unwrap_or("info".into())).init();
    let env = |n: &str| std::env::var(n).ok();
    let config = if args[1] == "demo" { Config::examples(&std::env::current_exe().unwrap()) } else {
        match Config::load(Path::new(&args[1]), &env) { Ok(l) => l.config, Err(f) => { eprintln!("{f}"); std::process::exit(1) } }
    };
    let running = Gateway::build(&config, &Options::default()).unwrap().start().await.unwrap();
    println!("listening on {:?}", running.public);
    let stop = running.stop.clone();
    tokio::spawn(async move {
        let mut t = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        tokio::select! { _ = t.recv() => {}, _ = tokio::signal::ctrl_c() => {} }
        stop.cancel();
    });
    running.ended().await;
}
