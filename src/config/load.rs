//! From a file to settings, in one pass over each of the steps.

use std::{path::Path as File, time::SystemTime};

use serde_json::Value;

use super::{
    check::{self, Ground},
    desktop::{self, Renamed},
    expand::{self, Lookup},
    fault::{Fault, Faults, Path, Position, Report},
    read::Reader,
    schema,
    settings::Config,
    tree::{self, Data, Format},
};

/// Settings, and what an operator should know about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// What is doubtful, in the order of the file.
    pub warnings: Vec<Fault>,
    /// Servers whose names became ids.
    pub renamed: Vec<Renamed>,
    /// Servers that are switched off, and so are not in the settings.
    pub disabled: Vec<String>,
}

impl Config {
    /// Reads a file. Its name tells the format, or else its content.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, or that it cannot be read at all.
    pub fn load(path: impl AsRef<File>, env: Lookup<'_>) -> Result<Loaded, Faults> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let alone =
            |text: String| Faults::one(Report::new(&name).fault_at(None, &Path::default(), text));
        let bytes =
            std::fs::read(path).map_err(|error| alone(format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..valid]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            alone(format!("is not UTF-8 in line {line}; save it as UTF-8"))
        })?;
        Config::parse(&name, &text, None, env)
    }

    /// Reads a text. The name stands in the faults; relative paths in the text start at its folder.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse(
        name: &str,
        text: &str,
        format: Option<Format>,
        env: Lookup<'_>,
    ) -> Result<Loaded, Faults> {
        parse(name, text, format, env, &schema::bare())
    }
}

/// [`Config::parse`] with the schema, which takes long to make.
pub(super) fn parse(
    name: &str,
    text: &str,
    format: Option<Format>,
    env: Lookup<'_>,
    schema: &Value,
) -> Result<Loaded, Faults> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let format = format.unwrap_or_else(|| Format::detect(name, text));
    let folder = File::new(name)
        .parent()
        .map(File::to_owned)
        .unwrap_or_default();
    let mut report = Report::new(name);
    let source = Source {
        text,
        format,
        folder: &folder,
        env,
        schema,
    };
    let loaded = build(&source, &mut report);
    let warnings = report.finish()?;
    let loaded = loaded.expect("what cannot be read has been reported as a fault");
    Ok(Loaded { warnings, ..loaded })
}

/// A text and what it is read with.
struct Source<'a> {
    text: &'a str,
    format: Format,
    folder: &'a File,
    env: Lookup<'a>,
    schema: &'a Value,
}

/// Settings from whatever of a text is right. Nothing if it is no text of its format.
fn build(source: &Source<'_>, report: &mut Report) -> Option<Loaded> {
    let &Source {
        format,
        folder,
        env,
        ..
    } = source;
    let mut top = tree::parse(source.text, format, report)?;
    if matches!(top.data, Data::Null) {
        top.data = Data::Map(Vec::new());
    }
    let lenient = desktop::is_desktop(&top, format);
    let renamed = desktop::level(&mut top, lenient, report);
    let mut disabled = desktop::take_disabled(&mut top);
    expand::expand(&mut top, env, report);
    // Now for those that a variable switches off.
    disabled.extend(desktop::take_disabled(&mut top));
    desktop::add_env_files(&mut top, folder);
    let value = Reader::new(source.schema, env, folder, lenient, report).file(&top);
    let Ok(mut config) = serde_json::from_value::<Config>(value) else {
        // The error's own text might repeat a value.
        let start = Position { line: 1, column: 1 };
        let text = "is not understood though it fits the schema; please report this";
        report.fault(start, &Path::default(), text);
        return None;
    };
    let ground = Ground {
        folder,
        lenient,
        now: SystemTime::now(),
    };
    check::check(&mut config, &top, &disabled, &ground, report);
    Some(Loaded {
        config,
        warnings: Vec::new(),
        renamed,
        disabled,
    })
}
