//! NEGOTIATE (MS-SMB2 3.3.5.3, 3.3.5.4) and its validation (3.3.5.15.12).

use crate::answer::{Answer, Failure};
use crate::auth;
use crate::client::{Broken, Link, Negotiated, Reply, Security, Worker};
use crate::crypto::{self, Algorithm, Cipher, Preauth};
use crate::wire::Dialect;
use crate::wire::FileId;
use crate::wire::header::flags;
use crate::wire::negotiate::{
    ANY_SMB2, Chosen, Contexts, Request, Response, Validate, capabilities, security_mode,
    smb1_dialects,
};
use crate::wire::{Header, Status, ioctl};

/// `Protocol` of an SMB1 message.
pub(super) const SMB1_MAGIC: [u8; 4] = *b"\xFFSMB";
/// `FSCTL_VALIDATE_NEGOTIATE_INFO`.
const FSCTL_VALIDATE: u32 = 0x0014_0204;
/// The most bytes that dialects without large messages move.
const IO_MAX_SMALL: u32 = 64 * 1024;

/// Answers a client that asks for SMB2 in an SMB1 message.
///
/// # Errors
/// [`Broken`] if it does not ask for SMB2, or asks too late. SMB1 itself is not supported.
pub(super) fn from_smb1(link: &Link, frame: &[u8]) -> Result<(), Broken> {
    let config = &link.shared.config;
    let dialects = smb1_dialects(frame).map_err(|_| Broken)?;
    if link.negotiated.get().is_some() || !link.window.lock().take(0, 1) {
        return Err(Broken);
    }
    let any = config.max_dialect > Dialect::Smb202;
    let dialect = if dialects.contains(&&b"SMB 2.???"[..]) && any {
        ANY_SMB2
    } else if dialects.contains(&&b"SMB 2.002"[..]) && config.min_dialect == Dialect::Smb202 {
        Dialect::Smb202.code()
    } else {
        return Err(Broken);
    };
    let response = Response {
        io_max: IO_MAX_SMALL,
        ..response(link, dialect)
    };
    if dialect != ANY_SMB2 {
        let negotiated = Negotiated {
            dialect: Dialect::Smb202,
            client_guid: [0; 16],
            capabilities: 0,
            // What such a client sends for validation.
            asked: Request {
                security_mode: 0,
                capabilities: 0,
                client_guid: [0; 16],
                dialects: vec![dialect],
                contexts: Contexts::default(),
            },
            cipher: None,
            signing: Algorithm::HmacSha256,
            preauth: Preauth::START,
            io_max: IO_MAX_SMALL,
        };
        link.negotiated.set(negotiated).map_err(|_| Broken)?;
    }
    let header = Header {
        credits: link.window.lock().grant(1),
        flags: flags::RESPONSE,
        ..Header::default()
    };
    link.send(vec![Reply {
        header,
        body: response.emit().into(),
        security: Security::default(),
    }])
}

/// Returns a response, without the fields that depend on the dialect.
fn response(link: &Link, dialect: u16) -> Response {
    let config = &link.shared.config;
    let required = if config.signing_required {
        security_mode::SIGNING_REQUIRED
    } else {
        0
    };
    Response {
        security_mode: security_mode::SIGNING_ENABLED | required,
        dialect,
        server_guid: link.shared.guid,
        capabilities: 0,
        io_max: config.limits.io,
        system_time: auth::file_time((config.clock)()),
        token: auth::offer(),
        contexts: None,
    }
}

/// Answers NEGOTIATE.
pub(super) fn answer(
    link: &Link,
    worker: &Worker,
    header: &Header,
    message: &[u8],
) -> Result<(), Broken> {
    let mut reply = Reply {
        header: link.reply_header(header),
        body: Vec::new().into(),
        security: Security::default(),
    };
    match agree(link, message) {
        Ok((mut negotiated, response)) => {
            reply.body = response.emit().into();
            negotiated.preauth.mix(&[message]);
            negotiated
                .preauth
                .mix(&[&reply.header.emit(), reply.body.bytes()]);
            link.negotiated.set(negotiated).map_err(|_| Broken)?;
        }
        Err(status) => {
            reply.header.status = status.0;
            reply.body = Failure::from(status).into_body().into();
        }
    }
    worker.replies.lock().push(reply);
    Ok(())
}

fn agree(link: &Link, message: &[u8]) -> Result<(Negotiated, Response), Status> {
    let config = &link.shared.config;
    let request = Request::parse(message)?;
    let range = config.min_dialect..=config.max_dialect;
    let mut ours = Dialect::ALL.into_iter().rev().filter(|d| range.contains(d));
    let dialect = ours.find(|d| request.dialects.contains(&d.code()));
    let dialect = dialect.ok_or(Status::NOT_SUPPORTED)?;
    let mut negotiated = Negotiated {
        dialect,
        client_guid: request.client_guid,
        capabilities: server_capabilities(dialect, request.capabilities),
        cipher: None,
        signing: Algorithm::of(dialect),
        preauth: Preauth::START,
        io_max: config.limits.io,
        asked: request.clone(),
    };
    let mut response = response(link, dialect.code());
    match dialect {
        Dialect::Smb202 => negotiated.io_max = negotiated.io_max.min(IO_MAX_SMALL),
        Dialect::Smb210 => {}
        Dialect::Smb300 | Dialect::Smb302 => {
            if negotiated.capabilities & capabilities::ENCRYPTION != 0 {
                negotiated.cipher = Some(Cipher::Aes128Ccm);
            }
        }
        Dialect::Smb311 => response.contexts = Some(choose(&request, &mut negotiated)?),
    }
    response.capabilities = negotiated.capabilities;
    response.io_max = negotiated.io_max;
    Ok((negotiated, response))
}

fn server_capabilities(dialect: Dialect, client: u32) -> u32 {
    use capabilities::{DIRECTORY_LEASING, ENCRYPTION, LARGE_MTU, LEASING};
    match dialect {
        Dialect::Smb202 => 0,
        Dialect::Smb210 => LEASING | LARGE_MTU,
        Dialect::Smb300 | Dialect::Smb302 => {
            LEASING | LARGE_MTU | client & (DIRECTORY_LEASING | ENCRYPTION)
        }
        Dialect::Smb311 => LEASING | LARGE_MTU | client & DIRECTORY_LEASING,
    }
}

/// Chooses, from the offers in each context, the first one that the server supports.
fn choose(request: &Request, negotiated: &mut Negotiated) -> Result<Chosen, Status> {
    let contexts = &request.contexts;
    if !contexts.has_preauth {
        return Err(Status::INVALID_PARAMETER);
    }
    if !contexts.has_sha512 {
        return Err(Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP);
    }
    let mut chosen = Chosen {
        salt: crypto::random(),
        cipher: None,
        signing: None,
    };
    if let Some(offered) = &contexts.ciphers {
        negotiated.cipher = offered.iter().find_map(|code| Cipher::from_code(*code));
        chosen.cipher = Some(negotiated.cipher.map_or(0, Cipher::code));
    }
    if let Some(offered) = &contexts.signing {
        let common = offered.iter().find_map(|code| Algorithm::from_code(*code));
        negotiated.signing = common.unwrap_or(negotiated.signing);
        chosen.signing = common.map(Algorithm::code);
    }
    Ok(chosen)
}

/// Returns the answer to an IOCTL that validates the negotiation. Returns `None` for others.
///
/// # Errors
/// [`Broken`] if the request that the client sent is not the one that arrived.
pub(super) fn validation(link: &Link, message: &[u8]) -> Result<Option<Answer>, Broken> {
    let request = ioctl::Request::parse(message).ok();
    let Some(request) = request.filter(|r| r.code == FSCTL_VALIDATE && r.is_fsctl) else {
        return Ok(None);
    };
    let negotiated = link.negotiated.get().ok_or(Broken)?;
    let info = Validate::parse(request.input).map_err(|_| Broken)?;
    let asked = &negotiated.asked;
    let is_same = info.capabilities == asked.capabilities
        && info.client_guid == asked.client_guid
        && info.security_mode == asked.security_mode
        && info.dialects == asked.dialects;
    if !is_same {
        return Err(Broken);
    }
    if request.output_max < 24 {
        return Ok(Some(Err(Status::BUFFER_TOO_SMALL.into())));
    }
    let said = response(link, negotiated.dialect.code());
    let mut out = crate::wire::Out::with_capacity(24);
    out.u32(negotiated.capabilities).bytes(&said.server_guid);
    out.u16(said.security_mode).u16(said.dialect);
    let body = ioctl::response(FSCTL_VALIDATE, FileId::PREVIOUS, &out.done());
    Ok(Some(Ok(body)))
}
