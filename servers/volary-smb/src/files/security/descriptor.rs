//! Security descriptors (MS-DTYP 2.4.6) in self-relative form.

use super::sid::Sid;
use crate::wire::fscc::le::{part, slice_at, u8_at, u16_at, u32_at};
use crate::wire::{Out, out::len32};

/// Parts of a descriptor that are requested or set (MS-DTYP 2.4.7).
pub(crate) mod parts {
    pub(crate) const OWNER: u32 = 0x1;
    pub(crate) const GROUP: u32 = 0x2;
    pub(crate) const DACL: u32 = 0x4;
    pub(crate) const SACL: u32 = 0x8;
}

const SELF_RELATIVE: u16 = 0x8000;
const DACL_PRESENT: u16 = 0x4;
/// The length of the header.
const HEADER: usize = 20;
/// The lengths of an ACL's header, and of an ACE before its SID.
const ACL_HEADER: usize = 8;
const ACE_HEADER: usize = 8;

/// A rule of an ACL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ace {
    pub(crate) allow: bool,
    /// `INHERIT_ONLY_ACE` and others.
    pub(crate) flags: u8,
    pub(crate) mask: u32,
    pub(crate) sid: Sid,
}

/// `INHERITED_ACE`: the rule was inherited from the parent directory.
pub(crate) const INHERITED: u8 = 0x10;
/// Control bits of inheritance: it is requested, it was done, and it is refused.
pub(crate) const AUTO_INHERIT_REQ: u16 = 0x100;
pub(crate) const AUTO_INHERITED: u16 = 0x400;
pub(crate) const PROTECTED: u16 = 0x1000;
const KEPT: u16 = AUTO_INHERIT_REQ | AUTO_INHERITED | PROTECTED;
/// `INHERIT_ONLY_ACE`: the rule does not apply to the node itself.
pub(crate) const INHERIT_ONLY: u8 = 0x8;

/// A descriptor. A missing part was not requested, or not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The control bits, limited to those in [`KEPT`].
    pub(crate) control: u16,
    pub(crate) owner: Option<Sid>,
    pub(crate) group: Option<Sid>,
    pub(crate) dacl: Option<Dacl>,
}

/// A DACL that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dacl {
    /// A null DACL: everybody has all rights.
    Null,
    Rules(Vec<Ace>),
}

impl Descriptor {
    /// Parses a descriptor. Returns `None` if it is malformed, or has rules other than "allow" and
    /// "deny".
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let control = u16_at(bytes, 2)?;
        if u8_at(bytes, 0)? != 1 || control & SELF_RELATIVE == 0 {
            return None;
        }
        let sid = |at: usize| -> Option<Option<Sid>> {
            match u32_at(bytes, at)? {
                0 => Some(None),
                offset => Some(Some(Sid::parse(bytes, usize::try_from(offset).ok()?)?)),
            }
        };
        let dacl = match (control & DACL_PRESENT != 0, u32_at(bytes, 16)?) {
            (false, _) => None,
            (true, 0) => Some(Dacl::Null),
            (true, offset) => Some(Dacl::Rules(acl(bytes, offset)?)),
        };
        Some(Self {
            control: control & KEPT,
            owner: sid(4)?,
            group: sid(8)?,
            dacl,
        })
    }

    /// Returns which parts are present.
    pub(crate) fn parts(&self) -> u32 {
        let part = |there: bool, part: u32| if there { part } else { 0 };
        part(self.owner.is_some(), parts::OWNER)
            | part(self.group.is_some(), parts::GROUP)
            | part(self.dacl.is_some(), parts::DACL)
    }

    /// Encodes the descriptor.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = Out::new();
        let present = if self.dacl.is_some() { DACL_PRESENT } else { 0 };
        out.u8(1)
            .u8(0)
            .u16(SELF_RELATIVE | present | self.control)
            .zeros(HEADER.saturating_sub(4));
        for (sid, at) in [(&self.owner, 4), (&self.group, 8)] {
            if let Some(sid) = sid {
                let place = len32(out.len());
                out.put_u32(at, place);
                sid.put(&mut out);
            }
        }
        if let Some(Dacl::Rules(rules)) = &self.dacl {
            let place = len32(out.len());
            out.put_u32(16, place);
            put_acl(&mut out, rules);
        }
        out.done()
    }
}

fn acl(bytes: &[u8], offset: u32) -> Option<Vec<Ace>> {
    let at = usize::try_from(offset).ok()?;
    let size = u32::from(u16_at(bytes, at.checked_add(2)?)?);
    let acl = part(bytes, offset, size)?;
    let count = u16_at(acl, 4)?;
    let mut rules = Vec::new();
    let mut rest = acl.get(ACL_HEADER..)?;
    for _ in 0..count {
        let size = usize::from(u16_at(rest, 2)?);
        let ace = slice_at(rest, 0, size)?;
        let allow = match u8_at(ace, 0)? {
            0 => true,
            1 => false,
            _ => return None,
        };
        rules.push(Ace {
            allow,
            flags: u8_at(ace, 1)?,
            mask: u32_at(ace, 4)?,
            sid: Sid::parse(ace, ACE_HEADER)?,
        });
        rest = rest.get(size..)?;
    }
    Some(rules)
}

fn put_acl(out: &mut Out, rules: &[Ace]) {
    let ace_len = |ace: &Ace| ace.sid.len().saturating_add(ACE_HEADER);
    let size = rules.iter().map(ace_len).sum::<usize>();
    out.u8(2).u8(0).len16(size.saturating_add(ACL_HEADER));
    out.len16(rules.len()).u16(0);
    for ace in rules {
        out.u8(u8::from(!ace.allow)).u8(ace.flags);
        out.len16(ace_len(ace)).u32(ace.mask);
        ace.sid.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back_and_torn_ones_are_refused() {
        let ace = |allow, sid| Ace {
            allow,
            flags: 0,
            mask: 0x1f_01ff,
            sid,
        };
        let full = Descriptor {
            control: 0x1000,
            owner: Some(Sid::user(5)),
            group: Some(Sid::group(6)),
            dacl: Some(Dacl::Rules(vec![
                ace(false, Sid::user(5)),
                ace(true, Sid::everyone()),
            ])),
        };
        let null = Descriptor {
            dacl: Some(Dacl::Null),
            ..Descriptor::default()
        };
        for descriptor in [&full, &null, &Descriptor::default()] {
            assert_eq!(
                Descriptor::parse(&descriptor.emit()).as_ref(),
                Some(descriptor)
            );
        }
        let bytes = full.emit();
        for len in 0..bytes.len() {
            assert_eq!(Descriptor::parse(&bytes[..len]), None, "{len}");
        }
    }
}
