//! Which files are wanted.

use crate::exit::{Done, Fail};
use crate::verbs::mkfs::size;
use ignore::overrides::{Override, OverrideBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use volary::FileKind;
use volary::bulk::File;

/// Which files are wanted.
#[derive(clap::Args, Debug)]
pub(super) struct FilterArgs {
    /// Only files that one of these patterns fits, as in a .gitignore
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No files, and nothing in directories, that this pattern fits
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Only files of at least this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_size: Option<u64>,
    /// Only files of at most this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
}

/// Which files are wanted.
pub(super) struct Filter {
    include: Option<Override>,
    exclude: Option<Override>,
    sizes: std::ops::RangeInclusive<u64>,
}

impl Filter {
    /// # Errors
    /// Of a pattern that is none.
    pub(super) fn new(args: &FilterArgs) -> Done<Self> {
        Ok(Self {
            include: globs(&args.include)?,
            exclude: globs(&args.exclude)?,
            sizes: args.min_size.unwrap_or(0)..=args.max_size.unwrap_or(u64::MAX),
        })
    }

    /// Returns whether a node is wanted: whether a directory is entered.
    pub(super) fn wants(&self, file: &File<'_>) -> bool {
        let Some(attr) = file.attr else { return true };
        let is_dir = attr.kind == FileKind::Dir;
        let fits = |globs: &Override| globs.matched(path(file), is_dir).is_whitelist();
        if self.exclude.as_ref().is_some_and(fits) {
            return false;
        }
        let is_included = || self.include.as_ref().is_none_or(fits);
        let fits_size = attr.kind != FileKind::File || self.sizes.contains(&attr.size);
        is_dir || is_included() && fits_size
    }

    /// Returns whether a directory is one of those that are to be read, and not only on the way to one.
    pub(super) fn includes_dirs(&self) -> bool {
        self.include.is_none()
    }
}

fn path<'a>(file: &File<'a>) -> &'a Path {
    let path = file.path.strip_prefix(b"/").unwrap_or(file.path);
    Path::new(OsStr::from_bytes(path))
}

fn globs(patterns: &[String]) -> Done<Option<Override>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut builder = OverrideBuilder::new("/");
    for pattern in patterns {
        // An exclamation mark would turn the meaning of the option around.
        let literal = match pattern.strip_prefix('!') {
            Some(rest) => format!("\\!{rest}"),
            None => pattern.clone(),
        };
        let added = builder.add(&literal);
        added.map_err(|e| {
            Fail::usage(format!(
                "'{}' is no pattern: {e}",
                volary::escape(pattern.as_bytes())
            ))
        })?;
    }
    let built = builder.build().map_err(|e| Fail::usage(e.to_string()))?;
    Ok(Some(built))
}
