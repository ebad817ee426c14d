//! The plug-ins that the tests load: examples of this crate, and what `cc` makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use volary_core::{Attach, Fs, Result, Time};
use volary_plugin::{Helper, Plugins};

/// The program that runs plug-ins in processes of their own.
pub(crate) fn helper() -> Helper {
    Helper {
        program: env!("CARGO_BIN_EXE_volary-plugin-host").into(),
        words: Vec::new(),
        user: None,
    }
}

/// The plug-in over a volume in memory, by `export!`. Cargo builds it beside this program.
pub(crate) fn memory() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let library = program.with_file_name("libvolary_example_memory.so");
    assert!(library.exists(), "there is no {}", library.display());
    library
}

/// Where the plug-ins are that `cc` made.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::tempdir().expect("a directory"))
        .path()
}

/// Compiles `source` into a plug-in `name`, and gives its path.
pub(crate) fn compiled(name: &str, source: &Path, words: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let to = folder().join(format!("lib{name}.so"));
    let done = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
            "-O1",
            "-g",
            "-shared",
            "-fPIC",
        ])
        .arg("-I")
        .arg(root.join("include"))
        .arg("-o")
        .arg(&to)
        .arg(source)
        .args(words)
        .output()
        .expect("cc");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    to
}

/// Returns the words that name a library.
pub(crate) fn words(library: &Path, config: &str) -> String {
    format!("{}?{config}", library.display())
}

/// The time of the tests.
pub(crate) fn now() -> Time {
    Time::from_secs(1_700_000_000)
}

/// Opens a plug-in in a process of its own.
pub(crate) fn apart(library: &Path, config: &str) -> Result<Fs> {
    apart_with(library, config, &Attach::default())
}

pub(crate) fn apart_with(library: &Path, config: &str, attach: &Attach) -> Result<Fs> {
    let plugins = Plugins::new().with_helper(helper());
    plugins.open(words(library, config).as_bytes(), attach, now())
}

/// Opens a plug-in in this process.
pub(crate) fn within(library: &Path, config: &str) -> Result<Fs> {
    let plugins = Plugins::new().in_process(true);
    plugins.open(words(library, config).as_bytes(), &Attach::default(), now())
}

/// An example in C.
pub(crate) fn example(name: &str, words: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    compiled(name, &root.join(format!("{name}.c")), words)
}

/// The file system over SQLite; none where SQLite is not installed.
pub(crate) fn sqlite() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let is_there = Path::new("/usr/include/sqlite3.h").exists();
        is_there.then(|| example("sqlite", &["-lsqlite3"]))
    });
    if built.is_none() {
        println!("SKIPPED: no sqlite3.h; apt install libsqlite3-dev");
    }
    built.as_deref()
}
