//! SEMANTICS.md as a release and the book have it: one page, with those of formats, servers and layers
//! behind it.

use crate::run::root;
use anyhow::{Context, Result, ensure};

/// Returns the page. Each page that it lists follows, a level lower.
pub(crate) fn page() -> Result<String> {
    let main = read("SEMANTICS.md")?;
    let parts: Vec<&str> = main
        .lines()
        .filter_map(|line| {
            line.strip_prefix("- [")?
                .split_once("](")?
                .1
                .strip_suffix(')')
        })
        .filter(|link| link.ends_with("/SEMANTICS.md"))
        .collect();
    ensure!(!parts.is_empty(), "SEMANTICS.md lists no further pages");
    let mut whole = main.clone();
    for part in parts {
        let text = read(part)?;
        let lower = text.lines().map(|line| match line.starts_with('#') {
            true => format!("#{line}\n"),
            false => format!("{line}\n"),
        });
        whole.push('\n');
        whole.extend(lower);
    }
    Ok(whole)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_page_is_in_the_one_of_a_release() {
        let whole = page().unwrap();
        let mut pages = 0;
        for folder in ["crates", "drivers", "servers"] {
            for krate in std::fs::read_dir(root().join(folder)).unwrap() {
                let page = krate.unwrap().path().join("SEMANTICS.md");
                if !Path::new(&page).exists() {
                    continue;
                }
                pages += 1;
                let text = std::fs::read_to_string(&page).unwrap();
                let title = text.lines().next().unwrap();
                assert!(
                    whole.contains(&format!("\n#{title}\n")),
                    "{title} is not listed"
                );
            }
        }
        assert!(pages > 10, "{pages}");
    }
}
