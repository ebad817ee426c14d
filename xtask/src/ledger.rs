//! `cargo xtask ledger`: LEDGER.md, written from `ledger.toml`: a table of long cells is read by nobody, and
//! lines of a page have their width.

use crate::run::root;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt::Write;

/// Characters of a line.
const WIDTH: usize = 98;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    /// What the page is about, in Markdown.
    intro: String,
    /// How fast it is explored, in Markdown.
    speed: String,
    target: Vec<Target>,
    explored: Vec<Explored>,
    fault: Vec<Fault>,
}

/// What is aimed at, and by what number the entries name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    id: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explored {
    what: String,
    /// How much of it CI does.
    ci: Option<String>,
    measured: Option<String>,
    /// How it is done again.
    again: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    place: String,
    what: String,
    mended: Option<String>,
}

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    let page = page()?;
    Ok(std::fs::write(root().join("LEDGER.md"), page)?)
}

fn page() -> Result<String> {
    let text = std::fs::read_to_string(root().join("ledger.toml"))?;
    let ledger: Ledger = toml::from_str(&text).context("ledger.toml")?;
    let mut out = format!(
        "# Ledger\n\n{}\n\nThis page is written from `ledger.toml` by `cargo xtask ledger`.\n\n## Targets\n\n",
        ledger.intro.trim()
    );
    for target in &ledger.target {
        item(&mut out, "", &format!("**{}**: {}", target.id, target.text))?;
    }
    out += "\n## What was explored\n";
    for explored in &ledger.explored {
        out.push('\n');
        item(&mut out, "", &explored.what)?;
        let parts = [
            ("In CI", &explored.ci),
            ("Measured", &explored.measured),
            ("Again", &explored.again),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                item(&mut out, "  ", &format!("*{name}*: {part}"))?;
            }
        }
    }
    write!(out, "\n## How fast\n\n{}\n", ledger.speed.trim())?;
    out += "\n## Faults that were found\n\n";
    for fault in &ledger.fault {
        let mended = fault.mended.as_ref();
        let mended = mended.map_or(String::new(), |mended| format!(" *Mended*: {mended}."));
        let text = format!("**{}**: {}.{mended}", fault.place, fault.what);
        item(&mut out, "", &text)?;
    }
    Ok(out)
}

/// Writes an item of a list, in lines that are not too long.
fn item(out: &mut String, indent: &str, text: &str) -> Result<()> {
    let mut line = format!("{indent}-");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line = format!("{indent} ");
        }
        line.push(' ');
        line += word;
    }
    Ok(writeln!(out, "{line}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_data_make() {
        let there = std::fs::read_to_string(root().join("LEDGER.md")).unwrap();
        assert!(
            there == page().unwrap(),
            "cargo xtask ledger writes it anew"
        );
    }

    #[test]
    fn every_target_that_an_entry_names_is_explained() {
        let page = page().unwrap();
        let number = |word: &str| -> Option<u32> { word.strip_prefix('R')?.parse().ok() };
        let words = page.split(|c: char| !c.is_alphanumeric());
        let named: Vec<u32> = words.filter_map(number).collect();
        assert!(named.len() > 20, "{named:?}");
        for number in named {
            assert!(page.contains(&format!("- **R{number}**: ")), "R{number}");
        }
    }
}
