//! The examples of every help page, run as they stand there.

use crate::sandbox::Sandbox;

/// Commands that need more than a directory: a mount, a port, minutes, a pager.
const NOT_RUN: [&str; 3] = ["mount", "serve", "bench"];

/// Returns the commands, by their manual pages in `pages`.
pub(crate) fn verbs(sandbox: &Sandbox) -> Vec<String> {
    sandbox.run("man pages").ok();
    let pages = std::fs::read_dir(sandbox.path("pages")).unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let verb = |name: String| {
        Some(
            name.strip_prefix("volary-")?
                .strip_suffix(".1")?
                .to_string(),
        )
    };
    let mut verbs: Vec<String> = names.filter_map(verb).collect();
    // Those of commands within commands are theirs.
    verbs.retain(|verb| !verb.contains('-'));
    verbs.sort_unstable();
    verbs
}

fn examples(help: &str) -> Vec<&str> {
    let from = help.find("Example").unwrap_or(help.len());
    let lines = help[from..].lines().skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).collect()
}

#[test]
fn every_example_of_every_help_page_does_what_it_says() {
    let all = verbs(&Sandbox::empty());
    assert!(all.len() > 30, "{all:?}");
    for verb in all {
        if NOT_RUN.contains(&verb.as_str()) {
            continue;
        }
        let sandbox = Sandbox::new();
        let help = sandbox.run_words(&[&verb, "--help"]).ok();
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{verb}: {help}");
        for example in examples {
            // The pager is the reader's.
            let example = example.split(" && man ").next().unwrap_or_default();
            let run = sandbox.shell(example);
            // The report of `sim` is no complaint.
            let is_report = verb == "sim" && run.err.starts_with("disk ");
            let err = if is_report { "" } else { &run.err };
            assert_eq!((run.code, err), (0, ""), "{example}\n{}", run.out);
        }
        if sandbox.path("disk.img").exists() {
            sandbox.is_clean("disk.img");
            sandbox.is_clean("unix.img");
        }
    }
}

#[test]
fn the_examples_of_the_first_page_work() {
    let sandbox = Sandbox::new();
    let help = sandbox.run("--help").ok();
    for example in examples(&help) {
        let run = sandbox.shell(example);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{example}");
    }
}

#[test]
fn completions_are_made_for_each_shell() {
    let sandbox = Sandbox::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.run_words(&["completions", shell]).ok();
        assert!(script.contains("sha256sum"), "{shell}");
    }
}
