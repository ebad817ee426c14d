//! Users that may log in, with their credentials; and squashing of callers to nobody.

use std::fmt;
use std::sync::Arc;
use volary_core::{Cred, Error, Kind, Result, fold, same_name};

/// Longest list of users, in bytes.
const TEXT_MAX: usize = 1 << 20;
/// Longest name, in bytes.
const NAME_MAX: usize = 256;
/// How many groups one user can be in, including the primary group.
const GROUPS_MAX: usize = 64;

/// A user that may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name as written in the list.
    pub name: String,
    /// The user's credentials after a logon.
    pub cred: Cred,
    /// The NT hash of the user's password; `None` if no password is valid.
    pub nt_hash: Option<[u8; 16]>,
}

/// Hides the hash, which is as good as the password.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .field("cred", &self.cred)
            .finish_non_exhaustive()
    }
}

/// The users that may log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(Vec<User>);

impl Users {
    /// Parses a list of users: a line `name:uid:gid[,gid…]:hash` for each, the hash as 32
    /// hexadecimal digits, or `-` if no password is valid. Empty lines and those that begin with
    /// `#` are ignored. `mode` is that of the file with the text: hashes are as good as passwords,
    /// so only its owner may have rights on it.
    ///
    /// # Errors
    /// `NotPermitted` if group or others have rights by `mode`; `TooBig` past 1 MiB; `Invalid` with
    /// the number of a malformed line, or for a repeated name.
    pub fn parse(text: &[u8], mode: u32) -> Result<Self> {
        if mode & 0o077 != 0 {
            let words = format!(
                "others have rights on it (mode {:04o}); chmod 600",
                mode & 0o7777
            );
            return Err(Error::note(Kind::NotPermitted, words));
        }
        if text.len() > TEXT_MAX {
            return Err(Kind::TooBig.into());
        }
        let mut users = Vec::new();
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            let bad = |why: &str| Error::note(Kind::Invalid, format!("line {number}: {why}"));
            let line = std::str::from_utf8(line).map_err(|_| bad("not in UTF-8"))?;
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            users.push(user(line).map_err(bad)?);
        }
        let mut all = Self(users);
        all.0.sort_by_cached_key(|user| fold(user.name.as_bytes()));
        let same = |two: &&[User]| same_name(two[0].name.as_bytes(), two[1].name.as_bytes());
        if let Some(two) = all.0.windows(2).find(same) {
            let words = format!("user '{}' stands there twice", two[1].name.escape_debug());
            return Err(Error::note(Kind::Invalid, words));
        }
        Ok(all)
    }

    /// Adds one more user.
    ///
    /// # Errors
    /// `Exists` if there is already one of that name.
    pub fn with(mut self, user: User) -> Result<Self> {
        let key = |user: &User| fold(user.name.as_bytes());
        match self.0.binary_search_by_key(&key(&user), key) {
            Ok(_) => Err(Kind::Exists.into()),
            Err(at) => {
                self.0.insert(at, user);
                Ok(self)
            }
        }
    }

    /// Returns the user of that name, in whatever case.
    pub fn find(&self, name: &str) -> Option<&User> {
        if name.len() > NAME_MAX {
            return None;
        }
        let key = |user: &User| fold(user.name.as_bytes());
        let found = self.0.binary_search_by_key(&fold(name.as_bytes()), key);
        found.ok().and_then(|at| self.0.get(at))
    }

    /// Returns all users, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.0.iter()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn user(line: &str) -> std::result::Result<User, &'static str> {
    let mut parts = line.split(':');
    let (Some(name), Some(uid), Some(gids), Some(hash), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Err("expected name:uid:gid[,gid...]:hash");
    };
    if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
        return Err("the name is empty, longer than 256 bytes, or has a control character");
    }
    let uid = number(uid).ok_or("the user is not a number")?;
    let gids: Option<Vec<u32>> = gids.split(',').take(GROUPS_MAX + 1).map(number).collect();
    let gids = gids.ok_or("a group is not a number")?;
    let Some((&gid, more)) = gids.split_first().filter(|_| gids.len() <= GROUPS_MAX) else {
        return Err("more than 64 groups");
    };
    Ok(User {
        name: name.into(),
        cred: Cred {
            uid,
            gid,
            groups: more.into(),
        },
        nt_hash: match hash {
            "-" => None,
            digits => Some(hex(digits).ok_or("the hash is not 32 hexadecimal digits, nor '-'")?),
        },
    })
}

/// Parses decimal digits, without a sign.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn hex(text: &str) -> Option<[u8; 16]> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let bytes: Vec<u8> = digits?
        .chunks_exact(2)
        .map(|two| two[0] << 4 | two[1])
        .collect();
    bytes.try_into().ok().filter(|_| text.len() == 32)
}

/// Returns the caller, with user 0 and group 0 replaced by `nobody`'s.
pub fn root_squashed(cred: &Cred, nobody: &Cred) -> Cred {
    if cred.uid == 0 {
        return nobody.clone();
    }
    let squash = |gid: u32| if gid == 0 { nobody.gid } else { gid };
    if cred.gid != 0 && !cred.groups.contains(&0) {
        return cred.clone();
    }
    let groups: Vec<u32> = cred.groups.iter().map(|&gid| squash(gid)).collect();
    Cred {
        uid: cred.uid,
        gid: squash(cred.gid),
        groups: Arc::from(groups),
    }
}

/// Returns `nobody`, whoever calls.
pub fn all_squashed(_: &Cred, nobody: &Cred) -> Cred {
    nobody.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdefABCDEF0123456789";

    fn parse(text: &str) -> Result<Users> {
        Users::parse(text.as_bytes(), 0o100_600)
    }

    #[test]
    fn users_are_found_in_any_case() {
        let text = format!("# who\n\nÄnne:1000:100,4,27:{HASH}\r\nbob:7:7:-");
        let users = parse(&text).unwrap();
        let anne = users.find("äNNE").unwrap();
        assert_eq!((anne.cred.uid, anne.cred.gid), (1000, 100));
        assert_eq!(*anne.cred.groups, [4, 27]);
        let hash = anne.nt_hash.unwrap();
        assert_eq!((hash[0], hash[8], hash[15]), (0x01, 0xab, 0x89));
        assert!(users.find("bob").unwrap().nt_hash.is_none());
        assert!(users.find("eve").is_none());
        assert!(!format!("{users:?}").contains("171"), "the hash is shown");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_line() {
        let many = ["1"; 65].join(",");
        let bad = [
            "x".to_string(),
            format!(":1:1:{HASH}"),
            format!("a\tb:1:1:{HASH}"),
            format!("a:-1:1:{HASH}"),
            format!("a:+1:1:{HASH}"),
            format!("a:4294967296:1:{HASH}"),
            format!("a:1::{HASH}"),
            format!("a:1:1,:{HASH}"),
            format!("a:1:{many}:{HASH}"),
            "a:1:1:".into(),
            "a:1:1:12".into(),
            format!("a:1:1:{HASH}0"),
            format!("a:1:1:{HASH}:x"),
            format!("a:1:1:{}", "é".repeat(16)),
        ];
        for line in bad {
            let refused = parse(&format!("ok:1:1:-\n{line}")).unwrap_err();
            assert_eq!(refused, Kind::Invalid, "{line}");
            assert!(refused.to_string().starts_with("line 2: "), "{refused}");
        }
        assert_eq!(parse("a:1:1:-\nA:2:2:-").unwrap_err(), Kind::Invalid);
        assert_eq!(
            Users::parse(b"\xff:1:1:-", 0o600).unwrap_err(),
            Kind::Invalid
        );
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o601, 0o666] {
            assert_eq!(Users::parse(b"", mode).unwrap_err(), Kind::NotPermitted);
        }
        assert!(Users::parse(b"", 0o400).unwrap().is_empty());
        assert_eq!(
            Users::parse(&vec![b'\n'; TEXT_MAX + 1], 0o600).unwrap_err(),
            Kind::TooBig
        );
    }

    #[test]
    fn root_is_squashed_as_user_and_as_group() {
        let nobody = Cred::new(65534, 65533);
        let groups = |groups: &[u32]| Cred {
            groups: groups.into(),
            ..Cred::new(5, 0)
        };
        assert_eq!(root_squashed(&Cred::root(), &nobody), nobody);
        let squashed = root_squashed(&groups(&[0, 9]), &nobody);
        assert_eq!((squashed.uid, squashed.gid), (5, 65533));
        assert_eq!(*squashed.groups, [65533, 9]);
        let plain = Cred::new(5, 6);
        assert_eq!(root_squashed(&plain, &nobody), plain);
        assert_eq!(all_squashed(&plain, &nobody), nobody);
    }

    #[test]
    fn a_user_is_added_once() {
        let user = User {
            name: "Eve".into(),
            cred: Cred::new(1, 1),
            nt_hash: None,
        };
        let users = Users::default().with(user.clone()).unwrap();
        assert_eq!(users.iter().count(), 1);
        let again = User {
            name: "eve".into(),
            ..user
        };
        assert_eq!(users.with(again).unwrap_err(), Kind::Exists);
    }
}
