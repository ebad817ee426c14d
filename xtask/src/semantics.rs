//! SEMANTICS.md as a release and the book have it: one page, followed by those of formats, servers and
//! layers.

use crate::run::root;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Returns the page. Each page that it lists follows, a level lower. Links between them lead to headings
/// of the one page; links of theirs to other files start at the root.
pub(crate) fn page() -> Result<String> {
    let main = read("SEMANTICS.md")?;
    let parts: Vec<&str> = main.lines().filter_map(listed).collect();
    ensure!(!parts.is_empty(), "SEMANTICS.md lists no further pages");
    let mut whole = main.clone();
    for part in parts {
        let text = read(part)?;
        let title = text.lines().next().unwrap_or_default();
        whole = whole.replace(&format!("]({part})"), &format!("](#{})", anchor(title)));
        let dir = Path::new(part).parent().unwrap_or(Path::new(""));
        whole.push('\n');
        for line in text.lines() {
            whole += if line.starts_with('#') { "#" } else { "" };
            whole += &from_root(line, dir);
            whole.push('\n');
        }
    }
    Ok(whole)
}

/// Returns the page that a line of the list leads to.
fn listed(line: &str) -> Option<&str> {
    let (_, link) = line.strip_prefix("- [")?.split_once("](")?;
    let link = link.strip_suffix(')')?;
    link.ends_with("/SEMANTICS.md").then_some(link)
}

/// Returns a heading's anchor, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches(['#', ' ']).to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Rewrites the links of a line, which is on a page in `dir`.
fn from_root(line: &str, dir: &Path) -> String {
    const MAIN: &str = "../../SEMANTICS.md";
    let mut parts = line.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_elsewhere = part.starts_with('#') || part.contains("://");
        out += "](";
        out += &match part.strip_prefix(MAIN) {
            Some(rest) if rest.starts_with('#') => rest.to_owned(),
            Some(rest) => format!("#semantics{rest}"),
            None if is_elsewhere => part.to_owned(),
            None => format!("{}/{part}", dir.display()),
        };
    }
    out
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_the_one_of_a_release() {
        let whole = page().unwrap();
        let mut pages = 0;
        for folder in ["crates", "drivers", "servers"] {
            for krate in std::fs::read_dir(root().join(folder)).unwrap() {
                let page = krate.unwrap().path().join("SEMANTICS.md");
                if !page.exists() {
                    continue;
                }
                pages += 1;
                let text = std::fs::read_to_string(&page).unwrap();
                let title = text.lines().next().unwrap();
                assert!(whole.contains(&format!("\n#{title}\n")), "{title}");
            }
        }
        assert!(pages > 10, "{pages}");
    }

    #[test]
    fn every_link_of_the_one_page_leads_somewhere() {
        let whole = page().unwrap();
        let headings = whole.lines().filter(|line| line.starts_with('#'));
        let anchors: Vec<String> = headings.map(anchor).collect();
        let links = whole.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split(')').next()) {
            let is_there = match link.strip_prefix('#') {
                Some(to) => anchors.iter().any(|anchor| anchor == to),
                None => root().join(link).exists(),
            };
            assert!(is_there, "{link}");
        }
    }
}
