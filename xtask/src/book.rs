//! `cargo xtask book`: the book, in `target/book`. Its chapters are `book/src`, the project's pages, and
//! the help of each command.

use crate::run::{Step, root};
use crate::{semantics, tools};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Pages of the project that are chapters, and what these are called.
const PAGES: &[(&str, &str)] = &[
    ("ARCHITECTURE.md", "architecture.md"),
    ("DRIVERS.md", "drivers.md"),
    ("GLOSSARY.md", "glossary.md"),
    ("SECURITY.md", "security.md"),
    ("SEMANTICS.md", "semantics.md"),
    ("bench/README.md", "figures.md"),
];

/// The chapter of the commands.
const COMMANDS: &str = "commands.md";

/// Where links lead that are to no chapter.
const REPOSITORY: &str = "https://github.com/volary/volary/blob/main";

/// Builds the book as HTML.
pub(crate) fn build() -> Result<()> {
    let sources = root().join("target/book-sources");
    if sources.exists() {
        std::fs::remove_dir_all(&sources)?;
    }
    assemble(&sources)?;
    let commands = commands()?;
    std::fs::write(sources.join("src").join(COMMANDS), commands)?;
    let mdbook = tools::install_mdbook()?;
    let out = root().join("target/book");
    let line = format!(
        "{} build --dest-dir {} {}",
        mdbook.display(),
        out.display(),
        sources.display()
    );
    Step::new(&line).run()?;
    println!("\n{} is the book", out.join("index.html").display());
    Ok(())
}

/// Puts the chapters together, but for that of the commands.
fn assemble(sources: &Path) -> Result<()> {
    let chapters = sources.join("src");
    std::fs::create_dir_all(&chapters)?;
    let book = root().join("book");
    std::fs::copy(book.join("book.toml"), sources.join("book.toml"))?;
    for chapter in std::fs::read_dir(book.join("src"))? {
        let chapter = chapter?;
        std::fs::copy(chapter.path(), chapters.join(chapter.file_name()))?;
    }
    for (page, chapter) in PAGES {
        let text = match *page {
            "SEMANTICS.md" => semantics::page()?,
            page => std::fs::read_to_string(root().join(page)).context(page)?,
        };
        std::fs::write(chapters.join(chapter), with_links(&text, page))?;
    }
    Ok(())
}

/// Leads the links of a page to chapters, and all others but those within it to the repository.
fn with_links(text: &str, page: &str) -> String {
    let dir = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut parts = text.split("](");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, format!("#{anchor}")),
            None => (link, String::new()),
        };
        let is_elsewhere = path.is_empty() || path.contains("://");
        let target = normal(&dir.join(path));
        let chapter = PAGES.iter().find(|(page, _)| Path::new(page) == target);
        let link = match chapter {
            _ if is_elsewhere => link.to_owned(),
            Some((_, chapter)) => format!("{chapter}{anchor}"),
            None => format!("{REPOSITORY}/{}{anchor}", target.display()),
        };
        whole += &format!("]({link}){rest}");
    }
    whole
}

/// Takes `..` out of a path.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part.as_os_str().to_str() {
            Some("..") => {
                out.pop();
            }
            _ => out.push(part),
        }
    }
    out
}

/// Returns the chapter of the commands: the help of each.
fn commands() -> Result<String> {
    let volary = "cargo run --quiet --profile gate -p volary-cli --";
    let mut text = "# The commands\n\nWhat each command says with `--help`.\n".to_owned();
    let help = Step::new(&format!("{volary} --help")).output()?;
    for command in listed(&help) {
        let help = Step::new(&format!("{volary} {command} --help")).output()?;
        write!(text, "\n## {command}\n\n```text\n{help}```\n")?;
    }
    Ok(text)
}

/// Returns the commands that the help of the program lists.
fn listed(help: &str) -> impl Iterator<Item = &str> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chapter_is_made_and_links_lead_to_chapters() {
        let dir = tempfile::tempdir().unwrap();
        assemble(dir.path()).unwrap();
        let chapters = dir.path().join("src");
        let summary = std::fs::read_to_string(chapters.join("SUMMARY.md")).unwrap();
        for part in summary.split("](").skip(1) {
            let chapter = part.split(')').next().unwrap();
            let is_made = chapter == COMMANDS || chapters.join(chapter).exists();
            assert!(is_made, "{chapter}");
        }
        for file in std::fs::read_dir(&chapters).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            for part in text.split("](").skip(1) {
                let link = part.split([')', '#']).next().unwrap();
                let is_there = link.is_empty()
                    || link == COMMANDS
                    || link.contains("://")
                    || chapters.join(link).exists();
                assert!(is_there, "{}: {link}", file.display());
            }
        }
    }

    #[test]
    fn links_are_told_from_each_other() {
        let text = "[a](SECURITY.md#x) [b](#y) [c](https://z) [d](crates/volary-core/src/fs.rs)";
        let want = format!(
            "[a](security.md#x) [b](#y) [c](https://z) [d]({REPOSITORY}/crates/volary-core/src/fs.rs)"
        );
        assert_eq!(with_links(text, "README.md"), want);
        let text = "[a](../DRIVERS.md) [b](data.json)";
        let want = format!("[a](drivers.md) [b]({REPOSITORY}/bench/data.json)");
        assert_eq!(with_links(text, "bench/README.md"), want);
    }

    #[test]
    fn commands_are_those_of_the_first_page() {
        let help = "x\n\nCommands:\n  mkfs    Makes\n  info  Shows\n\nOptions:\n";
        assert_eq!(listed(help).collect::<Vec<_>>(), ["mkfs", "info"]);
    }
}
