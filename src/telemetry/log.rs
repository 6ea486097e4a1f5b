//! The log: what is written, how it looks, and where it goes.
//!
//! One event is one line, whatever its fields hold: values from outside are escaped,
//! so that none of them can begin a line of its own or move a terminal's cursor.
//! A level set by the operator is ours only; libraries stay at warnings, because what
//! they say below that may hold headers.

use super::sink::{BOUNDS, Sink};
use crate::config::{LogFormat, LogLevel};
use prometheus::IntCounter;
use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal},
    time::Duration,
};
use tracing::field::{Field, Visit};
use tracing_subscriber::{
    Layer,
    field::RecordFields,
    filter::Targets,
    fmt::{FormatFields, format::Writer},
    prelude::*,
};

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Targets of our own events: this crate, and what servers write to standard error.
const OURS: [&str; 2] = ["drawbridge", "server_stderr"];

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("`RUST_LOG` is not a log filter")]
    Filter,
    #[error("the thread that writes the log cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// Which events are written.
#[derive(Clone, Debug)]
pub struct Verbosity(Targets);

impl Verbosity {
    /// What was asked for, first come first served: a flag, `RUST_LOG`, the configuration.
    pub fn choose(
        flag: Option<LogLevel>,
        rust_log: Option<&str>,
        configured: LogLevel,
    ) -> Result<Self, LogError> {
        let rust_log = rust_log.map(str::trim).filter(|text| !text.is_empty());
        let asked = match (flag, rust_log) {
            (None, Some(text)) => match level(text) {
                // A bare level means our level, as the flag does.
                Some(level) => level,
                None => return text.parse().map(Self).map_err(|_| LogError::Filter),
            },
            (flag, _) => flag.unwrap_or(configured),
        };
        let others = match asked {
            LogLevel::Error => LogLevel::Error,
            _ => LogLevel::Warn,
        };
        let filter = |level: LogLevel| match level {
            LogLevel::Error => tracing::Level::ERROR,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
            LogLevel::Trace => tracing::Level::TRACE,
        };
        let ours = OURS.map(|target| (target, filter(asked)));
        Ok(Self(
            Targets::new()
                .with_default(filter(others))
                .with_targets(ours),
        ))
    }
}

fn level(text: &str) -> Option<LogLevel> {
    use LogLevel as L;
    let all = [L::Error, L::Warn, L::Info, L::Debug, L::Trace];
    all.into_iter()
        .find(|level| level.as_str().eq_ignore_ascii_case(text))
}

/// The running log. The last lines are written when it goes.
pub struct Log {
    sink: Sink,
    dropped: IntCounter,
}

impl Log {
    /// Starts the log on standard error. Once in the life of a process; a second call changes nothing.
    pub fn start(verbosity: Verbosity, format: LogFormat) -> Result<Self, LogError> {
        let dropped = IntCounter::new(
            "drawbridge_log_lines_dropped_total",
            "Lines of the log that were dropped because nobody read them in time.",
        )
        .expect("the name is valid");
        let sink = Sink::spawn(io::stderr(), BOUNDS, dropped.clone())?;
        let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let layer = layer(&sink, format, colours).with_filter(verbosity.0);
        let _ = tracing_subscriber::registry().with(layer).try_init();
        Ok(Self { sink, dropped })
    }

    /// Counts the lines that were dropped.
    pub(super) fn dropped(&self) -> &IntCounter {
        &self.dropped
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.sink.flush(LAST_LINES);
    }
}

fn layer<S>(
    sink: &Sink,
    format: LogFormat,
    colours: bool,
) -> Box<dyn Layer<S> + Send + Sync + 'static>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let sink = sink.clone();
    let layer = tracing_subscriber::fmt::layer().with_writer(move || sink.clone());
    match format {
        LogFormat::Json => layer.json().flatten_event(true).with_ansi(false).boxed(),
        LogFormat::Text => layer.with_ansi(colours).fmt_fields(Fields).boxed(),
    }
}

/// Writes the message, then `name=value` for each field; a value that could be read as more than one is quoted.
struct Fields;

impl<'w> FormatFields<'w> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line {
            writer,
            empty: true,
            result: Ok(()),
        };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn put(&mut self, field: &Field, value: &str) -> fmt::Result {
        if !std::mem::replace(&mut self.empty, false) {
            self.writer.write_char(' ')?;
        }
        match field.name() {
            "message" => Escaping(&mut self.writer).write_str(value),
            name if is_word(value) => write!(self.writer, "{name}={value}"),
            name => write!(self.writer, "{name}={value:?}"),
        }
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if self.result.is_ok() {
            self.result = self.put(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn is_word(value: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !disturbs(c) && !matches!(c, '"' | '=' | '\\');
    !value.is_empty() && value.chars().all(plain)
}

/// Writes control characters, and those that turn the direction of a line, as escapes.
struct Escaping<W>(W);

impl<W: fmt::Write> fmt::Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(disturbs) {
            let (before, from) = rest.split_at(at);
            let mut characters = from.chars();
            self.0.write_str(before)?;
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

fn disturbs(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the log says of `events`.
    fn logged(format: LogFormat, level: LogLevel, events: impl FnOnce()) -> String {
        let kept = Kept::default();
        let dropped = IntCounter::new("dropped", "x").unwrap();
        let sink = Sink::spawn(kept.clone(), BOUNDS, dropped).unwrap();
        let verbosity = Verbosity::choose(None, None, level).unwrap();
        let layer = layer(&sink, format, false).with_filter(verbosity.0);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, events);
        sink.flush(Duration::from_secs(10));
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_value_cannot_begin_a_line_or_move_a_cursor() {
        let forged = "x\n2026-01-01 ERROR forged \u{1b}[2J\u{202e}\r\u{9b}";
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = logged(format, LogLevel::Info, || {
                tracing::info!(shown = %forged, told = forged, debug = ?forged, "something happened");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(text.contains("something happened"), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text}");
        }
    }

    #[test]
    fn fields_stand_behind_the_message() {
        let why = "x level=\"error\"";
        let text = logged(LogFormat::Text, LogLevel::Info, || {
            tracing::warn!(server = "files", n = 7, %why, "a call failed");
        });
        assert!(text.contains("WARN"), "{text}");
        assert!(
            text.ends_with("a call failed server=files n=7 why=\"x level=\\\"error\\\"\"\n"),
            "{text}"
        );
    }

    #[test]
    fn json_is_an_object_in_a_line() {
        let text = logged(LogFormat::Json, LogLevel::Info, || {
            tracing::info!(server = "files", "server wrote");
        });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["message"], "server wrote");
        assert_eq!(value["server"], "files");
        assert_eq!(value["level"], "INFO");
    }

    #[test]
    fn a_level_is_ours_and_libraries_stay_quiet() {
        let text = logged(LogFormat::Text, LogLevel::Debug, || {
            tracing::debug!("our own");
            tracing::debug!(target: "server_stderr", "a server's");
            tracing::info!(target: "hyper", "a library's");
            tracing::warn!(target: "hyper", "a library's warning");
        });
        assert!(text.contains("our own") && text.contains("a server's"));
        assert!(!text.contains("a library's\n") && text.contains("a library's warning"));
    }

    #[test]
    fn the_flag_goes_before_the_environment_and_that_before_the_file() {
        let choose = |flag, env| Verbosity::choose(flag, env, LogLevel::Warn);
        let shows =
            |verbosity: &Verbosity, level| verbosity.0.would_enable("drawbridge::router", &level);
        let flag = choose(Some(LogLevel::Error), Some("trace")).unwrap();
        assert!(!shows(&flag, tracing::Level::WARN));
        let env = choose(None, Some("Debug")).unwrap();
        assert!(shows(&env, tracing::Level::DEBUG) && !shows(&env, tracing::Level::TRACE));
        assert!(!env.0.would_enable("hyper", &tracing::Level::INFO));
        let file = choose(None, Some(" ")).unwrap();
        assert!(shows(&file, tracing::Level::WARN) && !shows(&file, tracing::Level::INFO));
        let own = choose(None, Some("hyper=debug")).unwrap();
        assert!(own.0.would_enable("hyper", &tracing::Level::DEBUG));
        assert!(choose(None, Some("drawbridge=loud")).is_err());
    }
}
