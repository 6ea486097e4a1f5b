//! Which configuration is meant: the file that was named, one of this folder, or the built-in examples.

use super::{Failure, print};
use crate::config::{Config, Loaded};
use std::path::{Path, PathBuf};

/// Where a configuration came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    File(PathBuf),
    Examples,
    /// One server on the command line.
    CommandLine,
}

/// A configuration and where it came from.
pub(super) struct Source {
    pub config: Config,
    pub origin: Origin,
}

/// The names that are looked for in the current folder.
const NAMES: [&str; 4] = [
    "drawbridge.yaml",
    "drawbridge.yml",
    "drawbridge.toml",
    "drawbridge.json",
];

/// The file that was named, else this folder's, else the examples.
pub(super) fn find(named: Option<&Path>) -> Result<Source, Failure> {
    match file(named)? {
        Some(path) => {
            let loaded = load(&path)?;
            report(&loaded);
            Ok(Source {
                config: loaded.config,
                origin: Origin::File(path),
            })
        }
        None => {
            let program = std::env::current_exe().map_err(|source| Failure::Io {
                what: "cannot find this program's own file",
                source,
            })?;
            Ok(Source {
                config: Config::examples(&program),
                origin: Origin::Examples,
            })
        }
    }
}

/// The file that was named, or this folder's.
pub(super) fn file(named: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    match named {
        Some(path) => Ok(Some(path.to_owned())),
        None => in_folder(Path::new("")),
    }
}

fn in_folder(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let paths = NAMES.iter().map(|name| folder.join(name));
    let mut found: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(Failure::SeveralConfigs(found)),
    }
}

/// Reads a file with this process's environment.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    let loaded = Config::load(path, &|name| std::env::var(name).ok());
    loaded.map_err(|faults| Failure::Config {
        file: path.display().to_string(),
        faults,
    })
}

/// Tells what is doubtful, and what became of names.
fn report(loaded: &Loaded) {
    for warning in &loaded.warnings {
        print::note(&format!("warning: {warning}"));
    }
    for renamed in &loaded.renamed {
        let (name, id) = (&renamed.name, &renamed.id);
        print::note(&format!(
            "the server `{}` is called `{id}` here",
            print::harmless(name)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_the_folder_is_found_and_two_are_a_question() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(in_folder(folder.path()).unwrap(), None);
        let yml = folder.path().join("drawbridge.yml");
        std::fs::write(&yml, "").unwrap();
        assert_eq!(in_folder(folder.path()).unwrap(), Some(yml));
        std::fs::write(folder.path().join("drawbridge.json"), "{}").unwrap();
        let both = in_folder(folder.path());
        assert!(matches!(both, Err(Failure::SeveralConfigs(files)) if files.len() == 2));
    }
}
