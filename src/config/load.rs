//! From a file to settings, in one pass over each of the steps.

use std::{
    path::{Path as File, PathBuf},
    time::SystemTime,
};

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
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let format = format.unwrap_or_else(|| Format::detect(name, text));
        let folder = File::new(name)
            .parent()
            .map(File::to_owned)
            .unwrap_or_default();
        let mut report = Report::new(name);
        let loaded = build(text, format, folder, env, &mut report);
        Faults::of(report.faults)?;
        let mut loaded = loaded.expect("what cannot be read has been reported as a fault");
        loaded.warnings = report.warnings;
        loaded.warnings.sort_by_key(|warning| warning.at);
        Ok(loaded)
    }
}

/// Settings from whatever of a text is right. Nothing if it is no text of its format.
fn build(
    text: &str,
    format: Format,
    folder: PathBuf,
    env: Lookup<'_>,
    report: &mut Report,
) -> Option<Loaded> {
    let mut top = tree::parse(text, format, report)?;
    if matches!(top.data, Data::Null) {
        top.data = Data::Map(Vec::new());
    }
    let lenient = desktop::is_desktop(&top, format);
    let renamed = desktop::level(&mut top, lenient, report);
    let mut disabled = desktop::take_disabled(&mut top);
    expand::expand(&mut top, env, report);
    // Now for those that a variable switches off.
    disabled.extend(desktop::take_disabled(&mut top));
    desktop::add_env_files(&mut top, &folder);
    let schema = schema::bare();
    let value = Reader::new(&schema, env, &folder, lenient, report).file(&top);
    let mut config: Config = match serde_json::from_value(value) {
        Ok(config) => config,
        // Its text might repeat a value.
        Err(_) => {
            let start = Position { line: 1, column: 1 };
            report.fault(
                start,
                &Path::default(),
                "is not understood though it fits the schema; please report this",
            );
            return None;
        }
    };
    let ground = Ground {
        folder: &folder,
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
