//! Running other people's tools.

use std::path::Path;
use std::process::Command;
use volary_testkit::oracle::dosfstools;

/// What a tool answered.
pub(crate) struct Answer {
    /// Exit code; -1 for a signal.
    pub(crate) code: i32,
    /// Both of its outputs.
    pub(crate) text: String,
}

/// Runs a tool; `None`, with a word about it, if it is not installed.
pub(crate) fn run(tool: &str, args: &[&str]) -> Option<Answer> {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let output = match Command::new(tool)
        .args(args)
        .env("PATH", path)
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .output()
    {
        Ok(output) => output,
        Err(e) => {
            eprintln!("{tool} is not there, nothing compared: {e}");
            return None;
        }
    };
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Some(Answer {
        code: output.status.code().unwrap_or(-1),
        text,
    })
}

/// Checks that fsck.fat finds nothing, if it is installed.
pub(crate) fn assert_clean(image: &Path, about: &str) {
    if dosfstools::FSCK.find().is_some() {
        assert_eq!(dosfstools::check(image), Ok(()), "{about}");
    }
}
