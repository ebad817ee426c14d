//! Sentences from the documentation of `FileSystem` for reports of failures.

use volary_core::Call;

/// Returns the central sentence of an operation's contract.
pub(super) const fn of(call: Call) -> &'static str {
    match call {
        Call::StatFs => "Returns how full the volume is. What it holds is in use",
        Call::Sync => "Makes all changes so far durable.",
        Call::Detach => {
            "Ends the attachment: makes all changes durable, marks the volume as cleanly detached, \
             and closes all opens. Later calls answer `Stale`; a second detach does nothing."
        }
        Call::Watch => "Tells `sink`, from now on, of changes that were not made through",
        Call::Quota => "Returns the quota of one user or group",
        Call::SetQuota => {
            "Changes quotas. Operations that would exceed a limit answer `Quota` from then on."
        }
        Call::Lookup => "Returns the node that `name` leads to in `dir`.",
        Call::Parent => "Returns the parent directory of `dir`; the root is its own parent.",
        Call::ReadDir => {
            "An entry that exists from the first call to the last is given once. One that comes or \
             goes meanwhile is given once or not at all."
        }
        Call::Create => "Makes a regular file and opens it, as one step.",
        Call::MkDir => "Makes a directory.",
        Call::MkNod => "Makes a fifo, socket or device node; `rdev` counts for devices only.",
        Call::Symlink => "Makes a symlink to `target`, which need not exist.",
        Call::Link => "Gives `node` one more name.",
        Call::Unlink => "Removes a name. The node is freed with its last name and last open.",
        Call::RmDir => "Removes an empty directory.",
        Call::Rename => {
            "Moves a name, and replaces the node that the new name led to. The moved node and its \
             opens stay valid. The replaced node is treated as by `unlink` or `rmdir`."
        }
        Call::GetAttr => "Returns the node's attributes.",
        Call::SetAttr => {
            "Changes attributes, all or none, and returns the node's attributes after the change."
        }
        Call::Access => "Returns the part of `want` that `cx.cred` may do.",
        Call::ReadLink => "Returns a symlink's target.",
        Call::GetXattr => "Returns the value of an extended attribute.",
        Call::SetXattr => "Sets an extended attribute.",
        Call::ListXattr => "Returns the names of the extended attributes.",
        Call::RemoveXattr => "Removes an extended attribute.",
        Call::Open => "Opens a file or a directory. A node that is open outlives its last name.",
        Call::Read => {
            "Reads at byte `offset` and returns the number of bytes read: less than asked for only \
             at the end of the file. It takes memory for what is asked for, not for the whole file."
        }
        Call::Write => {
            "Writes all of `data` at byte `offset`; without an offset, at the current end of the \
             file. Returns the offset just after the data."
        }
        Call::FSync => "Makes the file's data durable and, unless `data_only`, its attributes.",
        Call::Allocate => {
            "Reserves space for the range (`hole` false), or frees it and makes the range a hole \
             (`hole` true). The size stays."
        }
        Call::Extents => "Adds the range's extents to `out`, in order and without gaps",
        Call::Lock => "Takes, releases or tests a byte-range lock",
        Call::Ioctl => "Does a format-specific operation.",
        Call::Close => {
            "Ends the open in any case, and gives back its memory; an error concerns earlier writes."
        }
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
