//! A volume that fails, or vanishes, while it is served: one line when it does, and one
//! at the end.

use crate::exit::{Done, Exit, Fail};
use crate::log::warn;
use std::sync::Arc;
use volary::layers::{Alarm, Alert};
use volary::{Finding, Fs, Kind, Source, escape};

/// Puts an alarm over `fs` that tells of it on standard error.
pub(crate) fn alarmed(fs: Fs, source: &Source) -> Arc<Alarm> {
    let name = source.to_string();
    let on_device = matches!(source, Source::Image { .. });
    let then = match on_device {
        true => "what needs its device is answered with errors",
        false => "its clients get errors until it is back",
    };
    let is_export = matches!(source, Source::Nfs { .. });
    Arc::new(Alarm::new(fs, move |alert| match alert {
        Alert::Fails(e) if e.kind() == Kind::Stale && is_export => warn(&format!(
            "{name}: failed while it was served: its server exports something else there \
             now, or has forgotten its handles; begin anew to have what there is"
        )),
        Alert::Fails(e) if e.kind() == Kind::Stale => warn(&format!(
            "{name}: failed while it was served: its root is gone; {then}"
        )),
        Alert::Fails(e) => warn(&format!("{name}: failed while it was served: {e}; {then}")),
        Alert::Found(finding) => warn(&format!("{name}: {}", words(finding))),
        Alert::Answers(failed) => {
            warn(&format!("{name}: answers again; {failed} calls had failed"));
        }
    }))
}

/// Warns that a volume takes no changes, if it says why and changes are wanted.
pub(crate) fn tell_if_read_only(fs: &Fs, source: &Source, read_only: bool) {
    if let Some(why) = fs.why_read_only().filter(|_| !read_only) {
        warn(&format!("{source}: takes no changes: {why}"));
    }
}

/// Returns what a driver has found, in a line.
fn words(finding: &Finding) -> String {
    let place = match (&finding.path, finding.offset) {
        (Some(path), _) => format!("{}: ", escape(path)),
        (None, Some(offset)) => format!("at byte {offset}: "),
        (None, None) => String::new(),
    };
    let repair = match finding.repair.as_str() {
        "" => String::new(),
        repair => format!("; {repair}"),
    };
    format!("{place}{}{repair} [{}]", finding.message, finding.code)
}

/// Returns what the driver under a command's volume has found, in lines.
pub(crate) fn found(fs: &Fs, name: &str) -> String {
    let lines = fs.findings();
    let lines = lines
        .iter()
        .map(|f| format!("volary: {name}: {}\n", words(f)));
    lines.collect()
}

/// Tells of a commit that a volume made by itself, and that failed in a way of which its
/// alarm does not tell.
pub(crate) fn commit_failed(name: &str, e: &volary::Error) {
    if !matches!(e.kind(), Kind::Io | Kind::Stale) {
        warn(&format!(
            "{name}: changes could not be made durable, which is tried again: {e}"
        ));
    }
}

/// What is to be said of changes that failed, where detaching has nothing to say.
///
/// # Errors
/// If any did.
pub(crate) fn lost(alarm: &Alarm, source: &Source) -> Done {
    match alarm.lost() {
        0 => Ok(()),
        lost => Err(Fail::new(
            Exit::Failed,
            format!("{source}: {lost} changes could not be made, or not be kept"),
        )),
    }
}
