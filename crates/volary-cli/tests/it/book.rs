//! The examples of the book, run as they stand there: each chapter is a session of one shell.

use crate::sandbox::Sandbox;
use std::path::{Path, PathBuf};

/// A command, and what it prints.
#[derive(Debug)]
struct Example {
    command: String,
    /// `...` stands for any text.
    output: String,
    code: i32,
}

fn chapters() -> Vec<PathBuf> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src");
    let files = std::fs::read_dir(book).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the lines of a chapter's blocks that are marked `console`.
fn lines(chapter: &str) -> Vec<&str> {
    let blocks = chapter.split("\n```console\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
    blocks.flat_map(str::lines).collect()
}

fn examples(chapter: &str) -> Vec<Example> {
    let mut all: Vec<Example> = Vec::new();
    for line in lines(chapter) {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Example {
                command: command.to_owned(),
                output: String::new(),
                code: 0,
            });
            continue;
        }
        let last = all.last_mut().expect("a command before its output");
        let code = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        match code.and_then(|code| code.parse().ok()) {
            Some(code) => last.code = code,
            None => last.output += &format!("{line}\n"),
        }
    }
    all
}

/// Returns whether `got` is `want`, in which `...` stands for any text.
fn fits(got: &str, want: &str) -> bool {
    let mut parts = want.trim().split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = got.trim().strip_prefix(first) else {
        return false;
    };
    let mut ends = rest.is_empty();
    for part in parts {
        let Some(at) = rest.rfind(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        ends = part.is_empty() || rest.is_empty();
    }
    ends
}

/// Runs the commands in one shell, and returns what each printed and its exit code.
fn session(sandbox: &Sandbox, examples: &[Example]) -> Vec<(String, i32)> {
    const MARK: &str = "@@ended ";
    let mut script = "exec 2>&1; mkdir session; cd session\n".to_owned();
    for example in examples {
        script += &format!("{}\necho \"\n{MARK}$?\"\n", example.command);
    }
    let out = sandbox.shell(&script).out;
    let mut done = Vec::new();
    let mut text = String::new();
    for line in out.lines() {
        match line.strip_prefix(MARK) {
            Some(code) => done.push((std::mem::take(&mut text), code.parse().unwrap())),
            None => text += &format!("{line}\n"),
        }
    }
    done
}

#[test]
fn every_example_of_the_book_does_what_it_says() {
    let mut count = 0;
    for chapter in chapters() {
        let text = std::fs::read_to_string(&chapter).unwrap();
        let examples = examples(&text);
        let sandbox = Sandbox::empty();
        let done = session(&sandbox, &examples);
        assert_eq!(done.len(), examples.len(), "{}", chapter.display());
        for (example, (out, code)) in examples.iter().zip(&done) {
            let place = format!("{}: {}", chapter.display(), example.command);
            assert_eq!(*code, example.code, "{place}\n{out}");
            assert!(fits(out, &example.output), "{place}\n{out}");
        }
        count += examples.len();
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_chapter_is_in_the_summary() {
    let all = chapters();
    let summary = all.iter().find(|file| file.ends_with("SUMMARY.md"));
    let summary = std::fs::read_to_string(summary.unwrap()).unwrap();
    for chapter in all.iter().filter(|file| !file.ends_with("SUMMARY.md")) {
        let name = chapter.file_name().unwrap().to_str().unwrap();
        assert!(summary.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn dots_stand_for_any_text() {
    assert!(fits("a b c", "a ... c"));
    assert!(fits("anything", "..."));
    assert!(fits("a\n", "a"));
    assert!(!fits("a b c", "a ... d"));
    assert!(!fits("a b", "a"));
}
