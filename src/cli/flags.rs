//! What is said on the command line by more than one command.

use super::Failure;
use crate::{
    config::{Address, Config, HttpUrl, Listen, LogFormat, LogLevel, Secret},
    telemetry::{Log, Verbosity},
};
use clap::{
    Args,
    builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser},
};
use serde::de::DeserializeOwned;

/// How a gateway listens, whom it lets in and what it logs.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct GatewayFlags {
    /// Where clients connect; anything but loopback needs a token or keys
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<Address>,

    /// A token that every client must show
    #[arg(
        long,
        value_name = "TOKEN",
        env = "DRAWBRIDGE_TOKEN",
        hide_env_values = true,
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub token: Option<String>,

    /// The address that clients know, if it is another; its host is let in
    #[arg(long, value_name = "URL")]
    public_url: Option<HttpUrl>,

    /// Where metrics and probes are, or `off`
    #[arg(long, value_name = "HOST:PORT", value_parser = address_or_off)]
    admin_listen: Option<Admin>,

    /// The key that metrics ask for
    #[arg(
        long,
        value_name = "KEY",
        env = "DRAWBRIDGE_ADMIN_KEY",
        hide_env_values = true,
        value_parser = NonEmptyStringValueParser::new()
    )]
    admin_key: Option<String>,

    #[command(flatten)]
    pub log: LogFlags,
}

/// `--admin-listen`: an address, or none.
#[derive(Clone, Debug)]
struct Admin(Option<Address>);

fn address_or_off(text: &str) -> Result<Admin, crate::config::Wrong> {
    match text {
        "off" => Ok(Admin(None)),
        text => text.parse().map(|address| Admin(Some(address))),
    }
}

/// What is logged, on standard error.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LogFlags {
    /// The least important messages to log
    #[arg(long, value_name = "LEVEL", value_parser = word::<LogLevel>(&["error", "warn", "info", "debug", "trace"]))]
    log_level: Option<LogLevel>,

    /// How messages are logged
    #[arg(long, value_name = "FORMAT", value_parser = word::<LogFormat>(&["text", "json"]))]
    log_format: Option<LogFormat>,
}

/// One of the words that a setting of the configuration takes.
pub(super) fn word<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words)
        .try_map(|word| serde_json::from_value::<T>(serde_json::Value::String(word)))
}

impl GatewayFlags {
    /// Puts what was said over the configuration.
    pub fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if let Some(address) = &self.listen {
            config.listen = Listen::one(address.clone());
        }
        if let Some(url) = &self.public_url {
            config.public_url = Some(url.clone());
        }
        if let Some(admin) = &self.admin_listen {
            config.admin.listen = admin.0.clone();
        }
        if let Some(key) = &self.admin_key {
            config.admin.key = Some(Secret::new(key.as_str()));
        }
        let guarded = |a: &&Address| !a.is_loopback() && config.admin.key.is_none();
        match config.admin.listen.as_ref().filter(guarded) {
            Some(address) => Err(Failure::UnguardedAdmin(address.to_string())),
            None => Ok(()),
        }
    }
}

impl LogFlags {
    /// Starts the log of a gateway that `config` describes.
    pub fn start(&self, config: &Config) -> Result<Log, Failure> {
        let log = &config.telemetry.log;
        self.start_with(log.level, log.format)
    }

    /// Starts the log of a command that a person waits for: only from `level` on, unless more was asked for.
    pub fn start_quiet(&self, level: LogLevel) -> Result<Log, Failure> {
        self.start_with(level, LogFormat::Text)
    }

    fn start_with(&self, level: LogLevel, format: LogFormat) -> Result<Log, Failure> {
        let rust_log = std::env::var("RUST_LOG").ok();
        let verbosity = Verbosity::choose(self.log_level, rust_log.as_deref(), level)?;
        Ok(Log::start(verbosity, self.log_format.unwrap_or(format))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: GatewayFlags,
    }

    fn config(args: &[&str]) -> Result<Config, Failure> {
        let line = Line::try_parse_from(["x"].iter().chain(args)).unwrap();
        let mut config = Config::default();
        line.flags.apply(&mut config).map(|()| config)
    }

    #[test]
    fn what_is_said_goes_before_the_file() {
        let config = config(&["--listen", "0.0.0.0:1", "--admin-listen", "off"]).unwrap();
        assert_eq!(config.listen.addresses()[0].to_string(), "0.0.0.0:1");
        assert!(config.admin.listen.is_none());
    }

    #[test]
    fn an_admin_address_of_everyone_needs_a_key() {
        let open = config(&["--admin-listen", "0.0.0.0:1"]);
        assert!(matches!(open, Err(Failure::UnguardedAdmin(_))));
        assert!(config(&["--admin-listen", "0.0.0.0:1", "--admin-key", "k"]).is_ok());
    }

    #[test]
    fn an_empty_token_is_not_taken_for_none() {
        assert!(Line::try_parse_from(["x", "--token", ""]).is_err());
    }
}
