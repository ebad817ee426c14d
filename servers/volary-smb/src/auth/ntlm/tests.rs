//! The examples of MS-NLMP 4.2, and forged variants of them.

use super::*;
use crate::crypto::NtHash;
use volary_core::{Cred, Time};

/// 4.2.1.
const SERVER_CHALLENGE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// `temp` of 4.2.4.1.3: time 0, the client's challenge, and the names
/// "Domain" and "Server".
fn temp() -> Vec<u8> {
    hex(
        "01 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 aa aa aa aa aa aa aa aa 00 00 00 00
         02 00 0c 00 44 00 6f 00 6d 00 61 00 69 00 6e 00
         01 00 0c 00 53 00 65 00 72 00 76 00 65 00 72 00 00 00 00 00 00 00 00 00",
    )
}

#[test]
fn the_examples_of_the_specification_hold() {
    let hash = *NtHash::of("Password").bytes();
    assert_eq!(
        hash.to_vec(),
        hex("a4f49c406510bdcab6824ee7c30fd852"),
        "4.2.2.1.2"
    );
    let key = response_key(&hash, &upper("User"), &utf16("Domain"));
    assert_eq!(
        key.to_vec(),
        hex("0c868a403bfd7a93a3001ef22ef02e3f"),
        "4.2.4.1.1"
    );
    let proof = hmac_md5(&key, &[&SERVER_CHALLENGE, &temp()]);
    assert_eq!(
        proof.to_vec(),
        hex("68cd0ab851e51c96aabc927bebef6a1c"),
        "4.2.4.2.2"
    );
    let base_key = hmac_md5(&key, &[&proof]);
    assert_eq!(
        base_key.to_vec(),
        hex("8de40ccadbc14a82f15cb0ad0de95ca3"),
        "4.2.4.1.2"
    );
    let mut random_key = [0x55; 16];
    rc4(&base_key, &mut random_key);
    assert_eq!(
        random_key.to_vec(),
        hex("c5dad2544fc9799094ce1ce90bc9d03e"),
        "4.2.4.2.3"
    );
}

/// 4.2.4.4: the signature of "Plaintext". Its text is encrypted before the checksum.
#[test]
fn signatures_are_those_of_the_specification() {
    let accepted = Accepted {
        user: 0,
        session_key: [0x55; 16],
        seals: true,
    };
    let key = |what: &str| {
        let magic = format!("session key to client-to-server {what} key magic constant\0");
        md5(&[&accepted.session_key, magic.as_bytes()]).to_vec()
    };
    assert_eq!(
        key("sealing"),
        hex("59f600973cc4960a25480a7c196e4c58"),
        "4.2.4.4"
    );
    assert_eq!(
        key("signing"),
        hex("4788dc861b4782f35d43fd98fe1a2d39"),
        "4.2.4.4"
    );
    let mac = hmac_md5(
        &key("signing").try_into().unwrap(),
        &[&[0; 4], &utf16("Plaintext")],
    );
    // The checksum is encrypted after the 18 bytes of the text.
    let mut sealed = [0; 26];
    sealed[18..].copy_from_slice(&mac[..8]);
    rc4(&key("sealing").try_into().unwrap(), &mut sealed);
    assert_eq!(sealed[18..].to_vec(), hex("7fb38ec5c55d4976"), "4.2.4.4");
}

fn users() -> Vec<User> {
    vec![User::with_password("User", "Password", Cred::root())]
}

fn host(users: &[User]) -> Host<'_> {
    Host {
        name: "Server",
        users,
        now: Time::from_secs(1_700_000_000),
        challenge: SERVER_CHALLENGE,
    }
}

/// The client's messages. In the place of `temp`'s names, the response has flags that announce a
/// MIC.
pub(crate) struct Client {
    pub(crate) negotiate: Vec<u8>,
    user: &'static str,
    password: &'static str,
    session_key: [u8; 16],
}

const CLIENT: Client = Client {
    negotiate: Vec::new(),
    user: "uSER",
    password: "Password",
    session_key: [0x55; 16],
};

impl Client {
    pub(crate) fn new(user: &'static str, password: &'static str) -> Self {
        Self {
            negotiate: negotiate_message(),
            user,
            password,
            session_key: crate::crypto::random(),
        }
    }

    /// Returns the answer to a challenge, and the session key.
    pub(crate) fn answer(&self, challenge: &[u8]) -> (Vec<u8>, [u8; 16]) {
        (self.authenticate(challenge), self.session_key)
    }

    fn authenticate(&self, challenge: &[u8]) -> Vec<u8> {
        let mut blob = temp();
        blob.truncate(28);
        blob.extend(hex("06 00 04 00 02 00 00 00 00 00 00 00 00 00 00 00"));
        let server_challenge = &challenge[24..32];
        let key = response_key(
            NtHash::of(self.password).bytes(),
            &upper(self.user),
            &utf16("Dom"),
        );
        let proof = hmac_md5(&key, &[server_challenge, &blob]);
        let base_key = hmac_md5(&key, &[&proof]);
        let mut encrypted_key = self.session_key;
        rc4(&base_key, &mut encrypted_key);
        let response = [&proof[..], &blob].concat();
        let fields = [
            &[][..],
            &response,
            &utf16("Dom"),
            &utf16(self.user),
            &[],
            &encrypted_key,
        ];
        let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let mut at = 88;
        for field in fields {
            let len = (field.len() as u16).to_le_bytes();
            message.extend([len, len].concat());
            message.extend((at as u32).to_le_bytes());
            at += field.len();
        }
        let all = flags::UNICODE | flags::EXTENDED_SESSION_SECURITY | flags::KEY_EXCHANGE;
        message.extend(all.to_le_bytes());
        message.resize(88, 0);
        message.extend(fields.concat());
        let mic = hmac_md5(&self.session_key, &[&self.negotiate, challenge, &message]);
        message[72..88].copy_from_slice(&mic);
        message
    }
}

fn negotiate_message() -> Vec<u8> {
    hex("4e544c4d53535000 01000000 05820862 0000000000000000 0000000000000000")
}

/// Runs an exchange up to the answer to the challenge, which `change` modifies.
fn exchange(client: &Client, change: impl Fn(&mut Vec<u8>)) -> Result<[u8; 16], Refused> {
    let users = users();
    let mut ntlm = Ntlm::default();
    let negotiate = negotiate_message();
    let Step::Challenge(challenge) = ntlm.step(&negotiate, &host(&users))? else {
        panic!("a challenge comes first");
    };
    let client = Client {
        negotiate,
        ..*client
    };
    let mut answer = client.authenticate(&challenge);
    change(&mut answer);
    match ntlm.step(&answer, &host(&users))? {
        Step::Accepted(accepted) => Ok(accepted.session_key),
        Step::Challenge(_) => panic!("a second challenge"),
    }
}

#[test]
fn the_right_password_gives_the_session_key() {
    assert_eq!(exchange(&CLIENT, |_| {}), Ok([0x55; 16]));
}

#[test]
fn wrong_passwords_and_unknown_users_are_refused() {
    for (user, password) in [
        ("User", "password"),
        ("User", ""),
        ("Users", "Password"),
        ("", ""),
    ] {
        let client = Client {
            user,
            password,
            ..CLIENT
        };
        assert_eq!(
            exchange(&client, |_| {}),
            Err(Refused::Logon),
            "{user} {password}"
        );
    }
}

#[test]
fn no_changed_bit_is_accepted() {
    let len = {
        let users = users();
        let Ok(Step::Challenge(challenge)) =
            Ntlm::default().step(&negotiate_message(), &host(&users))
        else {
            panic!("a challenge");
        };
        CLIENT.authenticate(&challenge).len()
    };
    for bit in 0..len * 8 {
        let changed = exchange(&CLIENT, |answer| answer[bit / 8] ^= 1 << (bit % 8));
        assert!(changed.is_err(), "bit {bit}");
    }
}

#[test]
fn every_shorter_message_is_refused() {
    let mut len = 0;
    while exchange(&CLIENT, |answer| answer.truncate(len)).is_err() {
        len += 1;
    }
    assert_eq!(
        exchange(&CLIENT, |answer| assert_eq!(answer.len(), len)),
        Ok([0x55; 16])
    );
}

#[test]
fn an_exchange_ends_with_its_first_answer() {
    let users = users();
    let mut ntlm = Ntlm::default();
    let negotiate = negotiate_message();
    assert!(ntlm.step(&negotiate, &host(&users)).is_ok());
    assert!(ntlm.step(&negotiate, &host(&users)).is_err());
    assert!(ntlm.step(&negotiate, &host(&users)).is_err());
}
