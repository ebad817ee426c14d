//! smbtorture, Samba's tests of servers, against what `volary serve mem:256M --smb` serves
//! with nothing else set but that SMB 2.0.2 is spoken. `tests/smbtorture` has a page for each suite: the tests that pass,
//! and those that do not with the reason. One of the first that fails is a fault, and so is
//! one of the second that passes, until the page says so. Minutes: with VOLARY_SUITES=1 only;
//! VOLARY_SUITES=update writes what is found into the pages, with smbtorture's own words for
//! reasons that nobody has given yet. VOLARY_SUITE=smb2.session runs one suite.
//!
//! `posix` has `pjdfstest` on a mount of the command's.

mod posix;

use crate::sandbox::Sandbox;
use crate::serving::Serving;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use volary_testkit::oracle::{self, Tool};

const SMBTORTURE: Tool = Tool {
    program: "smbtorture",
    package: "samba-testsuite",
};
const TIMEOUT: Tool = Tool {
    program: "timeout",
    package: "coreutils",
};
/// What a suite may take, in seconds: some wait for leases that nobody gives up.
const SUITE_TIME: u32 = 1200;
/// What is told of a test that was running when a suite's time was over.
const NO_END: &str = "does not end";
/// Suites at a time, each with a server of its own: they wait more than they compute.
const BESIDE: usize = 6;
/// How many times a test of a page's `races` may run until it passes.
const ATTEMPTS: usize = 3;
/// Fewer tests that pass, all suites together, are a fault whatever the pages say. A test that a race
/// kept from passing this time counts among them.
const PASSED_MIN: usize = 385;

/// What is known of a suite.
#[derive(Debug, Default, Deserialize)]
struct Page {
    #[serde(default)]
    passes: BTreeSet<String>,
    #[serde(default)]
    fails: BTreeMap<String, String>,
    /// Tests that pass whose own requests race each other, and how: what one expects may come
    /// otherwise from a server that is right. Such a test has some attempts.
    #[serde(default)]
    races: BTreeMap<String, String>,
    /// What the suite may take, in seconds, if a race in it can be one that does not end.
    seconds: Option<u32>,
}

impl Page {
    fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(SUITE_TIME)
    }

    /// Gives those that race another attempt, each alone, and one to those that did not run because
    /// of a race without end.
    fn try_again(&self, suite: &str, outcome: &mut Outcome) {
        let is_cut = |test: &String| outcome.failed.get(test).is_some_and(|why| why == NO_END);
        let has_run =
            |test: &&String| outcome.passed.contains(*test) || outcome.failed.contains_key(*test);
        let mut left = Vec::new();
        if self.races.keys().any(is_cut) {
            left.extend(self.passes.iter().filter(|test| !has_run(test)));
        }
        for test in self.races.keys() {
            for _ in 1..ATTEMPTS {
                self.run_alone(suite, test, outcome);
            }
        }
        for test in left {
            self.run_alone(suite, test, outcome);
        }
    }

    /// Runs a test that has not passed.
    fn run_alone(&self, suite: &str, test: &String, outcome: &mut Outcome) {
        if outcome.passed.contains(test) {
            return;
        }
        let again = torture(&format!("{suite}.{test}"), self.seconds());
        if again.passed.contains(test) {
            outcome.failed.remove(test);
            outcome.passed.insert(test.clone());
        } else if let Some(why) = again.failed.get(test) {
            outcome.failed.insert(test.clone(), why.clone());
        }
    }
}

/// What a run told: reasons of those that failed.
#[derive(Debug, Default)]
struct Outcome {
    passed: BTreeSet<String>,
    failed: BTreeMap<String, String>,
}

/// What all suites told.
#[derive(Default)]
struct Told {
    passed: usize,
    /// Tests of the pages' `races` that did not pass.
    raced: usize,
    news: String,
}

#[test]
fn smbtorture_passes_what_it_passed() {
    let Some(mode) = std::env::var_os("VOLARY_SUITES") else {
        println!("skipped: smbtorture, without VOLARY_SUITES=1");
        return;
    };
    if !oracle::have(&[SMBTORTURE, TIMEOUT]) {
        return;
    }
    let only = std::env::var("VOLARY_SUITE").ok();
    let chosen = |suite: &str| only.as_ref().is_none_or(|only| only == suite);
    let all = pages().into_iter().filter(|(suite, _)| chosen(suite));
    let (waiting, told) = (Mutex::new(all), Mutex::new(Told::default()));
    let next = || waiting.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some((suite, path)) = next() {
                    judge(&suite, &path, mode == "update", &told);
                }
            });
        }
    });
    let Told {
        passed,
        raced,
        news,
    } = told.into_inner().unwrap();
    println!("smbtorture: {passed} tests passed, and {raced} lost a race");
    assert!(news.is_empty(), "smbtorture has news:\n{news}");
    assert!(
        only.is_some() || passed + raced >= PASSED_MIN,
        "only {passed} passed"
    );
}

/// Runs a suite and compares it with its page, or writes the page.
fn judge(suite: &str, path: &Path, update: bool, told: &Mutex<Told>) {
    let text = std::fs::read_to_string(path).expect("a page");
    let page: Page = toml::from_str(&text).expect("a page in TOML");
    let mut outcome = torture(suite, page.seconds());
    page.try_again(suite, &mut outcome);
    let mut told = told.lock().unwrap();
    told.passed += outcome.passed.len();
    let lost = |test: &&String| !outcome.passed.contains(*test);
    told.raced += page.races.keys().filter(lost).count();
    if update {
        std::fs::write(path, updated(&page, &outcome)).expect("a page");
    } else {
        compare(suite, &page, &outcome, &mut told.news);
    }
}

/// Suites and their pages.
fn pages() -> BTreeMap<String, PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smbtorture");
    let entries = std::fs::read_dir(dir).expect("pages");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let named = pages.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy();
        (name.into_owned(), path)
    });
    named.collect()
}

/// Returns a server as a user starts it, but for its port, and that it speaks all dialects.
fn serve(sandbox: &Sandbox) -> Serving {
    let words = ["serve", "mem:256M", "--smb=127.0.0.1:0", "--user", "tester"];
    let mut command = sandbox.command(&words);
    command.args(["--smb-min", "2.0.2"]);
    command.arg("--json").env("VOLARY_PASSWORD", "pass");
    Serving::of(command)
}

fn torture(suite: &str, seconds: u32) -> Outcome {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox);
    let address = serving.said["smb"].as_str().expect("an address");
    let port = address.rsplit(':').next().expect("a port");
    let mut command = TIMEOUT.command();
    command.arg(seconds.to_string());
    command.args(["smbtorture", "//127.0.0.1/mem", "-p", port]);
    command.args(["-U", "tester%pass", "-s", "/dev/null"]);
    command.arg("--option=torture:writetimeupdatedelay=500000");
    command.arg(suite);
    let output = command.output().expect("smbtorture");
    serving.stop("-TERM");
    outcome(&String::from_utf8_lossy(&output.stdout))
}

/// Returns what came of each test, from what smbtorture printed.
fn outcome(printed: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut lines = printed.lines();
    let mut running = None;
    while let Some(line) = lines.next() {
        if let Some(test) = line.strip_prefix("test: ") {
            running = Some(test.to_owned());
        } else if let Some(test) = line.strip_prefix("success: ") {
            outcome.passed.insert(test.to_owned());
            running = None;
        } else if let Some(test) = of_failure(line) {
            let why = lines.next().unwrap_or_default();
            outcome.failed.insert(test.to_owned(), reason(why));
            running = None;
        } else if line.starts_with("skip: ") {
            running = None;
        }
    }
    if let Some(test) = running {
        outcome.failed.insert(test, NO_END.to_owned());
    }
    outcome
}

fn of_failure(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("failure: ")
        .or(line.strip_prefix("error: "))?;
    Some(rest.trim_end_matches(" ["))
}

/// smbtorture's words, without its place in the source.
fn reason(line: &str) -> String {
    let words = line.split_once(": ").map_or(line, |(_, words)| words);
    words.replace(['"', '\\'], "'")
}

fn compare(suite: &str, page: &Page, outcome: &Outcome, news: &mut String) {
    for test in &page.passes {
        if !outcome.passed.contains(test) {
            let why = outcome.failed.get(test).map_or("not run", |why| why);
            let _ = writeln!(news, "{suite} {test} fails: {why}");
        }
    }
    for test in outcome.passed.difference(&page.passes) {
        let _ = writeln!(news, "{suite} {test} passes");
    }
}

fn updated(page: &Page, outcome: &Outcome) -> String {
    let mut text = String::new();
    text.push_str("passes = [\n");
    for test in &outcome.passed {
        let _ = writeln!(text, "    \"{test}\",");
    }
    text.push_str("]\n");
    if let Some(seconds) = page.seconds {
        let _ = writeln!(text, "seconds = {seconds}");
    }
    if !page.races.is_empty() {
        text.push_str("\n[races]\n");
    }
    for (test, how) in &page.races {
        let _ = writeln!(text, "{test} = \"{how}\"");
    }
    if !outcome.failed.is_empty() {
        text.push_str("\n[fails]\n");
    }
    for (test, found) in &outcome.failed {
        let why = page.fails.get(test).unwrap_or(found);
        let _ = writeln!(text, "\"{test}\" = \"{why}\"");
    }
    text
}
