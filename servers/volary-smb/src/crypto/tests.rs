//! Examples that Microsoft published beside MS-SMB2: "The anatomy of signing and
//! cryptographic keys", "Encryption in SMB 3.0: a protocol perspective" and
//! "SMB 3.1.1 encryption in Windows 10".

use super::kdf::{derive, labels};
use super::*;
use crate::wire::header::{HEADER_LEN, SIGNATURE_AT};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn key(text: &str) -> [u8; 16] {
    hex(text).try_into().unwrap()
}

fn preauth(text: &str) -> Preauth {
    Preauth::from_bytes(hex(text).try_into().unwrap())
}

const SIGNED_PREAUTH: &str = "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79
     28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01";
const SEALED_PREAUTH: &str = "B23F3CBFD69487D9832B79B1594A367CDD950909B774C3A4C412B4FCEA9EDDDB
     A7DB256BA2EA30E977F11F9B113247578E0E915C6D2A513B8F2FCA5707DC8770";

fn keys_of(session_key: &str, dialect: Dialect, preauth: &Preauth) -> [String; 3] {
    let session_key = key(session_key);
    let labels = labels(dialect, preauth);
    [&labels.signing, &labels.server_out, &labels.server_in].map(|purpose| {
        let mut out = [0; 16];
        derive(&session_key, purpose, &mut out);
        out.map(|byte| format!("{byte:02X}")).concat()
    })
}

/// The examples name keys from the client's view: it encrypts what the server receives.
#[test]
fn keys_are_those_of_the_examples() {
    assert_eq!(
        keys_of(
            "7CD451825D0450D235424E44BA6E78CC",
            Dialect::Smb300,
            &Preauth::START
        ),
        [
            "0B7E9C5CAC36C0F6EA9AB275298CEDCE",
            "B0F0427F7CEB416D1D9DCC0CD4F99447",
            "FAD27796665B313EBB578F388632B4F7",
        ]
    );
    assert_eq!(
        keys_of(
            "270E1BA896585EEB7AF3472D3B4C75A7",
            Dialect::Smb311,
            &preauth(SIGNED_PREAUTH)
        ),
        [
            "73FE7A9A77BEF0BDE49C650D8CCB5F76",
            "E2AF0DCEFAC68DA71A0DFBD0D1350D74",
            "629BCBC54422A0F572B97F45989B6073",
        ]
    );
}

#[test]
fn the_last_reply_of_a_logon_is_signed_as_in_the_example() {
    let message = hex(
        "FE534D4240000100000000000100800009000000000000000300000000000000FFFE000000000000
         1900000000100000EBE146DA120BA25FC3376A49DFE31BC10900000048001D00A11B3019A0030A01
         00A3120410010000003B453CDC3524164200000000",
    );
    let signer = Signer::new(Algorithm::AesCmac, &key("73FE7A9A77BEF0BDE49C650D8CCB5F76"));
    assert!(signer.verify(&message, 3, Role::Server));
    for bit in 0..message.len() * 8 {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!signer.verify(&changed, 3, Role::Server), "bit {bit}");
    }
    assert!(!signer.verify(&message[..message.len() - 1], 3, Role::Server));
    assert!(!signer.verify(&message[..HEADER_LEN - 1], 3, Role::Server));
}

struct Sealed {
    cipher: Cipher,
    dialect: Dialect,
    preauth: Preauth,
    session_key: &'static str,
    request: &'static str,
    request_plain: &'static str,
    response: &'static str,
    response_plain: &'static str,
}

fn examples() -> [Sealed; 2] {
    [
        Sealed {
            cipher: Cipher::Aes128Ccm,
            dialect: Dialect::Smb300,
            preauth: Preauth::START,
            session_key: "B4546771B515F766A86735532DD6C4F0",
            request: "FD534D4281A286535415445DAE393921E44FA42E66E69A111892584FB5ED524A
                744DA3EE87000000000001001100001400E4080025C8FEE16605A437832D1CD5
                2DA9F4645333482A175FE5384563F45FCDAFAEF38BC62BA4D5C62897996625A4
                4C29BE5658DE2E6117585779E7B59FFD971278D08580D7FA899E410E910EABF5
                AA1DB43050B33B49182637759AC15D84BFCDF5B6B238993C0F4CF4D6012023F6
                C627297075D84B7803912D0A9639634453595EF3E33FFE4E7AC2AB",
            request_plain: "FE534D4240000100000000000900400008000000000000000400000000000000
                FFFE0000010000001100001400E4080000000000000000000000000000000000
                3100700017000000000000000000000015010000390000020100000039020000
                00000000000000007000000000000000536D623320656E6372797074696F6E20
                74657374696E67",
            response: "FD534D42A6015530A18F6D9AFFE22AFAE8E66484860000000000000011000014
                00E4080050000000000001001100001400E40800DBF46435C5F14169293CE079
                E344479BF670227E49873F458672C3098DAC467DD5809F369D67409166515787
                1483E01F7BECD02064EAC3E235F913668BBC2F097980D4B378F1993EFF6E60D1
                77309E5B",
            response_plain: "FE534D4240000100000000000900210009000000000000000400000000000000
                FFFE0000010000001100001400E4080000000000000000000000000000000000
                11000000170000000000000000000000",
        },
        Sealed {
            cipher: Cipher::Aes128Gcm,
            dialect: Dialect::Smb311,
            preauth: preauth(SEALED_PREAUTH),
            session_key: "419FDDF34C1E001909D362AE7FB6AF79",
            request: "FD534D42BD73D97D2BC9001BCAFAC0FDFF5FEEBCC7D6822D269CAF48904C664C
                00000000870000000000010025000000001000006ECDD2A7AFC7B47763057A04
                1B8FD4DAFFE990B70C9E09D36C084E02D14EF247F8BDE38ACF6256F8B1D3B56F
                77FBDEB312FEA5E92CBCC1ED8FB2EBBFAA75E49A4A394BB44576545567C24D4C
                014D47C9FBDFDAFD2C4F9B72F8D256452620A299F48E29E53D6B61D1C13A19E9
                1AF013F00D17E3ABC2FC3D36C8C1B6B93973253852DBD442E46EE8",
            request_plain: "FE534D4240000100000000000900010008000000000000000500000000000000
                FFFE000001000000250000000010000000000000000000000000000000000000
                3100700017000000000000000000000006000000040000000100000004000000
                00000000000000007000000000000000536D623320656E6372797074696F6E20
                74657374696E67",
            response: "FD534D42ACBE1CB7ED343ADF1725EF144D90D4B0E06831DD2E8EB7B400000000
                0000000050000000000001002500000000100000 26BBBF949983A6C1C796559D
                0F2C510CB651D1F7B6AC8DED32A2A0B8F2D793A815C6F6B848D69767A215841A
                42D400AE6DDB5F0B44173A014973321FDD7950DA6179159B82E03C9E18A050FF
                0EA1C967",
            response_plain: "FE534D4240000100000000000900010001000000000000000500000000000000
                FFFE000001000000250000000010000000000000000000000000000000000000
                11000000170000000000000000000000",
        },
    ]
}

#[test]
fn messages_are_sealed_as_in_the_examples() {
    for example in examples() {
        let keys = Keys::derive(
            &key(example.session_key),
            example.dialect,
            Algorithm::AesCmac,
            Some(example.cipher),
            &example.preauth,
        );
        let (out, incoming) = keys.seal.unwrap();
        for (sealer, sealed, plain) in [
            (&incoming, example.request, example.request_plain),
            (&out, example.response, example.response_plain),
        ] {
            let mut bytes = hex(sealed);
            assert_eq!(sealer.open(&mut bytes), Ok(()));
            assert_eq!(bytes[TRANSFORM_LEN..], hex(plain));
            for bit in 0..bytes.len() * 8 {
                let mut changed = hex(sealed);
                changed[bit / 8] ^= 1 << (bit % 8);
                // The nonce's bytes that the cipher does not use are authenticated too.
                let is_magic = bit < 32;
                assert_eq!(sealer.open(&mut changed).is_err(), !is_magic, "bit {bit}");
            }
        }
    }
}

#[test]
fn what_is_sealed_can_be_opened_and_no_nonce_comes_twice() {
    for cipher in Cipher::ALL {
        let key: Vec<u8> = (0..cipher.key_len() as u8).collect();
        let sealer = Sealer::new(cipher, &key);
        let mut headers = Vec::new();
        for len in [0, 1, 15, 16, 17, 100_000] {
            let plain: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut message = plain.clone();
            let header = sealer.seal(7, &mut message);
            let mut bytes = [&header[..], &message].concat();
            assert_eq!(sealer.open(&mut bytes), Ok(()), "{cipher:?} {len}");
            assert_eq!(bytes[TRANSFORM_LEN..], plain);
            headers.push(header[20..36].to_vec());
        }
        headers.sort();
        headers.dedup();
        assert_eq!(headers.len(), 6);
    }
}

#[test]
fn gmac_knows_client_and_server_apart() {
    let signer = Signer::new(Algorithm::AesGmac, &[0; 16]);
    let by = |role, id| {
        let mut message = [0; HEADER_LEN + 4];
        signer.sign(&mut message, id, role);
        message
    };
    let all = [
        by(Role::Client, 5),
        by(Role::Server, 5),
        by(Role::ClientCancel, 5),
        by(Role::Client, 6),
    ];
    for (at, one) in all.iter().enumerate() {
        assert_eq!(all.iter().filter(|other| *other == one).count(), 1, "{at}");
    }
}

#[test]
fn gmac_is_gcm_of_nothing() {
    use aes_gcm::aead::{Aead, KeyInit, Payload};
    let signing_key = key("73FE7A9A77BEF0BDE49C650D8CCB5F76");
    let signer = Signer::new(Algorithm::AesGmac, &signing_key);
    let mut header = [0; HEADER_LEN];
    for (at, byte) in header.iter_mut().enumerate().take(48) {
        *byte = at as u8;
    }
    let gcm = aes_gcm::Aes128Gcm::new((&signing_key).into());
    let nonce: [u8; 12] = [0x37, 0x13, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    for len in [0, 1, 16, 100, 4097] {
        let body = vec![0xA5; len];
        let mut said = [&header[..], &body].concat();
        let payload = Payload {
            msg: &[],
            aad: &said,
        };
        let tag = gcm.encrypt((&nonce).into(), payload).unwrap();
        signer.sign(&mut said, 0x1337, Role::Server);
        assert_eq!(said[SIGNATURE_AT..HEADER_LEN], tag);
        assert!(signer.verify_in_place(&mut said, 0x1337, Role::Server));
        assert_eq!(said[SIGNATURE_AT..HEADER_LEN], tag);
    }
}
