//! Listings: READDIRPLUS, page by page, with the server's own cookies.

use crate::attached::hidden::is_hidden;
use crate::calls::entries::{At, Entries};
use crate::calls::export::{Export, Who, after_status};
use crate::content::attrs::Attrs;
use crate::fail;
use crate::known::attr_cache::tick;
use crate::known::node::Node;
use crate::opens::listing::{Listed, Listing, Page};
use crate::opens::open::Opened;
use crate::wire::proto::{Fattr, error_of, procedure, status};
use std::sync::Arc;
use volary_core::{Cookie, DirBuf, Error, FileKind, Kind, Result};
use volary_rpc::Output;

/// How often a page is requested again because an entry was removed meanwhile.
const RACES_MAX: u32 = 16;

/// Listings of directories.
pub(crate) struct Dirs {
    export: Arc<Export>,
    entries: Arc<Entries>,
    attrs: Arc<Attrs>,
    /// The most bytes that one call requests.
    list_max: u32,
}

impl Dirs {
    pub(crate) fn new(
        export: Arc<Export>,
        entries: Arc<Entries>,
        attrs: Arc<Attrs>,
        list_max: u32,
    ) -> Self {
        Self {
            export,
            entries,
            attrs,
            list_max,
        }
    }

    /// See [`readdir`](volary_core::FileSystem::readdir).
    pub(crate) fn list(
        &self,
        who: Who<'_>,
        open: &Opened,
        from: Cookie,
        out: &mut DirBuf,
    ) -> Result<bool> {
        if open.node.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let mut listing = open.listing.lock();
        listing.go_to(from);
        loop {
            match listing.first() {
                None if listing.is_end() => return Ok(true),
                None => self.turn_page(who, &open.node, &mut listing)?,
                Some(listed) => {
                    if !self.give(who, &open.node, listed, out)? {
                        return Ok(false);
                    }
                    listing.pass()?;
                }
            }
        }
    }

    /// Adds an entry to `out`; false if there is no room. Skips entries that have been removed
    /// since, and hidden ones. An entry has no attributes if the server cannot read its node, or
    /// refuses this caller.
    fn give(&self, who: Who<'_>, dir: &Arc<Node>, of: &Listed, out: &mut DirBuf) -> Result<bool> {
        if is_hidden(&of.name) {
            return Ok(true);
        }
        let name = of.name.as_slice();
        let node = match (of.fh, of.attr) {
            (Some(fh), Some(attr)) => self.entries.nodes.enter(fh, &attr, 0)?,
            _ => match self.entries.look_up(who, At { dir, name }) {
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Stale) => return Ok(true),
                Ok(found) => found,
                Err(e) => {
                    self.pass_over(who, dir, e)?;
                    let kind = FileKind::File;
                    return Ok(out.push(Cookie(of.cookie), of.unknown(), kind, &of.name, None));
                }
            },
        };
        let attr = if out.wants_attr() {
            match self.attrs.last_of(who, &node) {
                Err(e) if e == Kind::Stale => return Ok(true),
                Ok(attr) => Some(attr),
                Err(e) => {
                    self.pass_over(who, dir, e)?;
                    None
                }
            }
        } else {
            None
        };
        Ok(out.push(Cookie(of.cookie), node.id, node.kind, &of.name, attr))
    }

    /// Ignores an error of one entry's node, if the server still answers for the directory.
    ///
    /// # Errors
    /// `e` if it is not `Access`, `Io` or `Corrupt`; those of GETATTR.
    fn pass_over(&self, who: Who<'_>, dir: &Node, e: Error) -> Result<()> {
        match e.kind() {
            Kind::Access => Ok(()),
            Kind::Io | Kind::Corrupt => self.export.fetch_attr(who, dir).map(drop),
            _ => Err(e),
        }
    }

    fn turn_page(&self, who: Who<'_>, dir: &Node, listing: &mut Listing) -> Result<()> {
        listing.begin_page()?;
        let mut page = self.fetch_page(who, dir, listing);
        for _ in 0..RACES_MAX {
            // Caused by an entry that was removed meanwhile. No server may answer so, but one does.
            if !matches!(&page, Err(e) if *e == Kind::NotFound) {
                break;
            }
            page = self.fetch_page(who, dir, listing);
        }
        if let Err(e) = &page
            && *e == Kind::Unsupported
            && listing.is_plus()
        {
            listing.set_plain();
            page = self.fetch_page(who, dir, listing);
        }
        match page {
            // A directory that was removed has no entries.
            Err(e) if e == Kind::Stale && dir.is_open() => {
                listing.end();
                Ok(())
            }
            page => listing.take(page?),
        }
    }

    fn fetch_page(&self, who: Who<'_>, dir: &Node, listing: &Listing) -> Result<Page> {
        let asked = tick();
        let plus = listing.is_plus();
        let put = |out: &mut Output| {
            dir.fh.write(out);
            listing.write(out, self.list_max);
        };
        let number = if plus {
            procedure::READDIRPLUS
        } else {
            procedure::READDIR
        };
        let (status, done) = self.export.nfs(who, number, put)?;
        let mut input = after_status(&done);
        let attr = Fattr::read_maybe(&mut input).map_err(fail::garbage)?;
        if let Some(attr) = attr {
            dir.note(&attr, asked)?;
        }
        if status != status::OK {
            return Err(error_of(status));
        }
        let page = Page::read(&mut input, plus)?;
        self.name_all(dir, &page, asked)?;
        Ok(page)
    }

    /// Adds the nodes of a page to the cache, with the attributes that came along.
    fn name_all(&self, dir: &Node, page: &Page, asked: u64) -> Result<()> {
        let epoch = dir.epoch();
        for listed in page.entries() {
            if let (Some(fh), Some(attr)) = (listed.fh, listed.attr) {
                let node = self.entries.nodes.enter(fh, &attr, asked)?;
                if dir.is_unchanged_since(asked) {
                    let names = &self.entries.names;
                    names.note(dir.id, epoch, &listed.name, node.id);
                }
            }
        }
        Ok(())
    }
}
