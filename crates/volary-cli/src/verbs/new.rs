//! `volary new`: a crate to begin a driver with.

use crate::exit::{Done, Exit, Fail};
use crate::out;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Begins a driver, a layer or a source of your own.
///
/// The crate that it writes compiles, has tests, and is a volary command with it: `cargo run -- ls disk.img`. DRIVERS.md in
/// volary's repository says how to go on.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary new driver zip --crate zip-volume --template archive")]
pub(crate) struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Driver(Driver),
}

/// Writes a crate with a driver that reads, a scheme or a layer, to be made into your own.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary new driver zip --crate zip-volume
  volary new driver minix --template block
  volary new driver redis --template kv
  volary new driver ftp --template remote
  volary new driver upper --template layer")]
struct Driver {
    /// What it is called: the format, scheme or layer
    #[arg(value_name = "NAME")]
    name: String,
    /// What the crate is called, if not NAME: a crate zip cannot use the crate zip
    #[arg(long = "crate", value_name = "CRATE")]
    crate_name: Option<String>,
    /// What it is like: a format of archives, a format of blocks, a key-value store, another server, a layer
    #[arg(long, value_name = "TEMPLATE", default_value = "archive")]
    template: Template,
    /// Where volary's sources are; without, its released crates are used
    #[arg(long, value_name = "DIR")]
    volary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Template {
    Archive,
    Block,
    Kv,
    Remote,
    Layer,
}

impl Template {
    /// Returns the library's source.
    fn source(self) -> &'static str {
        match self {
            Self::Archive => include_str!("../../templates/archive.rs"),
            Self::Block => include_str!("../../templates/block.rs"),
            Self::Kv => include_str!("../../templates/kv.rs"),
            Self::Remote => include_str!("../../templates/remote.rs"),
            Self::Layer => include_str!("../../templates/layer.rs"),
        }
    }

    /// Returns how a registry gets it.
    fn registered(self) -> &'static str {
        match self {
            Self::Archive | Self::Block => "with_format(&LIBRARY::DRIVER_NAME)",
            Self::Kv | Self::Remote => "with(LIBRARY::scheme())",
            Self::Layer => "with(LIBRARY::layer())",
        }
    }

    /// Returns the crates that it needs, each with its features.
    fn needs(self) -> &'static [(&'static str, &'static str)] {
        const VOLARY: (&str, &str) = ("volary", ", default-features = false");
        const DRIVER: (&str, &str) = ("volary-driver", "");
        match self {
            Self::Archive | Self::Block => &[DRIVER],
            Self::Kv | Self::Remote => &[VOLARY, DRIVER],
            Self::Layer => &[(
                "volary",
                ", default-features = false, features = [\"layers\"]",
            )],
        }
    }
}

const MANIFEST: &str = include_str!("../../templates/Cargo.toml.in");

const MAIN: &str = "\
//! The volary command with driver-name beside what is built in.

use volary_cli::volary::Registry;

fn main() -> std::process::ExitCode {
    volary_cli::run(Registry::default().REGISTERED)
}
";

impl New {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let What::Driver(driver) = &self.what;
        driver.run()
    }
}

impl Driver {
    fn run(&self) -> Done<Exit> {
        for name in [&self.name, self.crate_name()] {
            check(name)?;
        }
        let dir = Path::new(self.crate_name());
        let fail = |e: std::io::Error| Fail::host(dir.display(), e);
        std::fs::create_dir(dir).map_err(fail)?;
        std::fs::create_dir(dir.join("src")).map_err(fail)?;
        let main = MAIN.replace("REGISTERED", self.template.registered());
        for (file, text) in [
            ("Cargo.toml", self.manifest()?.as_str()),
            ("src/lib.rs", self.template.source()),
            ("src/main.rs", &main),
        ] {
            std::fs::write(dir.join(file), self.named(text)).map_err(fail)?;
        }
        let mut out = out::out();
        writeln!(
            out,
            "{}/ is a crate with a driver; in it: cargo test --no-default-features, cargo run -- --help",
            self.crate_name()
        )?;
        out::end(out)?;
        Ok(Exit::Done)
    }

    fn crate_name(&self) -> &String {
        self.crate_name.as_ref().unwrap_or(&self.name)
    }

    /// Returns a text with the driver's name in it.
    fn named(&self, text: &str) -> String {
        let upper = self.name.to_ascii_uppercase().replace('-', "_");
        let capital = |part: &str| format!("{}{}", part[..1].to_ascii_uppercase(), &part[1..]);
        let camel: String = self.name.split('-').map(capital).collect();
        let text = text.replace("LIBRARY", &self.crate_name().replace('-', "_"));
        let text = text.replace("crate-name", self.crate_name());
        let text = text
            .replace("DRIVER_NAME", &upper)
            .replace("DriverName", &camel);
        text.replace("driver-name", &self.name)
    }

    fn manifest(&self) -> Done<String> {
        let mut needs = Vec::new();
        for (name, features) in self.template.needs() {
            needs.push(format!("{name} = {{ {}{features} }}", self.from(name)?));
        }
        let text = MANIFEST.replace("{{needs}}", &needs.join("\n"));
        let text = text.replace("{{cli}}", &self.from("volary-cli")?);
        let text = text.replace("{{kit}}", &self.from("volary-test")?);
        Ok(text.replace("{{block}}", &self.from("volary-block")?))
    }

    /// Returns where a crate comes from, as a manifest has it.
    fn from(&self, name: &str) -> Done<String> {
        let version = env!("CARGO_PKG_VERSION");
        let Some(sources) = &self.volary else {
            return Ok(format!("version = \"{version}\""));
        };
        let path = sources.join("crates").join(name);
        let path = path
            .canonicalize()
            .map_err(|e| Fail::host(path.display(), e))?;
        match path.to_str() {
            Some(path) => Ok(format!("path = {path:?}")),
            None => Err(Fail::usage("--volary: a manifest can hold no such path")),
        }
    }
}

/// # Errors
/// Of the command line: a name that cannot be one of all that is called so.
fn check(name: &str) -> Done {
    let parts = name.split('-');
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let is_ours = name == "core" || name == "std" || name.starts_with("volary");
    if name.len() < 2 || is_ours || !parts.into_iter().all(is_part) {
        let name = volary::escape(name.as_bytes());
        let words =
            format!("'{name}' is no name for a driver; take small letters and digits, as my-fs");
        return Err(Fail::usage(words));
    }
    Ok(())
}
