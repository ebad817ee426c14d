//! Access control as clients see it. Translates a volume's owner, group and permission bits to a
//! security descriptor, and back.
//!
//! Users are S-1-22-1-uid, and groups are S-1-22-2-gid. S-1-5-88-1 and -2 are understood too. A
//! DACL that a client sets is stored whole if the volume has extended attributes (`stored`), and as
//! permission bits.
//!
//! Without extended attributes, some DACLs cannot be expressed as bits. Examples are rules for
//! others than owner, group and everyone, or writing without appending. These are refused with
//! `NOT_SUPPORTED`, so that nobody relies on missing protection.
//!
//! Uses only `wire` and [`access`]. From bottom to top: `sid`, `descriptor`, `kept`, `stored`, and
//! this module.

pub(crate) mod descriptor;
mod kept;
pub(crate) mod sid;
pub(crate) mod stored;

use super::access;
use crate::answer::Failure;
use crate::wire::Status;
use descriptor::{Ace, Dacl, Descriptor, INHERIT_ONLY, parts};
use parking_lot::Mutex;
use sid::{Principal, Sid};
use volary_core::{Acl, Attr, Caps, NodeId, SetAttr};
use volary_session::Session;

/// Returns the requested parts of a node's descriptor: of the stored one, or one derived from the
/// mode.
pub(crate) fn of_node(root: &Session, attr: &Attr, asked: u32) -> Descriptor {
    let Some(mut kept) = stored::read(root, attr) else {
        // If the access list is damaged, the mode alone counts, and it gives access only to the
        // owner.
        let acl = root.acl_seen(attr).unwrap_or_default();
        return describe(attr, acl.as_ref(), asked);
    };
    if asked & parts::OWNER == 0 {
        kept.owner = None;
    }
    if asked & parts::GROUP == 0 {
        kept.group = None;
    }
    if asked & parts::DACL == 0 {
        kept.dacl = None;
        kept.control = 0;
    }
    kept
}

/// Sets the given parts of a node's descriptor. It is stored whole if the volume has extended
/// attributes, and otherwise as owner, group and mode. If it is refused, nothing has changed.
/// `root` may read everything. `alone` is locked meanwhile, so that such changes on a share run one
/// by one.
///
/// # Errors
/// `NOT_SUPPORTED` for what owner, group and mode cannot express; as [`stored::set`].
pub(crate) fn set(
    session: &Session,
    root: &Session,
    alone: &Mutex<()>,
    node: NodeId,
    new: &Descriptor,
    given: u32,
) -> Result<(), Failure> {
    let _alone = alone.lock();
    let attr = root.getattr(node)?;
    if session.caps().has(Caps::XATTRS | Caps::MODES) {
        let all = parts::OWNER | parts::GROUP | parts::DACL;
        let merged = stored::merged(of_node(root, &attr, all), new.clone(), given);
        if stored::set(session, root, &attr, &merged)? {
            return Ok(());
        }
    }
    let set = changes(&attr, new, given)?;
    session.setattr(node, &set)?;
    Ok(())
}

/// Gives a new node the descriptor that it inherits from its directory. Returns false if it
/// inherits none. `root` and `alone` are as for [`set`].
///
/// # Errors
/// `NOT_SUPPORTED` if the volume cannot store it; as [`stored::set`].
pub(crate) fn inherit(
    session: &Session,
    root: &Session,
    alone: &Mutex<()>,
    dir: &Attr,
    child: &Attr,
) -> Result<bool, Failure> {
    let parent = stored::read(root, dir);
    let Some(descriptor) = parent.and_then(|parent| stored::inherited(&parent, child)) else {
        return Ok(false);
    };
    let _alone = alone.lock();
    match stored::set(session, root, child, &descriptor)? {
        true => Ok(true),
        false => Err(Status::NOT_SUPPORTED.into()),
    }
}

/// Returns the requested parts of a descriptor for owner, group, mode and an access list.
fn describe(attr: &Attr, acl: Option<&Acl>, asked: u32) -> Descriptor {
    let wants = |part: u32| asked & part != 0;
    Descriptor {
        control: 0,
        owner: wants(parts::OWNER).then(|| Sid::user(attr.uid)),
        group: wants(parts::GROUP).then(|| Sid::group(attr.gid)),
        dacl: wants(parts::DACL).then(|| Dacl::Rules(rules(attr, acl))),
    }
}

/// Users or groups, each with its permission bits.
type Classes = Vec<(u32, Sid)>;

/// Returns the bits of the named users in an access list, and of the groups, with the owning group
/// first.
fn classes(attr: &Attr, acl: Option<&Acl>) -> (Classes, Classes) {
    let owning = |bits| vec![(bits, Sid::group(attr.gid))];
    let Some(acl) = acl else {
        return (Vec::new(), owning(attr.mode >> 3 & 7));
    };
    let masked = |bits: u8| u32::from(bits & acl.mask.unwrap_or(7));
    let users = acl.users.iter();
    let users = users.map(|(uid, bits)| (masked(*bits), Sid::user(*uid)));
    let mut groups = owning(masked(acl.group));
    let named = acl.groups.iter();
    groups.extend(named.map(|(gid, bits)| (masked(*bits), Sid::group(*gid))));
    (users.collect(), groups)
}

/// Returns the rules that express a mode or an access list. Each class is first denied the rights
/// that only later classes have. If there are several groups, all their rights are allowed first,
/// and denied afterwards.
fn rules(attr: &Attr, acl: Option<&Acl>) -> Vec<Ace> {
    let (users, groups) = classes(attr, acl);
    let (owner, other) = (attr.mode >> 6 & 7, attr.mode & 7);
    let rights = |bits| access::of_mode_bits(bits);
    let everybody = access::READ_ATTRIBUTES | access::READ_CONTROL | access::SYNCHRONIZE;
    let owns = access::WRITE_ATTRIBUTES | access::WRITE_DAC | access::WRITE_OWNER;
    let ace = |allow, mask, sid: &Sid| Ace {
        allow,
        flags: 0,
        mask,
        sid: sid.clone(),
    };
    let denied = |later: u32, bits: u32, sid: &Sid| {
        ace(false, rights(later) & !rights(bits) & !everybody, sid)
    };
    let allowed = |bits: u32, sid: &Sid| ace(true, rights(bits) | everybody, sid);
    let by_groups = groups.iter().fold(other, |all, (bits, _)| all | bits);
    let by_users = users.iter().fold(by_groups, |all, (bits, _)| all | bits);
    let all_owner = match owner {
        7 => access::ALL,
        bits => rights(bits) | everybody | owns,
    };
    let owner = Sid::user(attr.uid);
    let mut rules = vec![
        ace(false, rights(by_users) & !all_owner, &owner),
        ace(true, all_owner, &owner),
    ];
    for (bits, sid) in &users {
        rules.extend([denied(by_groups, *bits, sid), allowed(*bits, sid)]);
    }
    let denies = groups.iter().map(|(bits, sid)| denied(other, *bits, sid));
    let allows = groups.iter().map(|(bits, sid)| allowed(*bits, sid));
    match groups.len() {
        1 => rules.extend(denies.chain(allows)),
        _ => rules.extend(allows.chain(denies)),
    }
    rules.push(allowed(other, &Sid::everyone()));
    rules.retain(|ace| ace.mask != 0);
    rules
}

/// Returns the changes of owner, group and mode that express these parts of a descriptor.
///
/// # Errors
/// `NOT_SUPPORTED` for parts that they cannot express.
fn changes(attr: &Attr, descriptor: &Descriptor, given: u32) -> Result<SetAttr, Status> {
    let mut set = SetAttr::default();
    if given & parts::OWNER != 0 {
        match descriptor.owner.as_ref().map(Sid::principal) {
            None => {}
            Some(Some(Principal::User(uid))) => set.uid = (uid != attr.uid).then_some(uid),
            Some(_) => return Err(Status::NOT_SUPPORTED),
        }
    }
    if given & parts::GROUP != 0 {
        match descriptor.group.as_ref().map(Sid::principal) {
            None => {}
            Some(Some(Principal::Group(gid))) => set.gid = (gid != attr.gid).then_some(gid),
            Some(_) => return Err(Status::NOT_SUPPORTED),
        }
    }
    if given & parts::DACL != 0 {
        let uid = set.uid.unwrap_or(attr.uid);
        let gid = set.gid.unwrap_or(attr.gid);
        let bits = match &descriptor.dacl {
            None | Some(Dacl::Null) => 0o777,
            Some(Dacl::Rules(rules)) => mode_of(rules, uid, gid)?,
        };
        let mode = attr.mode & 0o7000 | bits;
        set.mode = (mode != attr.mode).then_some(mode);
    }
    Ok(set)
}

/// Returns the permission bits that the rules give the three classes.
///
/// # Errors
/// `NOT_SUPPORTED`.
fn mode_of(rules: &[Ace], uid: u32, gid: u32) -> Result<u32, Status> {
    /// The rights that a class is allowed and denied so far.
    #[derive(Clone, Copy, Default)]
    struct Class {
        allowed: u32,
        denied: u32,
    }
    let mut classes = [Class::default(); 3];
    for ace in rules {
        if ace.flags & INHERIT_ONLY != 0 {
            continue;
        }
        let principal = ace.sid.principal().ok_or(Status::NOT_SUPPORTED)?;
        let applies = match principal {
            Principal::Mode(mode) => return Ok(mode & 0o777),
            Principal::User(other) if other == uid => [true, false, false],
            Principal::Owner => [true, false, false],
            Principal::Group(other) if other == gid => [false, true, false],
            Principal::Everyone => [true, true, true],
            Principal::User(_) | Principal::Group(_) => return Err(Status::NOT_SUPPORTED),
        };
        let mask = access::spelled(ace.mask).ok_or(Status::NOT_SUPPORTED)?;
        for (class, applies) in classes.iter_mut().zip(applies) {
            match (applies, ace.allow) {
                (false, _) => {}
                (true, true) => class.allowed |= mask & !class.denied,
                (true, false) => class.denied |= mask & !class.allowed,
            }
        }
    }
    let mut mode = 0;
    for class in classes {
        mode = mode << 3 | bits_of(class.allowed)?;
    }
    Ok(mode)
}

/// Returns the permission bits for an access mask.
///
/// # Errors
/// `NOT_SUPPORTED` for writing without appending, or the reverse.
fn bits_of(mask: u32) -> Result<u32, Status> {
    let has = |right: u32| u32::from(mask & right != 0);
    if has(access::WRITE_DATA) != has(access::APPEND_DATA) {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(has(access::READ_DATA) << 2 | has(access::WRITE_DATA) << 1 | has(access::EXECUTE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::access::tests::attr as of;
    use volary_core::FileKind;

    fn attr(kind: FileKind, mode: u32) -> Attr {
        of(kind, mode, 10, 20)
    }

    #[test]
    fn every_mode_comes_back_from_its_descriptor() {
        for kind in [FileKind::File, FileKind::Dir] {
            for mode in 0..=0o7777 {
                let node = attr(kind, mode);
                let bytes = describe(&node, None, 7).emit();
                let descriptor = Descriptor::parse(&bytes).unwrap();
                let set = changes(&attr(kind, mode ^ 0o777), &descriptor, 7).unwrap();
                assert_eq!(set, SetAttr::mode(mode), "{mode:o}");
            }
        }
    }

    #[test]
    fn what_modes_cannot_say_is_refused() {
        let node = attr(FileKind::File, 0o644);
        let with = |mask, sid| Descriptor {
            dacl: Some(Dacl::Rules(vec![Ace {
                allow: true,
                flags: 0,
                mask,
                sid,
            }])),
            ..Descriptor::default()
        };
        let stranger = with(access::ALL, Sid::user(99));
        assert_eq!(changes(&node, &stranger, 4), Err(Status::NOT_SUPPORTED));
        let appends = with(access::APPEND_DATA, Sid::everyone());
        assert_eq!(changes(&node, &appends, 4), Err(Status::NOT_SUPPORTED));
        let none = Descriptor::parse(&with(access::ALL, Sid::user(10)).emit()).unwrap();
        assert_eq!(changes(&node, &none, 4), Ok(SetAttr::mode(0o700)));
    }
}
