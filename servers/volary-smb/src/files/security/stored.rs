//! Descriptors that permission bits cannot express. They are stored whole in an extended attribute
//! that only root can set.
//!
//! The permission bits are set as well, to what the DACL grants to owner, group and everybody. They
//! apply to every protocol. For SMB, the DACL applies in addition, so that nobody gets more than
//! both permit. A descriptor is valid only while owner, group and mode are those with which it was
//! set. A later change of these by other means takes precedence.

use super::descriptor::{
    AUTO_INHERIT_REQ, AUTO_INHERITED, Ace, Dacl, Descriptor, INHERIT_ONLY, INHERITED, PROTECTED,
    parts,
};
use super::kept::{self, Record};
use super::sid::{Principal, Sid};
use crate::answer::Failure;
use crate::files::access;
use crate::wire::Status;
use volary_core::{Attr, Cred, FileKind, SetAttr};
use volary_session::Session;

/// The flags of inheritance.
const OBJECT_INHERIT: u8 = 0x1;
const CONTAINER_INHERIT: u8 = 0x2;
const NO_PROPAGATE: u8 = 0x4;

/// Returns the node's descriptor, if one is stored and still valid. `root` must be a session that
/// may read everything.
pub(crate) fn read(root: &Session, attr: &Attr) -> Option<Descriptor> {
    let (_, value) = kept::find(root, attr.node)?;
    Descriptor::parse(&kept::counting(&value, attr)?.descriptor)
}

/// Returns the record for a descriptor, with its owner, group and permission bits.
///
/// # Errors
/// `INVALID_OWNER` and `INVALID_PRIMARY_GROUP` for those that are not Unix users and groups.
fn record_of(attr: &Attr, descriptor: &Descriptor) -> Result<Record, Status> {
    let uid = match descriptor.owner.as_ref().map(Sid::principal) {
        None => attr.uid,
        Some(Some(Principal::User(uid))) => uid,
        Some(_) => return Err(Status::INVALID_OWNER),
    };
    let gid = match descriptor.group.as_ref().map(Sid::principal) {
        None => attr.gid,
        Some(Some(Principal::Group(gid))) => gid,
        Some(_) => return Err(Status::INVALID_PRIMARY_GROUP),
    };
    let bits = match &descriptor.dacl {
        None | Some(Dacl::Null) => 0o777,
        Some(Dacl::Rules(rules)) => mode_of(rules, uid, gid),
    };
    Ok(Record {
        uid,
        gid,
        bits: walkable(attr.kind, bits),
        descriptor: descriptor.emit(),
    })
}

/// Sets a node's whole descriptor. Owner, group and mode are set by `session`, if it may, and the
/// rest is stored with them. Returns false, and changes nothing, if the volume cannot store one for
/// this node. Calls for one volume must not overlap.
///
/// The descriptor is stored first. After an error, and after a crash at any point, owner, group,
/// mode and descriptor are either all old or all new.
///
/// # Errors
/// `INVALID_OWNER` and `INVALID_PRIMARY_GROUP` for those that are not Unix users and groups;
/// `NOT_SUPPORTED` if the volume stores other values of owner, group or mode; as
/// [`Session::setattr`].
pub(crate) fn set(
    session: &Session,
    root: &Session,
    attr: &Attr,
    descriptor: &Descriptor,
) -> Result<bool, Failure> {
    let new = record_of(attr, descriptor)?;
    let mode = attr.mode & 0o7000 | new.bits;
    let set = SetAttr {
        uid: (new.uid != attr.uid).then_some(new.uid),
        gid: (new.gid != attr.gid).then_some(new.gid),
        mode: (mode != attr.mode).then_some(mode),
        ..SetAttr::default()
    };
    let found = kept::find(root, attr.node);
    let value = found.as_ref().map(|(_, value)| value.as_slice());
    let old = value.and_then(|value| kept::counting(value, attr));
    let stays = new.counts(attr);
    if !kept::keep(root, attr.node, &new, old.as_ref().filter(|_| !stays))? {
        return Ok(false);
    }
    let done = match session.setattr(attr.node, &set) {
        Ok(after) if new.counts(&after) => return Ok(true),
        Ok(_) => {
            let before = SetAttr::owned(attr.mode, attr.uid, attr.gid);
            // If this fails, the new mode remains, without its rules.
            root.setattr(attr.node, &before)?;
            Status::NOT_SUPPORTED.into()
        }
        Err(e) => Failure::from(e),
    };
    kept::restore(root, attr.node, found);
    Err(done)
}

/// Adds search permission to all classes with any right on a directory, because Windows does not
/// check it.
fn walkable(kind: FileKind, bits: u32) -> u32 {
    if kind == FileKind::Dir {
        bits | (bits | bits >> 1 | bits >> 2) & 0o111
    } else {
        bits
    }
}

/// Returns whether a node's stored descriptor, if it has one, grants the caller this right.
pub(crate) fn allows(root: &Session, attr: &Attr, cred: &Cred, right: u32) -> bool {
    read(root, attr).is_none_or(|kept| maximal(&kept, attr, cred) & right != 0)
}

/// Checks that a directory's stored descriptor, if it has one, lets the caller add a directory or a
/// file.
///
/// # Errors
/// `ACCESS_DENIED`.
pub(crate) fn check_add(
    root: &Session,
    dir: &Attr,
    cred: &Cred,
    adds_dir: bool,
) -> Result<(), Status> {
    let right = if adds_dir {
        access::APPEND_DATA
    } else {
        access::WRITE_DATA
    };
    if allows(root, dir, cred, right) {
        Ok(())
    } else {
        Err(Status::ACCESS_DENIED)
    }
}

/// Returns the bits that the rules grant the three classes. Rights of other users are not included.
fn mode_of(rules: &[Ace], uid: u32, gid: u32) -> u32 {
    let owner = Cred::new(uid, u32::MAX);
    let group = Cred::new(u32::MAX, gid);
    let other = Cred::new(u32::MAX, u32::MAX);
    let bits = |cred: &Cred| {
        let mask = evaluate(rules, cred, uid);
        let has = |right: u32| u32::from(mask & right != 0);
        let writes = access::WRITE_DATA | access::APPEND_DATA;
        has(access::READ_DATA | access::READ_EA) << 2 | has(writes) << 1 | has(access::EXECUTE)
    };
    bits(&owner) << 6 | bits(&group) << 3 | bits(&other)
}

/// Returns the rights that a DACL grants: those that are allowed before they are denied.
fn evaluate(rules: &[Ace], cred: &Cred, owner: u32) -> u32 {
    let owns = cred.uid == owner;
    let (mut allowed, mut denied) = (0, 0);
    for ace in rules {
        let applies = ace.flags & INHERIT_ONLY == 0
            && match ace.sid.principal() {
                Some(Principal::User(uid)) => uid == cred.uid,
                Some(Principal::Group(gid)) => cred.in_group(gid),
                Some(Principal::Everyone) => true,
                Some(Principal::Owner) => owns,
                Some(Principal::Mode(_)) | None => false,
            };
        let mask = access::spelled(ace.mask).unwrap_or(0);
        match (applies, ace.allow) {
            (false, _) => {}
            (true, true) => allowed |= mask & !denied,
            (true, false) => denied |= mask & !allowed,
        }
    }
    let says_owner = |ace: &Ace| ace.sid.principal() == Some(Principal::Owner);
    if owns && !rules.iter().any(says_owner) {
        allowed |= access::READ_CONTROL | access::WRITE_DAC;
    }
    allowed
}

/// Returns the most rights that a stored descriptor grants the caller. It binds root as it does
/// administrators on Windows, who can only read and change the rules of others' files.
pub(crate) fn maximal(descriptor: &Descriptor, attr: &Attr, cred: &Cred) -> u32 {
    match &descriptor.dacl {
        None | Some(Dacl::Null) => access::ALL,
        Some(Dacl::Rules(rules)) => evaluate(rules, cred, attr.uid) | mends(attr, cred),
    }
}

/// Returns the rights of root on a node of another owner, whatever the rules are.
fn mends(attr: &Attr, cred: &Cred) -> u32 {
    if cred.is_root() && attr.uid != cred.uid {
        access::READ_CONTROL | access::WRITE_DAC | access::WRITE_OWNER
    } else {
        0
    }
}

/// Returns the descriptor that a new node inherits from its directory's, or `None` if it inherits
/// nothing.
pub(crate) fn inherited(parent: &Descriptor, child: &Attr) -> Option<Descriptor> {
    let Some(Dacl::Rules(rules)) = &parent.dacl else {
        return None;
    };
    let marks = parent.control & AUTO_INHERITED != 0;
    let mut out = Vec::new();
    for ace in rules {
        inherit(ace, marks, child, &mut out);
    }
    (!out.is_empty()).then(|| Descriptor {
        control: parent.control & AUTO_INHERITED,
        owner: Some(Sid::user(child.uid)),
        group: Some(Sid::group(child.gid)),
        dacl: Some(Dacl::Rules(out)),
    })
}

/// Adds the rules that a node inherits. With `marks`, they are marked as inherited.
fn inherit(ace: &Ace, marks: bool, child: &Attr, out: &mut Vec<Ace>) {
    let is_dir = child.kind == FileKind::Dir;
    let mark = if marks { INHERITED } else { 0 };
    let applies = if is_dir {
        CONTAINER_INHERIT
    } else {
        OBJECT_INHERIT
    };
    let passes_on = is_dir
        && ace.flags & NO_PROPAGATE == 0
        && ace.flags & (OBJECT_INHERIT | CONTAINER_INHERIT) != 0;
    let kinds = ace.flags & (OBJECT_INHERIT | CONTAINER_INHERIT);
    let whom = match ace.sid.creator() {
        Some(Principal::User(_)) => Some(Sid::user(child.uid)),
        Some(_) => Some(Sid::group(child.gid)),
        None => None,
    };
    let with = |flags: u8, sid: Sid, mask: u32| Ace {
        allow: ace.allow,
        flags: flags | mark,
        mask,
        sid,
    };
    let spelled = access::spelled(ace.mask).unwrap_or(0);
    if ace.flags & applies != 0 {
        let splits = whom.is_some() || spelled != ace.mask;
        let kept = if passes_on && !splits { kinds } else { 0 };
        let sid = whom.clone().unwrap_or_else(|| ace.sid.clone());
        out.push(with(kept, sid, spelled));
        if passes_on && splits {
            out.push(with(kinds | INHERIT_ONLY, ace.sid.clone(), ace.mask));
        }
    } else if passes_on {
        out.push(with(kinds | INHERIT_ONLY, ace.sid.clone(), ace.mask));
    }
}

/// Returns `old` with the `given` parts of `new`.
pub(crate) fn merged(old: Descriptor, new: Descriptor, given: u32) -> Descriptor {
    let gives = |part: u32| given & part != 0;
    let mut merged = old;
    if gives(parts::OWNER) && new.owner.is_some() {
        merged.owner = new.owner;
    }
    if gives(parts::GROUP) && new.group.is_some() {
        merged.group = new.group;
    }
    if gives(parts::DACL) {
        // Inherited rules are marked as such only if the client supports this.
        let knows = AUTO_INHERITED | AUTO_INHERIT_REQ;
        let inherited = if new.control & knows == knows {
            AUTO_INHERITED
        } else {
            0
        };
        merged.control = new.control & PROTECTED | inherited;
        merged.dacl = Some(new.dacl.map_or(Dacl::Null, spelled));
    }
    merged
}

/// Expands generic rights in the rules for the node itself. Rules for inheritance keep them.
fn spelled(dacl: Dacl) -> Dacl {
    let Dacl::Rules(mut rules) = dacl else {
        return dacl;
    };
    for ace in &mut rules {
        if ace.flags & INHERIT_ONLY == 0 {
            ace.mask = access::spelled(ace.mask).unwrap_or(ace.mask);
        }
    }
    Dacl::Rules(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ace(allow: bool, flags: u8, mask: u32, sid: Sid) -> Ace {
        Ace {
            allow,
            flags,
            mask,
            sid,
        }
    }

    #[test]
    fn rules_count_in_their_order() {
        let me = Cred::new(7, 70);
        let rules = [
            ace(true, 0, access::READ_DATA, Sid::group(70)),
            ace(
                false,
                0,
                access::READ_DATA | access::WRITE_DATA,
                Sid::user(7),
            ),
            ace(true, 0, access::ALL, Sid::everyone()),
        ];
        let all = evaluate(&rules, &me, 1);
        assert_eq!(all, access::ALL & !access::WRITE_DATA);
        assert_eq!(
            evaluate(&rules[..0], &me, 7),
            access::READ_CONTROL | access::WRITE_DAC
        );
        assert_eq!(evaluate(&rules[..0], &me, 8), 0);
    }

    #[test]
    fn the_mode_is_what_the_classes_get() {
        let rules = [
            ace(true, 0, access::ALL, Sid::user(7)),
            ace(true, 0, access::READ_DATA, Sid::group(70)),
            ace(true, 0, access::WRITE_DATA, Sid::user(99)),
        ];
        assert_eq!(mode_of(&rules, 7, 70), 0o740);
    }
}
