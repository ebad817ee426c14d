//! `cargo xtask release`: what a release consists of, in `dist/`.
//!
//! | module | what |
//! |---|---|
//! | `binary` | the programs, without paths of the machine that built them |
//! | `archive` | a `.tar.gz` for each, the same bytes each time |
//! | `deb` | a Debian package for each |
//! | `wheel` | what pip installs |
//! | `trial` | what was packed, run as its user has it |
//! | `recipes` | the recipes of others, with the sums of what was built |
//!
//! Everything has the time of the last commit, so that two builds of it are alike.

mod archive;
mod binary;
mod deb;
mod recipes;
mod trial;
mod wheel;

use crate::run::{Step, root};
use crate::{semantics, tools};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// A system that a release is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    /// As rustc calls it.
    triple: &'static str,
    /// As Debian calls the processor.
    debian: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
    },
];

/// What was asked for.
struct Asked {
    targets: Vec<Target>,
    out: PathBuf,
    /// Without optimisation between crates: to try the recipe, not to give away.
    is_quick: bool,
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut asked = Self {
            targets: Vec::new(),
            out: root().join("dist"),
            is_quick: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} what?"));
            match *word {
                "--quick" => asked.is_quick = true,
                "--out" => asked.out = std::path::absolute(value()?)?,
                "--target" => asked.targets.push(target(value()?)?),
                _ => bail!("release: unknown word '{word}'"),
            }
        }
        if asked.targets.is_empty() {
            asked.targets = TARGETS.to_vec();
        }
        Ok(asked)
    }
}

fn target(triple: &str) -> Result<Target> {
    let known = TARGETS.iter().find(|target| target.triple == triple);
    let all = || TARGETS.iter().map(|t| t.triple).collect::<Vec<_>>();
    known
        .copied()
        .with_context(|| format!("unknown target '{triple}'; there are: {}", all().join(", ")))
}

/// What all parts of a release have in common.
struct Release {
    version: String,
    /// Seconds since 1970: of the last commit.
    time: u64,
    out: PathBuf,
    is_quick: bool,
}

impl Release {
    /// Returns the name of what is built for a target, without an ending.
    fn stem(&self, target: Target) -> String {
        format!("volary-{}-{}", self.version, target.triple)
    }
}

/// Builds a release: binaries, archives, packages, recipes, a bill of materials, sums.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let asked = Asked::parse(words)?;
    let triples: Vec<String> = asked
        .targets
        .iter()
        .flat_map(|target| [target.triple.to_owned(), wheel::other_triple(*target)])
        .collect();
    tools::install_release(&triples)?;
    let release = Release {
        version: version()?,
        time: time()?,
        out: asked.out,
        is_quick: asked.is_quick,
    };
    let stage = root().join("target/release-stage");
    replace_dir(&stage)?;
    replace_dir(&release.out)?;
    let papers = papers(&stage)?;
    std::fs::write(stage.join(SEMANTICS), semantics::page()?)?;
    bill_of_materials(&release, &stage)?;
    for target in asked.targets {
        let built = binary::build(target, &release)?;
        archive::write(target, &release, &built, &papers, &stage)?;
        trial::run(target, &release, &stage)?;
        deb::write(target, &release, &built, &papers, &stage)?;
        wheel::write(target, &release)?;
    }
    recipes::write(&release)?;
    sums(&release.out)?;
    println!("\n{} is complete", release.out.display());
    Ok(())
}

/// Man pages and completions.
struct Papers {
    man: PathBuf,
    completions: PathBuf,
}

/// The page that is put together for a release.
const SEMANTICS: &str = "SEMANTICS.md";

/// The shells, and what a file of completions is called for each.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "volary.bash"),
    ("zsh", "_volary"),
    ("fish", "volary.fish"),
];

/// Has the command write its man pages and completions: the one of this machine, since that of
/// another cannot run here.
fn papers(stage: &Path) -> Result<Papers> {
    let command = "cargo run --quiet --locked --profile gate -p volary-cli --";
    let papers = Papers {
        man: stage.join("man"),
        completions: stage.join("completions"),
    };
    Step::new(&format!("{command} man {}", papers.man.display())).run()?;
    std::fs::create_dir_all(&papers.completions)?;
    for (shell, file) in SHELLS {
        let text = Step::new(&format!("{command} completions {shell}")).output()?;
        std::fs::write(papers.completions.join(file), text)?;
    }
    Ok(papers)
}

/// Writes which crates the command is built from, in CycloneDX. The program that lists them writes beside
/// every member of a workspace, with the paths of this machine: it is given a clone.
fn bill_of_materials(release: &Release, stage: &Path) -> Result<()> {
    let tree = stage.join("tree");
    let tree_name = tree.display();
    Step::new(&format!("git clone --quiet . {tree_name}")).run()?;
    let cyclonedx = tools::cargo_root().join("bin/cargo-cyclonedx");
    let line = format!(
        "{} cyclonedx --quiet --format json --override-filename bom --manifest-path crates/volary-cli/Cargo.toml",
        cyclonedx.display()
    );
    Step::new(&line)
        .env("SOURCE_DATE_EPOCH", &release.time.to_string())
        .within(&tree)
        .run()?;
    let text = std::fs::read_to_string(tree.join("crates/volary-cli/bom.json"))?;
    let text = text.replace(&tree_name.to_string(), "/volary");
    let name = format!("volary-{}.cdx.json", release.version);
    Ok(std::fs::write(release.out.join(name), text)?)
}

/// Writes `SHA256SUMS`, as sha256sum checks it.
fn sums(out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(out)? {
        let file = file?;
        if file.file_type()?.is_file() {
            names.push(file.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let line = format!("sha256sum {}", names.join(" "));
    let text = Step::new(&line).within(out).output()?;
    Ok(std::fs::write(out.join("SHA256SUMS"), text)?)
}

/// Gives every crate that others may use to crates.io, those that others need first.
pub(crate) fn publish(is_tried: bool) -> Result<()> {
    let tried = if is_tried { " --dry-run" } else { "" };
    Step::new(&format!("cargo publish --workspace --locked{tried}")).run()
}

/// Returns the workspace's version.
fn version() -> Result<String> {
    let text = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let line = text.lines().find(|line| line.starts_with("version = "));
    let version = line.and_then(|line| line.split('"').nth(1));
    Ok(version.context("Cargo.toml has no version")?.to_owned())
}

/// Returns the time of the last commit, unless `SOURCE_DATE_EPOCH` says another.
fn time() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => Step::new("git log -1 --format=%ct").output()?,
    };
    text.trim()
        .parse()
        .with_context(|| format!("'{}' is no time in seconds", text.trim()))
}

/// Makes an empty directory of one that may be there.
fn replace_dir(dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    Ok(std::fs::create_dir_all(dir)?)
}

/// Copies a file to a path whose directories are made, with these permission bits.
fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let dir = to.parent().context("a path without a directory")?;
    std::fs::create_dir_all(dir)?;
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(std::fs::set_permissions(
        to,
        std::fs::Permissions::from_mode(mode),
    )?)
}

/// Returns the files in a directory, by name.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(dir)?;
    let mut paths = Vec::new();
    for file in all {
        paths.push(file?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_known_or_refused() {
        let all = Asked::parse(&[]).unwrap();
        assert_eq!((all.targets.len(), all.is_quick), (TARGETS.len(), false));
        let one = Asked::parse(&["--target", TARGETS[1].triple, "--quick"]).unwrap();
        assert_eq!(
            (one.targets.as_slice(), one.is_quick),
            (&TARGETS[1..2], true)
        );
        for wrong in [&["--target"][..], &["--target", "sparc"], &["--fast"]] {
            assert!(Asked::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(version().unwrap().split('.').count() == 3);
    }
}
