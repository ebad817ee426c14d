//! Security descriptors ([MS-DTYP] 2.4.6), and the owners and modes that they give.

/// The owner, group and permissions that a security descriptor gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) mode: Option<u32>,
}

/// A security identifier: its authority and its subauthorities.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sid {
    authority: u64,
    subs: Vec<u32>,
}

impl Sid {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (&[1, count, a, b, c, d, e, f], rest) = bytes.split_first_chunk::<8>()? else {
            return None;
        };
        let rest = rest.get(..4 * usize::from(count))?;
        let (words, _) = rest.as_chunks::<4>();
        Some(Self {
            authority: u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            subs: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        })
    }

    fn is(&self, authority: u64, subs: &[u32]) -> bool {
        self.authority == authority && self.subs == subs
    }

    /// Returns whether it stands for everybody, or for all authenticated users.
    fn is_all(&self) -> bool {
        self.is(1, &[0]) || self.is(5, &[11])
    }

    /// Returns the number of a user or group. Known are the identifiers of Samba and of NFS, and
    /// those that ntfs-3g generates. The system and the administrators count as root.
    fn number(&self, is_group: bool) -> Option<u32> {
        let odd = u32::from(is_group);
        match (self.authority, self.subs.as_slice()) {
            (22, [1, id]) if !is_group => Some(*id),
            (22, [2, id]) if is_group => Some(*id),
            (5, [88, 1, id]) if !is_group => Some(*id),
            (5, [88, 2, id]) if is_group => Some(*id),
            (5, [18] | [32, 544]) => Some(0),
            (5, [21, 3_141_592_653, 589_793_238, 462_843_383, id]) => {
                let id = id.checked_sub(10_000)?;
                (id % 2 == odd).then_some(id / 2)
            }
            _ => None,
        }
    }
}

/// Rights of files, each with its permission bits.
const RIGHTS: [(u32, u32); 3] = [(0x1, 4), (0x2, 2), (0x20, 1)];
/// Generic rights, each with its permission bits: all, execute, write, read.
const GENERIC: [(u32, u32); 4] = [
    (0x1000_0000, 7),
    (0x2000_0000, 1),
    (0x4000_0000, 2),
    (0x8000_0000, 4),
];

fn bits(mask: u32) -> u32 {
    let of = RIGHTS
        .iter()
        .chain(&GENERIC)
        .filter(|(right, _)| mask & right != 0);
    of.fold(0, |all, (_, bits)| all | bits)
}

/// An entry of an access control list: whether it grants or denies, to whom, and which permissions.
struct Ace {
    grants: bool,
    who: Sid,
    bits: u32,
}

/// Returns the entries of an access control list that apply to the object itself.
fn aces(list: &[u8]) -> Option<Vec<Ace>> {
    let &[_, _, _, _, low, high, _, _] = list.first_chunk::<8>()?;
    let count = u16::from_le_bytes([low, high]);
    let (mut all, mut rest) = (Vec::new(), list.get(8..)?);
    for _ in 0..count {
        let &[kind, flags, low, high, a, b, c, d] = rest.first_chunk::<8>()?;
        let len = usize::from(u16::from_le_bytes([low, high]));
        let own = rest.get(..len).filter(|own| own.len() >= 8)?;
        // An inherit-only entry does not apply to the object itself.
        let is_own = flags & 0x8 == 0;
        if is_own && kind < 2 {
            all.push(Ace {
                grants: kind == 0,
                who: Sid::of(own.get(8..)?)?,
                bits: bits(u32::from_le_bytes([a, b, c, d])),
            });
        }
        rest = rest.get(len..)?;
    }
    Some(all)
}

impl Owned {
    /// Reads a descriptor. Leaves out parts that are invalid.
    pub(crate) fn of(descriptor: &[u8]) -> Self {
        let word = |at: usize| {
            let four = descriptor.get(at..at + 4)?.first_chunk()?;
            let place = usize::try_from(u32::from_le_bytes(*four)).ok()?;
            (place != 0).then(|| descriptor.get(place..)).flatten()
        };
        let sid = |at| word(at).and_then(Sid::of);
        let (owner, group) = (sid(4), sid(8));
        let aces = word(16).and_then(aces);
        Self {
            uid: owner.as_ref().and_then(|sid| sid.number(false)),
            gid: group.as_ref().and_then(|sid| sid.number(true)),
            mode: aces.map(|aces| mode(&aces, owner.as_ref(), group.as_ref())),
        }
    }
}

/// Returns the permissions of owner, group and others. For each permission, the first entry that
/// grants or denies it counts.
fn mode(aces: &[Ace], owner: Option<&Sid>, group: Option<&Sid>) -> u32 {
    let of = |is_in: &dyn Fn(&Ace) -> bool| {
        let (mut granted, mut refused) = (0, 0);
        for ace in aces.iter().filter(|ace| is_in(ace)) {
            match ace.grants {
                true => granted |= ace.bits & !refused,
                false => refused |= ace.bits & !granted,
            }
        }
        granted
    };
    let others = of(&|ace| ace.who.is_all());
    // If the owner is also the group, ntfs-3g stores the owner's entry first, then the group's.
    let (mut own, mut own_of_group) = (None, None);
    if owner == group {
        let mut both = aces.iter().filter(|ace| Some(&ace.who) == owner);
        own = both.next();
        own_of_group = both.next().or(own);
    }
    let is_of = |ace: &Ace, who: Option<&Sid>, only: Option<&Ace>| match only {
        Some(only) => std::ptr::eq(ace, only),
        None => Some(&ace.who) == who,
    };
    let group = of(&|ace| ace.who.is_all() || is_of(ace, group, own_of_group));
    let owner = of(&|ace| ace.who.is_all() || ace.who.is(3, &[4]) || is_of(ace, owner, own));
    owner << 6 | group << 3 | others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(authority: u8, subs: &[u32]) -> Vec<u8> {
        let mut out = vec![1, subs.len() as u8, 0, 0, 0, 0, 0, authority];
        out.extend(subs.iter().flat_map(|sub| sub.to_le_bytes()));
        out
    }

    fn ace(kind: u8, flags: u8, mask: u32, who: &[u8]) -> Vec<u8> {
        let mut out = vec![kind, flags];
        out.extend((8 + who.len() as u16).to_le_bytes());
        out.extend(mask.to_le_bytes());
        out.extend(who);
        out
    }

    fn descriptor(owner: &[u8], group: &[u8], aces: &[Vec<u8>]) -> Vec<u8> {
        let (first, second) = (20, 20 + owner.len() as u32);
        let third = second + group.len() as u32;
        let mut out = vec![1, 0, 4, 0x80];
        out.extend([first, second, 0, third].map(u32::to_le_bytes).concat());
        out.extend([owner, group].concat());
        let all = aces.concat();
        out.extend([2, 0]);
        out.extend((8 + all.len() as u16).to_le_bytes());
        out.extend((aces.len() as u16).to_le_bytes());
        out.extend([0, 0]);
        out.extend(all);
        out
    }

    #[test]
    fn owners_and_modes_come_of_a_descriptor() {
        let (owner, group, all) = (sid(22, &[1, 1000]), sid(22, &[2, 100]), sid(1, &[0]));
        let aces = [
            ace(1, 0, 0x20, &all),
            ace(0, 0, 0x1f01ff, &owner),
            ace(0, 8, 0x1f01ff, &all),
            ace(0, 0, 0x1, &group),
            ace(0, 0, 0x1, &all),
        ];
        let whole = descriptor(&owner, &group, &aces);
        let owned = Owned::of(&whole);
        assert_eq!((owned.uid, owned.gid), (Some(1000), Some(100)));
        assert_eq!(owned.mode, Some(0o644));
        for len in 0..whole.len() {
            Owned::of(&whole[..len]);
        }
    }

    #[test]
    fn identifiers_that_stand_for_numbers() {
        let number = |authority, subs: &[u32], is_group| {
            let bytes = sid(authority, subs);
            Sid::of(&bytes).and_then(|sid| sid.number(is_group))
        };
        assert_eq!(number(5, &[18], false), Some(0));
        assert_eq!(number(5, &[32, 544], true), Some(0));
        assert_eq!(number(5, &[88, 1, 7], false), Some(7));
        let own = [21, 3_141_592_653, 589_793_238, 462_843_383, 10_000 + 2 * 33];
        assert_eq!(
            (number(5, &own, false), number(5, &own, true)),
            (Some(33), None)
        );
        assert_eq!(number(5, &[21, 1, 2, 3, 1001], false), None);
    }
}
