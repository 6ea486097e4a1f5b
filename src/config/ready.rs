//! Settings for those who have no file: the built-in examples, one command, one address.

use std::path::Path as File;

use indexmap::IndexMap;

use super::{
    endpoint::{Endpoint, Naming},
    server::{Process, Remote, Server, Target},
    settings::Config,
    value::{EndpointPath, HttpUrl, ServerId},
};

/// The built-in example servers.
const EXAMPLES: [&str; 3] = ["travel", "weather", "calendar"];

impl Config {
    /// The three built-in example servers behind one endpoint. They run from this program, whose path it is given.
    pub fn examples(program: &File) -> Config {
        let servers = EXAMPLES.map(|name| {
            let args = vec!["example".to_owned(), name.to_owned()];
            let command = program.to_string_lossy().into_owned();
            (
                id(name),
                Server::at(Target::Process(Process {
                    command,
                    args,
                    ..Process::default()
                })),
            )
        });
        Config {
            servers: IndexMap::from(servers),
            ..Config::default()
        }
    }

    /// One program at `/mcp`, its names untouched.
    pub fn for_command(command: &str, args: impl IntoIterator<Item = String>) -> Config {
        let name = File::new(command)
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let process = Process {
            command: command.to_owned(),
            args: args.into_iter().collect(),
            ..Process::default()
        };
        alone(id(name), Target::Process(process))
    }

    /// One server elsewhere at `/mcp`, its names untouched.
    pub fn for_url(url: HttpUrl) -> Config {
        alone(
            id("server"),
            Target::Remote(Remote {
                url,
                headers: IndexMap::new(),
            }),
        )
    }
}

fn alone(id: ServerId, target: Target) -> Config {
    let endpoint = Endpoint {
        names: Naming::Bare,
        ..Endpoint::default()
    };
    Config {
        servers: IndexMap::from([(id, Server::at(target))]),
        endpoints: IndexMap::from([(EndpointPath::standard(), endpoint)]),
        ..Config::default()
    }
}

fn id(name: &str) -> ServerId {
    ServerId::from_name(name)
        .or_else(|| ServerId::from_name("server"))
        .expect("a word of letters is a name for a server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_becomes_one_server_with_bare_names() {
        let config = Config::for_command("/usr/bin/npx", ["-y".to_owned()]);
        assert_eq!(
            config
                .servers
                .keys()
                .map(ServerId::as_str)
                .collect::<Vec<_>>(),
            ["npx"]
        );
        let (path, endpoint) = config.endpoints.first().unwrap();
        assert_eq!((path.as_str(), endpoint.names), ("/mcp", Naming::Bare));
        assert!(Config::for_command("..", []).servers.contains_key("server"));
    }

    #[test]
    fn the_examples_run_from_this_program() {
        let config = Config::examples(File::new("/bin/drawbridge"));
        let Target::Process(process) = &config.servers["weather"].target else {
            panic!()
        };
        assert_eq!(
            (&*process.command, &process.args[..]),
            ("/bin/drawbridge", &["example".into(), "weather".into()][..])
        );
        assert_eq!(config.servers.len(), 3);
    }
}
