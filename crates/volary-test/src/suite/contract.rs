//! Sentences from the documentation of `FileSystem` for reports of failures.

use volary_core::Call;

/// Returns the central sentence of an operation's contract.
pub(super) const fn of(call: Call) -> &'static str {
    match call {
        Call::StatFs => "Returns how full the volume is.",
        Call::Sync => "Makes all changes so far durable.",
        Call::Detach => {
            "Ends the attachment: makes all changes durable and marks the volume as cleanly left. \
             Opens that are still there are ended. Later calls answer `Stale`; a second detach does \
             nothing."
        }
        Call::Watch => "Tells `sink`, from now on, of changes that came from elsewhere",
        Call::Quota => "Returns the quota of a user or group",
        Call::SetQuota => "Changes quotas. What goes past a limit answers `Quota` from then on.",
        Call::Lookup => {
            "Returns the node that `name` leads to in `dir`. A symlink is not followed."
        }
        Call::Parent => "Returns the directory that holds `dir`; the root holds itself.",
        Call::ReadDir => {
            "An entry that is in the directory from the first call to the last is given once. One \
             that comes or goes meanwhile is given once or not at all."
        }
        Call::Create => "Makes a regular file and opens it, as one step.",
        Call::MkDir => "Makes a directory.",
        Call::MkNod => "Makes a fifo, socket or device node; `rdev` counts for devices only.",
        Call::Symlink => "Makes a symlink that holds `target`, which need not lead anywhere.",
        Call::Link => "Gives `node` one more name.",
        Call::Unlink => "Takes away a name. The node goes with its last name and last open.",
        Call::RmDir => "Removes an empty directory.",
        Call::Rename => {
            "Moves a name, replacing what the new name led to. Node and opens stay what they are. \
             What was replaced goes as by `unlink` or `rmdir`."
        }
        Call::GetAttr => "Returns the node's attributes.",
        Call::SetAttr => "Changes attributes, all or none, and gives them as they now are.",
        Call::Access => "Returns the part of `want` that `cx.cred` may do.",
        Call::ReadLink => "Returns what a symlink holds.",
        Call::GetXattr => "Returns the value of an extended attribute.",
        Call::SetXattr => "Sets an extended attribute.",
        Call::ListXattr => "Returns the names of the extended attributes.",
        Call::RemoveXattr => "Takes away an extended attribute.",
        Call::Open => "Opens a file or a directory. A node that is open outlives its last name.",
        Call::Read => {
            "Reads at byte `offset` and gives the bytes read: fewer than asked for only at the end \
             of the file."
        }
        Call::Write => {
            "Writes all of `data` at byte `offset`, or, with no offset, at the end as it is at that \
             moment. Gives the offset just after the data."
        }
        Call::FSync => "Makes the file durable: its data and, unless `data_only`, its attributes.",
        Call::Allocate => {
            "Gives the range room of its own (`hole` false) or takes it away (`hole` true). The \
             size stays."
        }
        Call::Extents => "Where the bytes of the range lie, in order, without gaps",
        Call::Lock => "Takes, gives back or tests a byte-range lock",
        Call::Ioctl => "Anything else, in the driver's own codes",
        Call::Close => "Ends the open, whatever the answer; an error tells of earlier writes.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_stands_in_the_documentation_of_its_operation() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../volary-core/src/fs.rs");
        let page = std::fs::read_to_string(page).expect("the trait");
        let words = page.lines().map(|l| l.trim().trim_start_matches("/// "));
        let text = words.collect::<Vec<_>>().join(" ");
        for &call in Call::ALL {
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (text, sentence) = (plain(&text), plain(of(call)));
            let at = text.find(&sentence);
            let at = at.unwrap_or_else(|| panic!("{call:?}: no such sentence: {sentence}"));
            let rest = &text[at..];
            let method = rest.find("fn ").map_or("", |at| &rest[at + 3..]);
            assert!(method.starts_with(call.name()), "{call:?}: of another");
        }
    }
}
